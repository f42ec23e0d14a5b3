//! Calls that need a person: how the server answers them, and where a store of pending approvals is connected.

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{ApprovalAnswer, ApprovalRequest, Approver, Code, Consent, ToolError};

/// What is known about approvals that calls of a connection wait for.
#[async_trait]
pub trait ApprovalStatus: Send + Sync {
    /// The state of one approval, or of all of the connection when no id is given. `family` is the connection's identity.
    ///
    /// # Errors
    /// `ENOTFOUND` for an id that is none of this connection.
    async fn status(&self, family: &str, id: Option<&str>) -> Result<Value, ToolError>;

    /// Adds the next step to the error of a call that needs approval.
    fn explain(&self, tool: &str, error: ToolError) -> ToolError;
}

/// For a server without a store of pending approvals: a call that needs one is refused, and a person makes it.
#[derive(Clone, Copy, Debug)]
pub struct HostApprover {
    consent: Consent,
}

impl HostApprover {
    #[must_use]
    pub fn new(consent: Consent) -> Self {
        Self { consent }
    }
}

#[async_trait]
impl Approver for HostApprover {
    async fn ask(&self, _request: ApprovalRequest<'_>) -> ApprovalAnswer {
        ApprovalAnswer::Refused { reason: "it needs the approval of a person".to_owned() }
    }
}

#[async_trait]
impl ApprovalStatus for HostApprover {
    async fn status(&self, _family: &str, id: Option<&str>) -> Result<Value, ToolError> {
        if let Some(id) = id {
            return Err(ToolError::new(Code::NotFound, format!("no approval `{id}` is pending"))
                .help("call `approval` without an id to see what is pending"));
        }
        let default_asks = match self.consent {
            Consent::Ask => "refused with EAPPROVAL",
            Consent::Given | Consent::Everything | Consent::Outer => {
                "agreed to by the person who started the server"
            }
        };
        Ok(json!({
            "pending": [],
            "default_asks": default_asks,
            "asks_of_rules": if self.consent == Consent::Everything { default_asks } else { "refused with EAPPROVAL" },
            "files_that_run_later": "refused with EAPPROVAL",
        }))
    }

    fn explain(&self, tool: &str, error: ToolError) -> ToolError {
        if error.code != Code::Approval {
            return error;
        }
        error.help(format!(
            "nothing was changed; ask the user to make the call in a terminal (`tgp call {tool} …`), or to start the \
             server with `--yes`, which agrees to what is asked by default"
        ))
    }
}
