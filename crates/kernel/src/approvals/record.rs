//! What is kept of a run that waits for approvals.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tgp_contract::{
    ApprovalDecision, ApprovalReason, ApprovalRequest, CallContext, JournalEntry, PendingApproval,
    RunIdentity, Target, ToolCall, ToolDefinition, canonical,
};

use crate::records::Decision;

/// How many characters of a hash an id has: enough for a hundred questions, few enough to be typed.
const ID_CHARS: usize = 12;
/// How long a question waits, and how long its answer holds.
pub(super) const LIFETIME_MS: u64 = 24 * 60 * 60 * 1000;

/// How the session of a client with a token begins.
const CONNECTION: &str = "token/";

/// One file of the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRecord {
    /// The project's path; the directory of the file is named after it.
    pub(super) project: String,
    pub(super) run: RunIdentity,
    pub(super) questions: Vec<KeptQuestion>,
    pub(super) journal: Vec<JournalEntry>,
    /// Whether it has done more than is in the journal.
    #[serde(default)]
    pub(super) overflown: bool,
}

impl RunRecord {
    /// The questions, each with the run that asks.
    pub(super) fn into_questions(self) -> impl Iterator<Item = KeptQuestion> {
        let run = self.run;
        self.questions.into_iter().map(move |question| KeptQuestion { run: Some(run.clone()), ..question })
    }
}

/// Everything that a person is shown before they answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptRequest {
    call: ToolCall,
    definition: ToolDefinition,
    context: CallContext,
    targets: Vec<Target>,
    reasons: Vec<ApprovalReason>,
    preview: Option<Value>,
    no_preview: Option<String>,
    reach: Option<Value>,
    hash: String,
}

/// A question that waits for an answer, or has one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptQuestion {
    /// Short, for people to type.
    pub id: String,
    request: KeptRequest,
    /// The outermost call around it, where it was read from the store.
    #[serde(skip)]
    pub run: Option<RunIdentity>,
    /// The process that asked. The calls of a host's connection end with it.
    #[serde(default)]
    process: Option<u32>,
    pub asked_ms: u64,
    pub expires_ms: u64,
    pub answer: Option<ApprovalDecision>,
}

/// What has become of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// A person has to answer.
    Pending,
    /// Agreed to: the call may be made again.
    Approved,
    Denied,
}

impl KeptQuestion {
    pub(super) fn new(run: &RunIdentity, request: &ApprovalRequest<'_>, now_ms: u64) -> Self {
        Self {
            id: id(run, &request.hash),
            request: KeptRequest {
                call: request.call.clone(),
                definition: request.definition.clone(),
                context: request.context.clone(),
                targets: request.targets.to_vec(),
                reasons: request.reasons.clone(),
                preview: request.preview.clone(),
                no_preview: request.no_preview.clone(),
                reach: request.reach.clone(),
                hash: request.hash.clone(),
            },
            run: None,
            process: Some(std::process::id()),
            asked_ms: now_ms,
            expires_ms: now_ms + LIFETIME_MS,
            answer: None,
        }
    }

    /// What was asked, as the approver would have been asked.
    #[must_use]
    pub fn request(&self) -> ApprovalRequest<'_> {
        let kept = &self.request;
        ApprovalRequest {
            call: &kept.call,
            definition: &kept.definition,
            context: &kept.context,
            targets: &kept.targets,
            reasons: kept.reasons.clone(),
            preview: kept.preview.clone(),
            no_preview: kept.no_preview.clone(),
            reach: kept.reach.clone(),
            hash: kept.hash.clone(),
        }
    }

    /// The hash of what was asked.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.request.hash
    }

    /// Returns the decision about this question, as the audit keeps it: what was asked, by its hash.
    #[must_use]
    pub fn decision(&self, name: &'static str, details: &Value) -> Decision {
        let request = &self.request;
        let content = json!({
            "id": self.id,
            "hash": request.hash,
            "tool": request.definition.name,
            "session": request.context.session,
            "details": details,
        });
        Decision::new(name, content)
    }

    /// Whether the connection that asked has ended with its process, so that its host asks again under another id. People
    /// and resumed sessions make the same call from another process.
    #[must_use]
    pub fn has_lost_its_caller(&self) -> bool {
        let is_of_a_connection = self.request.context.session.starts_with(CONNECTION);
        let is_gone = |process: u32| {
            let process = i32::try_from(process).map(nix::unistd::Pid::from_raw);
            process
                .is_ok_and(|process| nix::sys::signal::kill(process, None) == Err(nix::errno::Errno::ESRCH))
        };
        is_of_a_connection && self.process.is_some_and(is_gone)
    }

    #[must_use]
    pub fn state(&self) -> ApprovalState {
        match self.answer {
            None => ApprovalState::Pending,
            Some(ApprovalDecision::Granted { .. }) => ApprovalState::Approved,
            Some(ApprovalDecision::Denied { .. }) => ApprovalState::Denied,
        }
    }

    pub(super) fn pending(&self) -> PendingApproval {
        PendingApproval { id: self.id.clone(), hash: self.hash().to_owned(), expires_ms: self.expires_ms }
    }
}

/// The id of a question of a run: the same run asks the same question under the same id.
fn id(run: &RunIdentity, hash: &str) -> String {
    let whole = canonical::sha256_hex(format!("{}\n{hash}", run.key()).as_bytes());
    whole.chars().take(ID_CHARS).collect()
}
