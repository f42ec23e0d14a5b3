import { defineTGPConfig } from '@tgp/core';

// Every field is optional; what you see are the defaults.
export default defineTGPConfig({
  // The agent's root: a git repository with the tools it has forged.
  rootDir: './.tgp',

  // Where the tools are kept besides this machine: any URL of git, or a path.
  // git: { url: 'git@example.com:my-org/tgp-tools.git', auth: { token: process.env.TGP_GIT_TOKEN } },

  // The database of exec_sql; without it a SQLite file in .tgp/.state, which git ignores.
  // db: { url: process.env.DATABASE_URL },

  // Where tools may write, relative to this file. A run's writes are kept only when it succeeds.
  fs: {
    allowedDirs: ['./tmp'],
    blockUpwardTraversal: true,
  },

  // Packages tools may import: '@tgp/std' is built in, the others come from node_modules.
  allowedImports: ['@tgp/std', 'zod', 'date-fns'],

  // URL prefixes that tgp.fetch may reach, such as 'https://api.stripe.com/v1'.
  allowedFetchUrls: [],

  // Caps of every run.
  sandbox: {
    memoryMb: 64,
    cpuMs: 50,
    wallMs: 5000,
  },

  // 'strict': an agent writes code only for a test that has failed. 'explore' refuses nothing, 'debug' no change of old code.
  tdd: { mode: 'strict' },
});
