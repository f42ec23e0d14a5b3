//! Calls that need a person: they end with the id of a question, a person answers it, and the host makes the call again.

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::approvals::{ApprovalState, Approvals, Grant, KeptQuestion};
use tgp_contract::{ApprovalAnswer, ApprovalDecision, ApprovalRequest, Approver, Code, Consent, ToolError};

use crate::client::{Caller, Shared};
use crate::options::option_of;

/// The approver of a kernel that serves hosts: no person sits at its input, so every question is kept.
#[derive(Clone, Copy, Debug)]
pub struct HostApprover;

#[async_trait]
impl Approver for HostApprover {
    async fn ask(&self, _request: ApprovalRequest<'_>) -> ApprovalAnswer {
        ApprovalAnswer::Later { reason: "it needs the approval of a person".to_owned() }
    }
}

/// The questions of one connection.
pub(crate) struct ClientQuestions {
    approvals: Approvals,
    session: String,
}

impl ClientQuestions {
    /// `None` where nothing is kept.
    ///
    /// # Errors
    /// When the store would be inside the project.
    pub(crate) fn of(shared: &Shared, session: &str) -> Result<Option<Self>, ToolError> {
        let approvals = shared.kernel.approvals()?;
        Ok(approvals.map(|approvals| Self { approvals, session: session.to_owned() }))
    }

    fn list(&self) -> Result<Vec<KeptQuestion>, ToolError> {
        let mut questions = self.approvals.list()?;
        questions.retain(|question| question.request().context.session == self.session);
        Ok(questions)
    }

    /// The question with this id.
    ///
    /// # Errors
    /// `ENOTFOUND` for an id that is none of this connection.
    pub(crate) fn find(&self, id: &str) -> Result<KeptQuestion, ToolError> {
        let found = self.list()?.into_iter().find(|question| question.id == id);
        found.ok_or_else(|| {
            let message = format!("this connection has no pending approval `{}`", tgp_text::head(id, 32));
            ToolError::new(Code::NotFound, message).help(
                "its call has ended, or it has expired; call `approval` without an id to see what is pending",
            )
        })
    }

    /// Keeps that a person has approved in a form of the host, once it is in the audit.
    ///
    /// # Errors
    /// When it was answered or has expired meanwhile, or cannot be recorded.
    pub(crate) async fn grant(
        &self,
        kernel: &Kernel,
        question: &KeptQuestion,
        by: &str,
    ) -> Result<(), ToolError> {
        let decision = question.decision("approve", &json!({ "times": 1, "by": by }));
        let decision = kernel.record_decision(decision).await?;
        let grant = Grant { by: by.to_owned(), times: 1 };
        self.approvals.grant(&question.id, question.hash(), grant, decision)
    }

    /// Keeps that a person has declined in a form of the host.
    ///
    /// # Errors
    /// When it was answered or has expired meanwhile.
    pub(crate) async fn deny(
        &self,
        kernel: &Kernel,
        question: &KeptQuestion,
        by: &str,
        reason: &str,
    ) -> Result<(), ToolError> {
        self.approvals.deny(&question.id, question.hash(), by.to_owned(), reason.to_owned())?;
        let denied = question.decision("approval_deny", &json!({ "reason": reason, "by": by }));
        // A denial holds without its record; the kernel has logged why there is none.
        let _ = kernel.record_tightening(denied).await;
        Ok(())
    }
}

/// The state of one question of the caller, or of all.
///
/// # Errors
/// `ENOTFOUND` for an id that is none of this connection.
pub(crate) fn status(caller: &Caller, id: Option<&str>) -> Result<Value, ToolError> {
    let shared = caller.shared();
    let questions = ClientQuestions::of(shared, caller.session())?;
    if let Some(id) = id {
        return match &questions {
            Some(questions) => questions.find(id).map(|question| shown(&question)),
            None => {
                Err(ToolError::new(Code::NotFound, "no approvals are kept: the user has no home directory"))
            }
        };
    }
    let all = questions.map_or_else(|| Ok(Vec::new()), |questions| questions.list())?;
    let default_asks = match (shared.options.consent, shared.options.forms) {
        (Consent::Ask, false) => "a person answers with `tgp approve ID` at a terminal",
        (Consent::Ask, true) => "a form of the host, or `tgp approve ID` at a terminal",
        (Consent::Given | Consent::Everything | Consent::Outer, _) => {
            "agreed to by the person who started the server"
        }
    };
    Ok(json!({
        "approvals": all.iter().map(shown).collect::<Vec<_>>(),
        "default_asks": default_asks,
        "asks_of_rules": "a person answers with `tgp approve ID` at a terminal",
        "files_that_run_later": "a person answers with `tgp approve ID` at a terminal",
    }))
}

fn shown(question: &KeptQuestion) -> Value {
    let request = question.request();
    let reason = match &question.answer {
        Some(ApprovalDecision::Denied { reason, .. }) => Some(reason),
        _ => None,
    };
    let next = match question.state() {
        ApprovalState::Pending => format!("a person runs `tgp approve {}` at a terminal", question.id),
        ApprovalState::Approved => "make the same call again".to_owned(),
        ApprovalState::Denied => "do without it".to_owned(),
    };
    json!({
        "id": question.id,
        "state": question.state(),
        "tool": request.definition.name,
        "reasons": request.reasons,
        "expires_ms": question.expires_ms,
        "denied_because": reason,
        "next": next,
    })
}

/// The tool that runs the project's tests.
const TESTS: &str = "test_run";
/// What the router says of a call that a person has denied.
const DENIED: &str = "denied_by";

/// Whether a person has denied the call.
pub(crate) fn is_denied(error: &ToolError) -> bool {
    error.details.contains_key(DENIED)
}

/// The id of the question that a failed call waits for.
pub(crate) fn pending_id(error: &ToolError) -> Option<&str> {
    if error.code != Code::Approval {
        return None;
    }
    error.details.get("needs_approval")?.get("id")?.as_str()
}

/// Adds the next step to the error of a call that needs approval and whose question is not kept, and of one that this
/// server does not offer.
pub(crate) fn explain(shared: &Shared, tool: &str, error: ToolError) -> ToolError {
    if let (Code::Policy, false, Some(option)) = (error.code, shared.is_allowed(tool), option_of(tool)) {
        return error.help(format!(
            "this server does not offer `{tool}`: the user can start it with `tgp mcp {option}`, or enter it so with \
             `tgp mcp install -- {option}`"
        ));
    }
    // Without the project's tests no test can be seen to fail, which new code needs.
    if error.code == Code::State && option_of(tool) == Some("--files") && !shared.is_allowed(TESTS) {
        let help = error.help_of().unwrap_or_default().to_owned();
        return error.help(format!(
            "{help}; this server cannot run the project's tests: the user can start it with `tgp mcp --files --shell`"
        ));
    }
    if error.code != Code::Approval || is_denied(&error) || pending_id(&error).is_some() {
        return error;
    }
    error.help(format!(
        "nothing was changed; ask the user to make the call in a terminal (`tgp call {tool} …`), or to start the \
         server with `--yes`, which agrees to what is asked by default"
    ))
}
