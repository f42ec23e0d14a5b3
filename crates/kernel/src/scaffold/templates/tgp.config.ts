// Every field is optional. Remove the slashes of a line to change a default.
export default {
  // Where the tools are kept besides this machine: any URL of git, or a path.
  // git: { url: 'https://git.example.com/my-org/tgp-tools.git', auth: { token: process.env.TGP_GIT_TOKEN } },

  // The database of exec_sql; without it a SQLite file in .tgp/.state, which git ignores.
  // db: { url: process.env.DATABASE_URL },

  // Where tools may write, relative to this file. A run's writes are kept only when it succeeds.
  // fs: { allowedDirs: ['./tmp'] },

  // Packages that tools may import: '@tgp/std' is built in, the others come from node_modules.
  // allowedImports: ['@tgp/std', 'zod', 'date-fns'],

  // URL prefixes that tgp.fetch may reach.
  // allowedFetchUrls: ['https://api.example.com/v1'],

  // Limits of every run.
  // sandbox: { memoryMb: 64, cpuMs: 1000, wallMs: 10000 },

  // 'strict': an agent writes code only for a test that has failed. 'debug' lets it change existing code, 'explore' refuses nothing.
  // tdd: { mode: 'strict' },
};
