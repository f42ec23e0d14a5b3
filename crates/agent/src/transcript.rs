//! The lines of a transcript: enough to go on after a crash, and to play the session again.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{
    Code, Effect, FileEffect, StreamEvent, TddMode, TddState, ToolDefinition, ToolError, ToolResult,
};

use crate::summary::is_zero;
use crate::{Budgets, Limits, Summary};

/// The format of the lines. A reader that meets another number does not understand them.
pub(crate) const VERSION: u64 = 3;

/// One line of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Counts from 0 without a gap.
    pub sequence: u64,
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    #[serde(flatten)]
    pub kind: LineKind,
}

/// How a turn of the model ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnEnding {
    /// With its `end` event.
    Complete,
    /// With an error, before or after its first event.
    Failed { error: ToolError },
    /// A person wished to stop.
    Interrupted,
    /// The session's time was used up.
    OutOfTime,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum LineKind {
    /// The first line: everything the loop was told.
    Session {
        version: u64,
        id: String,
        actor: String,
        task: String,
        provider: String,
        model: String,
        system: String,
        tools: Vec<ToolDefinition>,
        mode: TddMode,
        state: TddState,
        budgets: Budgets,
        limits: Limits,
    },
    /// A turn of the model, when it has ended. `request` is the hash of what it was asked: the SHA-256 of the canonical
    /// JSON of `{ model, limits: { maxOutputTokens, temperature }, turn, system, tools, messages }`, where `system`,
    /// `tools` and each of the `messages` are the SHA-256 of their own canonical JSON.
    Turn { step: u64, request: String, events: Vec<StreamEvent>, ending: TurnEnding },
    /// A call is about to be made.
    Call { step: u64, id: String, call_id: String, tool: String, arguments: Value, effect: Option<Effect> },
    /// What came of it.
    Result {
        id: String,
        result: ToolResult,
        verdict: String,
        duration_us: u64,
        files: Vec<FileEffect>,
        /// Files for which the line has no room.
        #[serde(default, skip_serializing_if = "is_zero")]
        files_omitted: u64,
        /// True when the call ran and a gate then refused what it wanted to change: it was executed, and not applied.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unapplied: bool,
        state: TddState,
    },
    /// A later run goes on from here, with a model, bounds and limits of its own, and perhaps with something more from the user.
    Resumed {
        provider: String,
        model: String,
        budgets: Budgets,
        limits: Limits,
        state: TddState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The run has ended. A session that can go on may have more lines after it.
    Stop { summary: Box<Summary> },
}

impl Line {
    /// The line as a transcript holds it, without its line break. The same line always gives the same bytes.
    #[must_use]
    pub fn encode(&self) -> String {
        // Every key of these types is a text, so there is nothing that JSON could not say.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Line::encode`] has written, and nothing else: a line that somebody touched has other bytes.
    ///
    /// # Errors
    /// `EINTEGRITY`.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let fault = |why: String| ToolError::new(Code::Integrity, why);
        let line: Self = serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
        if line.encode() == text {
            Ok(line)
        } else {
            Err(fault("its bytes are not the ones that its content is written with".to_owned()))
        }
    }
}
