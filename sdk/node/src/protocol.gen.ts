// Written by hand after crates/ipc/src/rpc/protocol.rs until `npm run generate` can read sdk/protocol.schema.json.

export type RequestId = number | string;
export type HostConsent = 'rules' | 'effects';
export type HostLogLevel = 'error' | 'warn' | 'info' | 'debug';
export type HostDialect = 'sqlite' | 'postgresql' | 'mysql';
export type HostEffect = 'read' | 'write' | 'execute' | 'network';
export type HostPlaceholders = 'native' | 'format';
export type SavepointAction = 'set' | 'release' | 'rollback';

export interface InitializeParams {
  protocolVersion: number;
  client: ClientInfo;
  token?: string;
  session?: string;
  host?: HostParams;
}

export interface ClientInfo {
  name: string;
  version: string;
}

export interface HostParams {
  directory?: string;
  configFile?: string;
  consent?: HostConsent;
  approves?: boolean;
  log?: HostLogLevel;
  sql?: HostSql;
  files?: boolean;
  tools?: HostTool[];
}

export interface HostSql {
  dialect: HostDialect;
  transactions?: boolean;
  readOnly?: boolean;
  savepoints?: boolean;
  placeholders?: HostPlaceholders;
}

export interface HostTool {
  module: string;
  name: string;
  description?: string;
  inputSchema?: unknown;
  outputSchema?: unknown;
  effect?: HostEffect;
}

export interface InitializeResult {
  protocolVersion: number;
  kernel: KernelInfo;
  session: string;
  project: string;
  notices: string[];
}

export interface KernelInfo {
  version: string;
  definitions: string;
  staticPrompt: string;
}

export interface ToolInfo {
  name: string;
  aliases: string[];
  description: string;
  inputSchema: { [k: string]: unknown };
  effect: HostEffect;
  dryRun: boolean;
}

export interface ToolsListResult {
  tools: ToolInfo[];
}

export interface ToolsCallParams {
  tool: string;
  arguments?: { [k: string]: unknown };
  dryRun?: boolean;
}

export interface ToolsCallResult {
  ok: boolean;
  data?: unknown;
  error?: ToolError;
}

export interface ToolError {
  code: string;
  message: string;
  details?: { [k: string]: unknown };
}

export interface PromptGetResult {
  prompt: string;
}

export interface SessionRunParams {
  task: string;
  provider?: string;
  model?: string;
  maxSteps?: number;
}

export interface SessionEvent {
  request: RequestId;
  event: { [k: string]: unknown };
}

export interface SessionRunResult {
  summary: { [k: string]: unknown };
}

export interface ApproveParams {
  tool: string;
  arguments: unknown;
  effect: HostEffect;
  targets: { [k: string]: unknown }[];
  reasons: string[];
  runsLater: boolean;
  preview?: unknown;
  hash: string;
}

export interface ApproveResult {
  approved: boolean;
  by?: string;
  reason?: string;
}

export interface HostCallParams {
  module: string;
  name: string;
  arguments: { [k: string]: unknown };
}

export interface HostCallResult {
  result?: unknown;
}

export interface SqlBeginParams {
  transaction: number;
  readOnly: boolean;
}

export interface SqlExecuteParams {
  transaction: number;
  sql: string;
  parameters: unknown[];
  maxRows: number;
}

export interface SqlExecuteResult {
  columns?: string[];
  rows?: { [k: string]: unknown }[];
  changed?: number;
  truncated?: boolean;
}

export interface SqlSavepointParams {
  transaction: number;
  action: SavepointAction;
  name: string;
}

export interface SqlEndParams {
  transaction: number;
  commit: boolean;
}

export interface FilePathParams {
  path: string;
}

export interface FileReadResult {
  content: string | null;
}

export interface FileEntryResult {
  entry: FileEntry | null;
}

export interface FileListResult {
  entries: FileEntry[];
}

export interface FileEntry {
  path: string;
  directory: boolean;
  size?: number;
}

export interface FileApplyParams {
  changes: FileChange[];
}

export interface FileChange {
  path: string;
  content: string | null;
}

export interface LogParams {
  level: HostLogLevel;
  target: string;
  message: string;
}

export interface CancelParams {
  id: RequestId;
}

export interface RpcError {
  code: number;
  message: string;
  data?: ToolError;
}
