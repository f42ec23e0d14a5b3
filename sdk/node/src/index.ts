/** `@tgp/core`: the kernel of TGP for Node. `docs/node.md` explains it. */

export { TGP, type CallOptions, type ExecLimits, type ExecOptions } from './kernel.js';
export { ERROR_CODES, TGPError, type KnownErrorCode, type SourceLocation, type TGPErrorCode } from './errors.js';
export type {
  ApprovalAnswer,
  ApprovalRequest,
  Approve,
  CallbackOptions,
  HostToolDefinition,
  HostTools,
  JsonSchema,
  TGPOptions,
} from './options.js';
export type { Logger, LogLevel } from './logger.js';
export { SessionRun, type RunOptions, type SessionRunEvent, type SessionSummary } from './session.js';
export { defineTGPConfig, type TGPConfig } from './config.js';

export { tgpTools, type DefaultToolName } from './tools/tgp-tools.js';
export { createSqlTools } from './tools/sql-tools.js';
export { executeToolCall, type ToolCallResult } from './tools/execute.js';
export {
  formatTools,
  toAgentsTools,
  toAnthropicTools,
  toOpenAITools,
  type AgentsTool,
  type AnthropicTool,
  type OpenAIChatTool,
  type OpenAIResponsesTool,
} from './tools/formats.js';
export type { AgentTool, ToolExecuteOptions, ToolSchema, ToolSet } from './tools/tool.js';

export { postgresExecutor } from './sql/postgres.js';
export { mysqlExecutor } from './sql/mysql.js';
export { betterSqliteExecutor, nodeSqliteExecutor } from './sql/sqlite.js';
export type { SqlSource } from './sql/detect.js';
export type {
  SqlDialect,
  SqlExecutor,
  SqlFunction,
  SqlParameter,
  SqlRow,
  SqlRows,
  SqlStatement,
  SqlTransaction,
} from './sql/executor.js';

export { createMemoryVFS } from './vfs/memory.js';
export { createNodeVFS } from './vfs/node.js';
export type { VFSAdapter, VFSChange, VFSEntry } from './vfs/adapter.js';

export type { InitializeResult, KernelInfo, ToolInfo } from './protocol.gen.js';
export type { KernelToolName } from './definitions.gen.js';
export { VERSION } from './version.js';
