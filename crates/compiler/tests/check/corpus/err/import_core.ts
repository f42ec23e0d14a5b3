import { defineTGPConfig } from '@tgp/core';

/** The configuration's package is not for tools. */
export default () => defineTGPConfig({});
