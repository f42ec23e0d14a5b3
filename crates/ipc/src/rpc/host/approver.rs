//! Approvals by the host.

use async_trait::async_trait;
use serde_json::{Map, Value};
use tgp_contract::{ApprovalAnswer, ApprovalRequest, Approver, Code, Target, ToolError};
use tgp_text::one_line;

use super::APPROVAL_PATIENCE;
use crate::rpc::peer::Peer;
use crate::rpc::protocol::{ApproveParams, ApproveResult, callback};

/// Bytes of what a host says about its answer; it is in the record.
const MAX_TEXT: usize = 200;

/// Asks the host, where it has offered to answer. Other questions are kept for `tgp approve`.
pub(super) struct HostApprover(Option<Peer>);

impl HostApprover {
    pub(super) fn new(peer: Option<Peer>) -> Self {
        Self(peer)
    }
}

fn object(target: &Target) -> Option<Map<String, Value>> {
    match serde_json::to_value(target) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

#[async_trait]
impl Approver for HostApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let Some(peer) = &self.0 else {
            return ApprovalAnswer::Later { reason: "it needs the approval of a person".to_owned() };
        };
        let question = ApproveParams {
            tool: request.definition.name.to_string(),
            arguments: request.call.arguments.clone(),
            effect: request.definition.effect.into(),
            targets: request.targets.iter().filter_map(object).collect(),
            reasons: request.reasons.iter().map(|reason| reason.reason.clone()).collect(),
            runs_later: request.runs_later(),
            preview: request.preview.clone(),
            hash: request.hash.clone(),
        };
        let answer = peer.request(callback::APPROVE, &question, APPROVAL_PATIENCE, Code::Approval).await;
        match answer {
            Ok(ApproveResult { approved: true, by, .. }) => {
                let by =
                    by.map_or_else(|| "host".to_owned(), |by| format!("host/{}", one_line(&by, MAX_TEXT)));
                ApprovalAnswer::Approved { by, hash: request.hash }
            }
            Ok(ApproveResult { reason, .. }) => {
                let reason = reason.map(|reason| one_line(&reason, MAX_TEXT)).filter(|text| !text.is_empty());
                ApprovalAnswer::Refused { reason: reason.unwrap_or_else(|| "the host refused it".to_owned()) }
            }
            // It is neither agreed to nor refused.
            Err(failure) => ApprovalAnswer::Later { reason: ToolError::from(failure).message },
        }
    }
}
