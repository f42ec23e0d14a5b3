//! The lines of a transcript: enough to resume after a crash, and to play the session again.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{
    CallVerdict, Code, Effect, Execution, FileEffect, StreamEvent, TddMode, TddState, ToolDefinition,
    ToolError, ToolResult,
};

use crate::summary::is_zero;
use crate::{AgentLimits, Budgets, Summary};

/// The format of the lines. A reader that meets another number does not understand them.
pub(crate) const VERSION: u64 = 3;

/// The version of the texts that the loop itself adds to the conversation: results that were not executed, notes,
/// summaries of earlier turns. It changes with every change of such a text, because the hash of each request covers them.
pub(crate) const PROMPT_VERSION: u64 = 4;
/// The version of transcripts that name none.
const FIRST_PROMPT_VERSION: u64 = 1;

fn first_prompt_version() -> u64 {
    FIRST_PROMPT_VERSION
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_prompt_version(version: &u64) -> bool {
    *version == FIRST_PROMPT_VERSION
}

/// One line of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptLine {
    /// Counts from 0 without a gap.
    pub sequence: u64,
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    #[serde(flatten)]
    pub kind: TranscriptLineKind,
}

/// How a turn of the model ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnEnding {
    /// With its `end` event.
    Complete,
    /// With an error, before or after its first event.
    Failed { error: ToolError },
    /// With an error in the middle, before anything of it had an effect: what was received is discarded, and the same turn is
    /// asked for again. Lines of 0.1.0 do not have it.
    Discarded { error: ToolError },
    /// A person wished to stop.
    Interrupted,
    /// The session's time was used up.
    OutOfTime,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TranscriptLineKind {
    /// The first line: all inputs of the loop.
    Session {
        version: u64,
        #[serde(default = "first_prompt_version", skip_serializing_if = "is_first_prompt_version")]
        prompt_version: u64,
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
        limits: AgentLimits,
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
        verdict: CallVerdict,
        /// How far the execution went. Lines of 0.1.0 do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        execution: Option<Execution>,
        /// The verdict in the audit, for a call that was recovered from it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recorded: Option<CallVerdict>,
        duration_us: u64,
        files: Vec<FileEffect>,
        /// Files for which the line has no room.
        #[serde(default, skip_serializing_if = "is_zero")]
        files_omitted: u64,
        /// In lines of 0.1.0: the call ran, and a gate then refused what it wanted to change.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unapplied: bool,
        state: TddState,
    },
    /// A later run resumes here, with its own model, bounds and limits, and perhaps with something more from the user.
    Resumed {
        #[serde(default = "first_prompt_version", skip_serializing_if = "is_first_prompt_version")]
        prompt_version: u64,
        provider: String,
        model: String,
        budgets: Budgets,
        limits: AgentLimits,
        state: TddState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The run has ended. A session that can be resumed may have more lines after it.
    Stop { summary: Box<Summary> },
}

impl TranscriptLine {
    /// The version of the loop's texts from this line on, where a run begins with it.
    pub(crate) fn prompt_version(&self) -> Option<u64> {
        match self.kind {
            TranscriptLineKind::Session { prompt_version, .. }
            | TranscriptLineKind::Resumed { prompt_version, .. } => Some(prompt_version),
            _ => None,
        }
    }

    /// The line without what follows from the text of a request: its hash, and tokens that were estimated from its length.
    pub(crate) fn without_request(&self) -> Self {
        let mut line = self.clone();
        match &mut line.kind {
            TranscriptLineKind::Turn { request, .. } => request.clear(),
            TranscriptLineKind::Stop { summary } if summary.usage_estimated => {
                summary.usage.input_tokens = 0;
            }
            _ => {}
        }
        line
    }

    /// The line as a transcript holds it, without its line break. The same line always gives the same bytes.
    #[must_use]
    pub fn encode(&self) -> String {
        // Every key of these types is a text, so there is nothing that JSON could not say.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`TranscriptLine::encode`] has written, and nothing else: a line that was edited has other bytes.
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
