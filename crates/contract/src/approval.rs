//! Approval: what a person is shown before an effect, what they answer, and the questions that wait for an answer.

use std::any::Any;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Actor, ApprovalOrigin, ApprovalReason, CallContext, ClientId, Target, ToolCall, ToolDefinition,
    ToolError, ToolResult, canonical,
};

/// What a person is shown before an effect: the exact bytes, not a summary.
#[derive(Clone, Debug)]
pub struct ApprovalRequest<'a> {
    pub call: &'a ToolCall,
    pub definition: &'a ToolDefinition,
    pub context: &'a CallContext,
    pub targets: &'a [Target],
    /// Why this call needs approval, one reason for each gate that asks.
    pub reasons: Vec<ApprovalReason>,
    /// What a dry run of a write would answer: its difference, or the rows it would change. `None` where a tool has to
    /// run to know, and where this is unknown.
    pub preview: Option<Value>,
    /// Why there is no preview, where one was expected.
    pub no_preview: Option<String>,
    /// Who uses what is about to change, as far as a gate knows: no part of the effect, hence not of the hash.
    pub reach: Option<Value>,
    /// SHA-256 of everything above that decides the effect. An agreement holds for what has this hash, and for nothing
    /// else.
    pub hash: String,
}

impl ApprovalRequest<'_> {
    /// Whether the call changes files that run later: neither `--yes` nor an earlier approval covers it.
    #[must_use]
    pub fn runs_later(&self) -> bool {
        self.reasons.iter().any(|reason| reason.origin == ApprovalOrigin::RunsLater)
    }

    /// Whether nothing but a default asks: neither a rule nor a file that runs later.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.reasons.iter().all(|reason| matches!(reason.origin, ApprovalOrigin::Default(_)))
    }
}

/// The answer of a person to an approval request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Agreed, by whom, and to the request of which hash.
    Approved { by: String, hash: String },
    /// Refused; the reason is shown.
    Refused { reason: String },
    /// No person can be asked now, for this reason. The question is kept where that is possible, and refused otherwise.
    Later { reason: String },
}

/// Decides on approvals, usually by asking the user.
#[async_trait]
pub trait Approver: Send + Sync {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer;

    /// Where questions are kept that no person could answer at once.
    fn store(&self) -> Option<&dyn ApprovalStore> {
        None
    }
}

/// The outermost call around a question: what starts again from its beginning once the question is answered. An answer
/// holds for the run of this call and for no other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunIdentity {
    pub tool: String,
    pub arguments: Value,
    pub actor: Actor,
    pub session: String,
    pub dry_run: bool,
}

impl RunIdentity {
    /// Of a call that no other call has made. A client is who its token says: the names that it chooses for itself and its
    /// sessions make it no other caller.
    #[must_use]
    pub fn of(call: &ToolCall, context: &CallContext) -> Self {
        let identity = |id: &str| ClientId::parse(id).map_or(id, |client| client.identity).to_owned();
        let actor = match &context.actor {
            Actor::Agent(id) => Actor::Agent(identity(id)),
            Actor::Person(_) | Actor::Tool(_) => context.actor.clone(),
        };
        Self {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            actor,
            session: identity(&context.session),
            dry_run: context.dry_run,
        }
    }

    /// SHA-256 of all of it.
    #[must_use]
    pub fn key(&self) -> String {
        canonical::hash_exact(json!(self))
    }
}

/// A call inside a run whose effect cannot be rolled back, and its answer. When the run starts again the call is not
/// made again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The number of the call among those of its outer call, after the number of that one, and so on.
    pub position: Vec<u32>,
    pub tool: String,
    /// SHA-256 of the arguments.
    pub arguments: String,
    pub result: ToolResult,
}

/// What a person has decided about a question that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum ApprovalDecision {
    /// The call may be made so often in this run. `spent` are those of them that cannot be rolled back.
    Granted {
        by: String,
        times: u32,
        spent: u32,
    },
    Denied {
        by: String,
        reason: String,
    },
}

/// The answer to one question of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAnswer {
    pub id: String,
    /// The hash of what was asked.
    pub hash: String,
    pub decision: ApprovalDecision,
}

/// What is kept of a run, for one attempt to carry it out.
#[derive(Debug)]
pub struct KeptRun {
    pub answers: Vec<KeptAnswer>,
    pub journal: Vec<JournalEntry>,
    /// False when it has done more than is in the journal.
    pub is_whole: bool,
    /// While it is held, no other attempt gets the same answers.
    pub lease: Box<dyn Any + Send + Sync>,
}

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// Short, for people to type.
    pub id: String,
    /// The hash of what is asked.
    pub hash: String,
    /// Milliseconds since the epoch at which it is dropped.
    pub expires_ms: u64,
}

/// Keeps questions that no person could answer at once, their answers, and what their runs have done already.
pub trait ApprovalStore: Send + Sync {
    /// What is kept of a run, if anything is.
    ///
    /// # Errors
    /// `ECONFLICT` when another attempt of the same run is under way; when the store cannot be believed or read.
    fn open(&self, run: &RunIdentity) -> Result<Option<KeptRun>, ToolError>;

    /// Keeps a question of a run, and what the run has done so far that cannot be rolled back.
    ///
    /// # Errors
    /// `EAPPROVAL` when too many questions wait already; when the store cannot be written.
    fn keep(
        &self,
        run: &RunIdentity,
        question: &ApprovalRequest<'_>,
        journal: &[JournalEntry],
    ) -> Result<PendingApproval, ToolError>;

    /// Keeps what a run has done by now, after it has asked or with what was granted to it. A run whose journal is not the
    /// whole of it cannot start again.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn keep_journal(
        &self,
        run: &RunIdentity,
        journal: &[JournalEntry],
        is_whole: bool,
    ) -> Result<(), ToolError>;

    /// Counts a use of a grant that cannot be rolled back, before it happens.
    ///
    /// # Errors
    /// When the store cannot be written; then it must not happen.
    fn spend(&self, run: &RunIdentity, hash: &str) -> Result<(), ToolError>;

    /// Forgets a denial: a person has agreed to the same at another place.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn lift(&self, run: &RunIdentity, hash: &str) -> Result<(), ToolError>;

    /// Forgets a run with all its questions and grants: it takes effect, or has ended. Denials stay.
    ///
    /// # Errors
    /// When the store cannot be written; then the run must not take effect.
    fn finish(&self, run: &RunIdentity) -> Result<(), ToolError>;
}
