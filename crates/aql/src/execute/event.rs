//! The events of a run, in order and without loss.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{FileEffect, ToolError};

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RunEvent {
    /// The first event. `steps` counts those that are written in the query, those inside `map` once.
    Run { id: String, query: String, steps: u64, resumed: bool },
    /// A step begins, at `attempt` counted from 1.
    Begun { step: String, kind: String, attempt: u32 },
    /// A step has its value.
    Done { step: String, kind: String, how: ValueSource, duration_ms: u64, tokens: u64, calls: u64 },
    /// An attempt has failed; `again` when another follows.
    Failed { step: String, kind: String, attempt: u32, error: ToolError, again: bool },
    /// A step failed and its `on_error` value replaces it.
    Excused { step: String, kind: String, error: ToolError },
    /// The last event.
    End { report: Box<RunReport> },
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    /// The step was done now.
    Ran,
    /// From the cache.
    Cached,
    /// From the journal of the run that is resumed.
    Kept,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    pub run: String,
    pub query: String,
    /// The query's value; null when it failed.
    pub outputs: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// The step that `error` is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Steps with an effect that were done in this run, taken from the cache, and taken from the journal.
    pub ran: u64,
    pub cached: u64,
    pub kept: u64,
    /// The whole run, what was done before a resume included.
    pub tokens: u64,
    pub calls: u64,
    pub duration_ms: u64,
    /// Files that calls of this run have changed; at most a thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileEffect>,
}
