//! What the loop cannot know by itself: it asks a world, which is the real one or a recorded one.

use std::time::Duration;

use tgp_contract::{CallVerdict, Execution, FileEffect, StreamEvent, TddState, ToolError, ToolResult};

use crate::session::Session;
use crate::turn::PendingCall;
use crate::{AgentEvent, LineDurability, TranscriptLine, TurnEnding};

/// Why the loop cannot continue at all.
#[derive(Debug)]
pub(crate) enum LoopError {
    /// The transcript cannot be kept.
    Failed(ToolError),
    /// The recording ends here.
    Ended,
    /// The recording says something else.
    Differs { line: u64, expected: String, actual: String },
}

impl From<ToolError> for LoopError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// What was received of a turn.
#[derive(Debug)]
pub(crate) struct TurnOutput {
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) ending: TurnEnding,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct CallOutcome {
    pub(crate) result: ToolResult,
    pub(crate) verdict: CallVerdict,
    /// `None` in transcripts of 0.1.0.
    pub(crate) execution: Option<Execution>,
    /// The verdict in the audit, for a call that was recovered from it.
    pub(crate) recorded: Option<CallVerdict>,
    pub(crate) duration_us: u64,
    pub(crate) files: Vec<FileEffect>,
    pub(crate) files_omitted: u64,
    /// As a line of 0.1.0 says it: it ran, and what it wanted to change was refused.
    pub(crate) unapplied: bool,
}

/// A call on its way out of the loop.
#[derive(Debug)]
pub(crate) struct CallRequest {
    pub(crate) wanted: PendingCall,
    /// Its arguments can only be refused, and its tool might not.
    pub(crate) refused: bool,
}

/// Everything the loop learns, and everything it does.
pub(crate) trait AgentIo {
    /// The time for the next line.
    fn now_ms(&mut self) -> Result<u64, LoopError>;

    /// The state of test-driven work, for the next line.
    fn state(&mut self) -> Result<TddState, LoopError>;

    /// The version of the texts that the loop adds to the conversation.
    fn prompt_version(&self) -> u64;

    fn append(&mut self, line: &TranscriptLine, safety: LineDurability) -> Result<(), LoopError>;

    /// Whether a stop is requested.
    fn stop_wished(&mut self) -> bool;

    async fn tell(&mut self, event: AgentEvent);

    /// Asks the model what a session asks next, and waits for its turn no longer than `patience`.
    async fn turn(&mut self, session: &Session, patience: Option<Duration>) -> Result<TurnOutput, LoopError>;

    /// Begins calls.
    fn make(&mut self, orders: Vec<CallRequest>);

    /// Waits for the next of them, in their order.
    async fn settle(&mut self) -> Result<CallOutcome, LoopError>;

    /// Finds out the result of a call of a run that was killed. The inner error is one of the records.
    async fn recover(&mut self, session: &str, id: &str)
    -> Result<Result<CallOutcome, ToolError>, LoopError>;
}
