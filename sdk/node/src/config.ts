/** The configuration file `tgp.config.ts`; `docs/configuration.md` explains every field. */

export interface TGPConfig {
  /** The agent's root, a git repository. Default `./.tgp`. */
  rootDir?: string;
  fs?: {
    /** Where tools may read and write. */
    allowedDirs?: string[];
    /** What tools may read and not write. */
    readDirs?: string[];
    blockUpwardTraversal?: boolean;
  };
  /** Packages that tools may import. */
  allowedImports?: string[];
  /** URL prefixes for `tgp.fetch`. */
  allowedFetchUrls?: string[];
  /** Keys that requests use by name and tools never see. */
  secrets?: Record<string, SecretConfig>;
  sandbox?: SandboxConfig;
  git?: GitConfig;
  registry?: {
    onDuplicate?: 'confirm' | 'warn' | 'refuse';
    embeddings?: { baseUrl: string; model: string; apiKey?: string | undefined };
  };
  /** The database of `exec_sql`, unless the application executes SQL itself. */
  db?: {
    url?: string | undefined;
    readOnly?: boolean;
    freeReads?: boolean;
    statementTimeoutMs?: number;
    maxRows?: number;
    maxBytes?: number;
    pool?: number;
  };
  audit?: {
    durability?: 'batched' | 'call';
    redact?: { names?: string[]; environment?: string[] };
  };
  chronicle?: {
    scope?: string[];
    layout?: 'tree' | 'beside';
    durability?: 'batched' | 'event';
    edits?: boolean;
  };
  graph?: { history?: number; maxRows?: number; timeoutMs?: number; url?: string | undefined };
  guardian?: { invariants?: string; touchedFiles?: 'pass' | 'halt' };
  policy?: { files?: string[] };
  tdd?: { mode?: 'strict' | 'explore' | 'debug'; tests?: string[]; exempt?: string[]; command?: string };
  jail?: JailConfig;
  llm?: LlmConfig;
}

/** The fields are in `docs/secrets.md`. */
export type SecretConfig = { [field: string]: unknown };

export interface SandboxConfig {
  memoryMb?: number;
  cpuMs?: number;
  wallMs?: number;
  /** The most that one call may ask for, after an approval. */
  ceiling?: { memoryMb?: number; cpuMs?: number; wallMs?: number };
  outputBytes?: number;
  logLines?: number;
  logBytes?: number;
  bridgeCalls?: number;
  /** Warm workers that are kept ready. */
  pool?: number;
  /** Repeatable randomness. */
  seed?: number;
  /** A stopped clock, in milliseconds since the epoch. */
  clock?: number;
}

export interface GitConfig {
  /** Any URL of git, or a path. */
  url?: string | undefined;
  provider?: 'github' | 'gitlab' | 'bitbucket';
  repo?: string;
  branch?: string;
  writeStrategy?: 'direct' | 'pr';
  apiBaseUrl?: string;
  auth?: { token?: string | undefined; user?: string; email?: string };
}

export interface JailConfig {
  memoryMb?: number;
  processes?: number;
  fileMb?: number;
  layerMb?: number;
  timeoutMs?: number;
  outputBytes?: number;
  sessionFiles?: number;
  projectEntries?: number;
  direct?: string[];
  readable?: string[];
}

export interface LlmConfig {
  provider?: string;
  model?: string;
  baseUrl?: string | undefined;
  keyVariable?: string;
  contextTokens?: number;
  maxOutputTokens?: number;
  temperature?: number;
  body?: Record<string, unknown>;
  budgets?: { steps?: number; tokens?: number; seconds?: number; cost?: number };
  prices?: { input?: number; output?: number; cachedInput?: number; cacheWrite?: number };
  timeouts?: { connectSeconds?: number; idleSeconds?: number; totalSeconds?: number };
  attempts?: number;
}

/** Gives the configuration its types; the kernel reads and checks it. */
export function defineTGPConfig(config: TGPConfig): TGPConfig {
  return config;
}
