//! Everything the loop learns from outside comes through one of these, so that a test or a replay can play it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{ModelProvider, TddState, ToolCaller, ToolError};

use crate::TranscriptLine;

/// What a run of the loop works with.
#[derive(Clone, Copy)]
pub struct AgentPorts<'a> {
    pub provider: &'a dyn ModelProvider,
    pub tools: &'a dyn ToolCaller,
    pub journal: &'a dyn TranscriptJournal,
    pub clock: &'a dyn AgentClock,
    pub standing: &'a dyn TddStateSource,
    pub recovery: &'a dyn Recovery,
}

/// Provides the time. It is asked once for each line of the transcript, and for nothing else.
pub trait AgentClock: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64;
}

/// How safe a line must be before the loop continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineDurability {
    /// It survives the end of the process.
    Written,
    /// It survives the end of the power, too: the next thing that happens is an effect.
    Synced,
}

/// Keeps the transcript. It only ever grows.
pub trait TranscriptJournal: Send + Sync {
    /// Returns when the line is as safe as wanted.
    ///
    /// # Errors
    /// When it cannot be kept; the session stops then.
    fn append(&self, line: &TranscriptLine, safety: LineDurability) -> Result<(), ToolError>;
}

/// Provides the state of test-driven work.
pub trait TddStateSource: Send + Sync {
    fn state(&self) -> TddState;
}

/// The result of a call that was begun in a run that was killed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum RecoveredOutcome {
    /// It ended, and this is what its record says.
    Recorded { outcome: Value },
    /// It left no record: it may have been anywhere between its beginning and its end.
    Unknown,
}

/// Finds out the results of calls.
#[async_trait]
pub trait Recovery: Send + Sync {
    /// # Errors
    /// When the records cannot be read.
    async fn fate(&self, session: &str, call_id: &str) -> Result<RecoveredOutcome, ToolError>;
}
