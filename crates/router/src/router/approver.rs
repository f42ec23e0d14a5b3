//! The approver for programs without a user.

use async_trait::async_trait;
use tgp_contract::{ApprovalAnswer, ApprovalRequest, Approver};

/// For programs without a user to ask. It refuses every call.
#[derive(Clone, Copy, Debug)]
pub struct DenyAll;

#[async_trait]
impl Approver for DenyAll {
    async fn ask(&self, _request: ApprovalRequest<'_>) -> ApprovalAnswer {
        ApprovalAnswer::Refused { reason: "no person can be asked".to_owned() }
    }
}
