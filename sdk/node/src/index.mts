/** The entry of `import`. It shares its modules with the entry of `require`, so that a process has one list of kernels. */

export {
  betterSqliteExecutor,
  createMemoryVFS,
  createNodeVFS,
  createSqlTools,
  defineTGPConfig,
  ERROR_CODES,
  executeToolCall,
  formatTools,
  mysqlExecutor,
  nodeSqliteExecutor,
  postgresExecutor,
  SessionRun,
  TGP,
  TGPError,
  tgpTools,
  toAgentsTools,
  toAnthropicTools,
  toOpenAITools,
  VERSION,
} from './index.js';
export type * from './index.js';
