//! The messages of the protocol: what each method takes and gives. `docs/protocol.md` explains them, and the types of
//! both clients are generated from their schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tgp_contract::{Effect, ToolError};

/// The version of the protocol. A kernel refuses a client that speaks another.
pub const PROTOCOL_VERSION: u32 = 1;

/// The methods that a client calls.
pub mod method {
    pub const INITIALIZE: &str = "initialize";
    pub const TOOLS_LIST: &str = "tools/list";
    pub const TOOLS_CALL: &str = "tools/call";
    pub const PROMPT_GET: &str = "prompt/get";
    pub const SESSION_RUN: &str = "session/run";
    pub const SHUTDOWN: &str = "shutdown";
}

/// The methods that the kernel calls at the host.
pub mod callback {
    pub const APPROVE: &str = "host/approve";
    pub const CALL: &str = "host/call";
    pub const SQL_BEGIN: &str = "host/sql/begin";
    pub const SQL_EXECUTE: &str = "host/sql/execute";
    pub const SQL_SAVEPOINT: &str = "host/sql/savepoint";
    pub const SQL_END: &str = "host/sql/end";
    pub const FILE_READ: &str = "host/files/read";
    pub const FILE_ENTRY: &str = "host/files/entry";
    pub const FILE_LIST: &str = "host/files/list";
    pub const FILE_APPLY: &str = "host/files/apply";
}

/// Messages without an answer.
pub mod notification {
    /// Both directions: the request with this id is of no more interest.
    pub const CANCEL: &str = "cancel";
    /// From the kernel: a line of its log.
    pub const LOG: &str = "log";
    /// From the kernel: an event of a session that the client has started.
    pub const SESSION_EVENT: &str = "session/event";
}

/// The first request of a client.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InitializeParams {
    pub protocol_version: u32,
    pub client: ClientInfo,
    /// On the socket: a capability token of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What the client calls its work, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// On standard streams: how the kernel boots, and what the host does for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostParams>,
}

impl std::fmt::Debug for InitializeParams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A token is a secret.
        formatter.debug_struct("InitializeParams").field("client", &self.client).finish_non_exhaustive()
    }
}

/// A program that speaks the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientInfo {
    /// What it calls itself, for the record.
    pub name: String,
    pub version: String,
}

/// What the program that has started the kernel decides and offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostParams {
    /// The project; the directory that the kernel was started in when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// A configuration file other than `tgp.config.{ts,js,json}` of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_file: Option<String>,
    #[serde(default)]
    pub consent: HostConsent,
    /// The host answers `host/approve`.
    #[serde(default)]
    pub approves: bool,
    /// The host takes `log` notifications from this level on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<HostLogLevel>,
    /// The host executes the SQL of `exec_sql` and of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<HostSql>,
    /// The host keeps the files of the tool repository.
    #[serde(default)]
    pub files: bool,
    /// Functions of the host that tools import from `host:MODULE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<HostTool>,
}

/// Which approvals the host is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostConsent {
    /// The program that makes a call agrees to it by making it: only what a rule asks for, and files that run later, are
    /// asked for.
    #[default]
    Rules,
    /// Every effect is asked for.
    Effects,
}

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostLogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// What the SQL executor of a host can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostSql {
    pub dialect: HostDialect,
    /// It can begin, commit and roll back. Without it each statement is on its own and stays when a run fails.
    #[serde(default)]
    pub transactions: bool,
    /// It can begin a transaction that the database itself keeps from writing. Without it every statement counts as a write.
    #[serde(default)]
    pub read_only: bool,
    /// It can return to a savepoint. Without it a statement that fails ends its transaction.
    #[serde(default)]
    pub savepoints: bool,
    #[serde(default)]
    pub placeholders: HostPlaceholders,
}

/// How the place holders of statements are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostPlaceholders {
    /// `$1` for postgresql, `?` for sqlite and mysql.
    #[default]
    Native,
    /// `%s`, and every other `%` is doubled.
    Format,
}

/// The SQL that a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostDialect {
    Sqlite,
    Postgresql,
    Mysql,
}

impl HostLogLevel {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

impl HostDialect {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
        }
    }
}

/// One function of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostTool {
    /// The module that exports it: `host:MODULE`.
    pub module: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its one argument, an object.
    #[serde(default = "any_object")]
    pub input_schema: Value,
    /// JSON Schema of what it returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub effect: HostEffect,
}

fn any_object() -> Value {
    serde_json::json!({ "type": "object" })
}

/// What a function of the host can do to the world. Gates decide by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostEffect {
    Read,
    Write,
    #[default]
    Execute,
    Network,
}

impl From<Effect> for HostEffect {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Read => Self::Read,
            Effect::Write => Self::Write,
            Effect::Execute => Self::Execute,
            Effect::Network => Self::Network,
        }
    }
}

/// The answer to `initialize`: the kernel has booted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    pub protocol_version: u32,
    pub kernel: KernelInfo,
    /// The name of the client's session in the audit.
    pub session: String,
    pub project: String,
    /// What a person should know, such as fields of the configuration that did not take effect.
    pub notices: Vec<String>,
}

/// The kernel, and what generated clients are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelInfo {
    pub version: String,
    /// SHA-256 of the canonical JSON of all tool definitions. A client that was made with others says so.
    pub definitions_hash: String,
    /// The part of the system prompt that is the same for every project.
    pub static_prompt: String,
}

