// role: config, id: tgp.config.ts
import { defineTGPConfig } from '@tgp/core';
const { HOME, USER: user = 'nobody' } = process.env;
export default defineTGPConfig({
  token: process.env.TGP_GITHUB_TOKEN!,
  other: process.env['OTHER_NAME'],
  maybe: process.env?.MAYBE,
  mode: process.env.NODE_ENV === 'production' ? 'pr' : 'direct',
  home: HOME, user,
});
