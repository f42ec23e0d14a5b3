//! What a valve writes into chronicles, and what it reports to its listener.

use serde::{Deserialize, Serialize};
use tgp_contract::{ChronicleEvent, FileEffect, RelativePath, ToolError};

/// The type of the event that a matching change becomes.
pub const TRIGGER_EVENT: &str = "VALVE_PERSONA_TRIGGER";
/// The type of the event that the outcome of an action becomes.
pub const ACTION_EVENT: &str = "VALVE_ACTION";
/// Where events go that may not be beside their file.
pub use tgp_contract::PROJECT_CHRONICLE;

/// What of a persona has matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerCause {
    #[serde(rename = "type")]
    pub kind: TriggerType,
    /// The filter or the pattern, as the file of personas has it.
    pub details: String,
}

/// What a persona was triggered by: the path of a change, or its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerType {
    Filter,
    Content,
}

/// One thing that happened in a valve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ValveEvent {
    /// The tree was compared with the journal for the first time since this valve was opened.
    Started {
        files: u64,
        /// True when there was no journal, and the files were only remembered.
        baseline: bool,
        /// Changes that had happened while no valve was running.
        backfilled: u64,
        personas: u64,
    },
    /// A persona was triggered, and its event is in a chronicle.
    Triggered {
        persona: String,
        chronicle: RelativePath,
        event: Box<ChronicleEvent>,
    },
    ActionBegun {
        persona: String,
        file_path: RelativePath,
        trigger: String,
    },
    ActionDone {
        persona: String,
        file_path: RelativePath,
        trigger: String,
        ok: bool,
        summary: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileEffect>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
        /// Why it was not begun: `own` for a change that the persona made itself, `chain` where too many follow from one
        /// another, `pace` where it acts on one file again and again, `gone` where the persona wants it no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suppressed: Option<String>,
    },
    /// No chronicle took an event, because none may be written. It is not tried again.
    Skipped {
        sequence: u64,
        chronicle: RelativePath,
        file_path: Option<RelativePath>,
        reason: String,
    },
    /// Something a person should know; the valve continues.
    Problem {
        error: ToolError,
    },
    /// The whole tree was scanned again.
    Rescanned {
        reason: String,
        files: u64,
        changes: u64,
    },
    /// The file of personas was read again.
    Reloaded {
        personas: u64,
    },
}