/// One tool of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    pub name: String,
    pub aliases: Vec<String>,
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Map<String, Value>,
    pub effect: HostEffect,
    /// It can show what it would do and change nothing.
    pub dry_run: bool,
}

/// What can be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolsListResult {
    pub tools: Vec<ToolInfo>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolsCallParams {
    pub tool: String,
    /// Without them, a call has none.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Show what would happen and change nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// How a call has ended. A call that failed has an answer, too; JSON-RPC errors are about the message itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolsCallResult {
    pub ok: bool,
    /// What the tool gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

/// The system prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptGetResult {
    /// The system prompt with the state of this project.
    pub prompt: String,
}

/// Has the agent of the kernel work on a task. Its events are `session/event` notifications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionRunParams {
    pub task: String,
    /// `openai`, `anthropic` or `script:FILE`; what the configuration says when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Which effects of the agent are asked for: all of them, unless the host says that rules do.
    #[serde(default = "every_effect")]
    pub consent: HostConsent,
}

fn every_effect() -> HostConsent {
    HostConsent::Effects
}

/// An event of a session, as `tgp run --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEvent {
    /// The id of the request that has started the session.
    pub request: RequestId,
    pub event: Map<String, Value>,
}

/// What a session came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRunResult {
    /// The last event of the session: its summary.
    pub summary: Map<String, Value>,
}

/// A question for the host, with everything that decides the effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApproveParams {
    pub tool: String,
    pub arguments: Value,
    pub effect: HostEffect,
    /// What the call reads and changes.
    pub targets: Vec<Map<String, Value>>,
    /// Why it is asked.
    pub reasons: Vec<String>,
    /// The call changes files that run later without the kernel.
    pub runs_later: bool,
    /// What a dry run would answer, such as a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Value>,
    /// SHA-256 of everything above that decides the effect. The answer holds for this.
    pub hash: String,
}

/// What the host, or a person at it, has answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveResult {
    pub approved: bool,
    /// Who has answered, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why not; the agent is shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A call of a function of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostCallParams {
    pub module: String,
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// What a function of the host gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostCallResult {
    #[serde(default)]
    pub result: Value,
}

/// Begins a transaction of the host's database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SqlBeginParams {
    /// The kernel's number of the transaction; all later requests carry it.
    pub transaction: u64,
    pub read_only: bool,
}

/// Runs one statement. Without transactions `transaction` is of no use to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SqlExecuteParams {
    pub transaction: u64,
    /// With place holders as the host has said.
    pub sql: String,
    /// In the order of the place holders. Bytes are `{"$base64": "aGk="}`, integers of 64 bits
    /// `{"$bigint": "9007199254740993"}`, moments `{"$date": "2026-11-17T02:00:00.000Z"}`.
    pub parameters: Vec<Value>,
    /// Rows beyond this number are not wanted.
    pub max_rows: u64,
}

/// The answer to a request that gives nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// What a statement gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SqlExecuteResult {
    #[serde(default)]
    pub columns: Vec<String>,
    /// One object a row, by column name. A 64-bit integer outside ±2^53 and every decimal is a string, bytes are base64,
    /// times are ISO 8601.
    #[serde(default)]
    pub rows: Vec<Map<String, Value>>,
    /// Rows that were inserted, updated or deleted.
    #[serde(default)]
    pub changed: u64,
    /// There were more rows than asked for.
    #[serde(default)]
    pub truncated: bool,
}

/// Sets a savepoint, keeps what was done since (`release`), or undoes it (`rollback`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SqlSavepointParams {
    pub transaction: u64,
    pub action: SavepointAction,
    /// The name of the savepoint, an identifier.
    pub name: String,
}

/// What is done with a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SavepointAction {
    Set,
    Release,
    Rollback,
}

/// Ends a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SqlEndParams {
    pub transaction: u64,
    pub commit: bool,
}

/// Asks for a file of the host: its content, what is there, or everything below a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilePathParams {
    /// With `/`, relative to the tool repository; empty for the repository itself.
    pub path: String,
}

/// A file of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileReadResult {
    /// Base64; nothing when there is no such file.
    pub content: Option<String>,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEntryResult {
    /// Nothing when there is nothing at the path.
    pub entry: Option<FileEntry>,
}

/// What is below a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileListResult {
    /// Everything below the directory, recursively.
    pub entries: Vec<FileEntry>,
}

/// A file or a directory of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEntry {
    pub path: String,
    pub directory: bool,
    /// Bytes of a file.
    #[serde(default)]
    pub size: u64,
}

/// Applies all changes or none of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileApplyParams {
    pub changes: Vec<FileChange>,
}

/// A write makes the missing directories; removing what does not exist is not an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    pub path: String,
    /// Base64 of the new content; the file is removed when there is none.
    pub content: Option<String>,
}

/// A line of the kernel's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogParams {
    pub level: HostLogLevel,
    /// The part of the kernel, such as `worker`.
    pub target: String,
    pub message: String,
}

/// The request that is of no more interest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    pub id: RequestId,
}

/// The id of a request. Each side numbers its own requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RequestId {
    Number(u64),
    Text(String),
}

/// Why a request of the protocol failed: `error` of a JSON-RPC answer, in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpcError {
    /// One of JSON-RPC's numbers, or -32000 where `data` says it.
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<ToolError>>,
}
