//! What a run learns from outside, and where it is kept.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{AgentRunner, CapabilityToken, ToolCaller, ToolError};

/// What a run works with.
#[derive(Clone)]
pub struct QueryPorts {
    pub tools: Arc<dyn ToolCaller>,
    pub agents: Arc<dyn AgentRunner>,
    pub tokens: Arc<dyn TokenUsage>,
    pub journal: Arc<dyn QueryJournal>,
    pub cache: Arc<dyn Cache>,
    pub world: Arc<dyn QueryHost>,
}

/// What one attempt at a step may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptScope {
    /// The step, for people.
    pub step: String,
    /// Own names of the tools it may call. What a forged tool calls for its part is not among them.
    pub tools: Vec<String>,
    /// The session its calls are made in: that of the run, or the agent's own.
    pub session: String,
}

/// Makes the token of one attempt at a step from that of the run.
pub trait TokenUsage: Send + Sync {
    /// # Errors
    /// When it cannot be made; the step fails then.
    fn attenuated(&self, scope: &AttemptScope) -> Result<Option<CapabilityToken>, ToolError>;
}

/// One line of a run's journal. Steps that are made of others have none but [`JournalLine::Excused`]: what is inside them has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum JournalLine {
    /// An attempt at a step begins; nothing of it has happened. `call` is the id of its call, for an agent its session.
    Begun { step: String, attempt: u32, call: String },
    /// The attempt is about to take effect. Without this line nothing of it has happened, and it can be made again.
    Effecting { step: String, attempt: u32 },
    /// A step has a value. Written before any step uses it. `worked_ms` is how long the run has worked until then,
    /// before it was last resumed included; what a killed run has worked since its last such line is not known.
    Done {
        step: String,
        value: Value,
        tokens: u64,
        calls: u64,
        cached: bool,
        #[serde(default)]
        worked_ms: u64,
    },
    /// An attempt has failed, or was rolled back; what it has used counts all the same. There is no such line for an
    /// attempt whose end is unknown. With `happened` it was carried out and only its value cannot be used, so it is not
    /// made again.
    Failed {
        step: String,
        attempt: u32,
        error: ToolError,
        tokens: u64,
        calls: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        happened: bool,
    },
    /// A step was given up, and its `on_error` has given this value instead.
    Excused { step: String, value: Value, error: ToolError },
    /// A run has ended without its value, after working so long, before it was last resumed included.
    Worked { ms: u64 },
}

/// Keeps the lines of one run. It only ever grows.
pub trait QueryJournal: Send + Sync {
    /// Returns when the line survives the end of this process.
    ///
    /// # Errors
    /// When it cannot be kept; the run stops then.
    fn append(&self, line: &JournalLine) -> Result<(), ToolError>;
}

/// Values of steps that said `cache`, by the hash of everything that decides them.
pub trait Cache: Send + Sync {
    fn get(&self, key: &str) -> Option<Value>;
    /// Whether it could be kept does not matter to the run.
    fn put(&self, key: &str, value: &Value);
}

/// The result of a call that was begun in a run that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlierOutcome {
    /// It was carried out; its answer is not kept. `entry` is its entry of the audit.
    CarriedOut { entry: u64 },
    /// It ended without an effect: it was refused, or it failed.
    NotCarriedOut,
    /// It left no record.
    Unknown,
}

/// What a run asks its host for in addition to calls.
#[async_trait]
pub trait QueryHost: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64;

    /// Distinguishes two states of the forged tools, such as a commit; `None` when unknown, and then nothing of them is
    /// cached.
    async fn tools_version(&self) -> Option<String>;

    /// The commit that the graph would answer about; `None` for changed files and when unknown.
    async fn graph_version(&self, commit: Option<&str>) -> Option<String>;

    /// Distinguishes two models that have this name, or to none: provider, model, server, the content of a script.
    /// `None` when unknown, and then nothing of an agent is cached.
    async fn model_version(&self, model: Option<&str>) -> Option<String>;

    /// The result of a call.
    ///
    /// # Errors
    /// When the records cannot be read.
    async fn fate(&self, session: &str, call: &str) -> Result<EarlierOutcome, ToolError>;
}
