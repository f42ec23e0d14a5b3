//! What one pass has found, and the status of a valve.

use serde::{Deserialize, Serialize};
use tgp_contract::RelativePath;

use crate::ValveEvent;

/// What one pass over the tree has found and done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanReport {
    /// Files that are known now.
    pub files: u64,
    /// True when there was no journal, and the files were only remembered.
    pub baseline: bool,
    /// Files that differ from what was known, whether a persona cares or not.
    pub changes: u64,
    /// Events that are in a chronicle now.
    pub triggered: u64,
    pub skipped: u64,
    /// Events that no chronicle could take for now. They are kept and given again.
    pub pending: u64,
    pub actions_done: u64,
    pub actions_failed: u64,
    /// Everything that happened, in order.
    pub events: Vec<ValveEvent>,
    /// Events of this list that it had no room for.
    pub left_out: u64,
}

/// The status of a valve, whether one runs or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValveStatus {
    pub personas: Vec<PersonaStatus>,
    /// Why the file of personas cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personas_error: Option<tgp_contract::ToolError>,
    /// False when there is no journal yet.
    pub has_journal: bool,
    pub files: u64,
    /// The number that was given last; 0 when there was none.
    pub last_sequence: u64,
    /// Events that are in chronicles.
    pub told_events: u64,
    /// Milliseconds since the epoch at which the whole tree was last scanned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scan_ms: Option<u64>,
    /// Events that wait for a chronicle.
    pub pending_events: u64,
    /// Changes that wait for a cooldown to end.
    pub held_changes: u64,
    pub pending_actions: u64,
    pub done_actions: u64,
    /// Actions that were begun and did not end well or at all, the newest first.
    pub unfinished: Vec<UnfinishedAction>,
    /// Events that no chronicle may take, ever.
    pub skipped: u64,
    /// The last of them, the newest first.
    pub skips: Vec<Skip>,
    /// The process that holds the journal now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watcher: Option<Watcher>,
}

/// A persona, with what it has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersonaStatus {
    pub name: String,
    pub filters: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<String>,
    /// `record`, `tool`, `query` or `agent`.
    pub action: String,
    /// Events of it so far.
    pub triggered: u64,
}

/// How far an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    Pending,
    Begun,
    Done,
    Failed,
    /// The process ended while it was carried out. It is not repeated.
    Interrupted,
    Suppressed,
    /// Its event was skipped.
    Skipped,
}

/// An action that was not finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnfinishedAction {
    pub persona: String,
    pub file_path: RelativePath,
    pub state: ActionState,
    /// The id of the event it follows from.
    pub trigger: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An event that no chronicle may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skip {
    pub sequence: u64,
    pub chronicle: RelativePath,
    pub reason: String,
}

/// The process that holds the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Watcher {
    pub pid: u32,
    /// `watch` or `scan`.
    pub purpose: String,
    pub since_ms: u64,
}
