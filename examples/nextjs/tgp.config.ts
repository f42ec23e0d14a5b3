import { defineTGPConfig } from '@tgp/core';

export default defineTGPConfig({
  tdd: { mode: 'strict' },
});
