//! Asking a person at the terminal about the call of a single command.

use std::io::{self, IsTerminal};

use async_trait::async_trait;
use tgp::contract::{ApprovalAnswer, ApprovalRequest, Approver};
use tokio::sync::{Mutex, MutexGuard};

use crate::conversation::{Answer, Asked, Offer, Sheet, StandardError, TerminalKeyboard, interview};

/// There is one terminal, so whoever serves several callers asks about one call at a time.
static TERMINAL: Mutex<()> = Mutex::const_new(());

/// Waits until no question stands on the terminal, and keeps the next one away while something else is said.
pub async fn silence() -> MutexGuard<'static, ()> {
    TERMINAL.lock().await
}

/// Asks on the terminal when there is one, and refuses otherwise. There is no session, so each call is asked for.
#[derive(Clone, Copy, Debug)]
pub struct TerminalApprover;

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let reason = match request.runs_later {
                true => "there is no terminal to ask at",
                false => "there is no terminal to ask at; --yes agrees beforehand",
            };
            return ApprovalAnswer::Refused { reason: reason.to_owned() };
        }
        let _turn = TERMINAL.lock().await;
        let sheet = Sheet::new(&Asked::new(&request));
        let mut keyboard = TerminalKeyboard::default();
        match interview(&StandardError::new(), &mut keyboard, &sheet, &Offer::Once).await {
            Answer::Yes | Answer::Always => {
                ApprovalAnswer::Approved { by: "terminal".to_owned(), hash: request.hash }
            }
            Answer::No { reason } => ApprovalAnswer::Refused { reason },
        }
    }
}
