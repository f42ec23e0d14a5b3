//! Asking a person at the terminal: about the call of a single command, and about what needs a confirmation.

use std::io::{self, IsTerminal, Write};

use async_trait::async_trait;
use tgp::contract::{ApprovalAnswer, ApprovalRequest, Approver};
use tokio::sync::{Mutex, MutexGuard};

use crate::conversation::{
    Answer, ApprovalQuestion, ApprovalView, Keyboard, Offer, StandardError, TerminalKeyboard, interview,
};

/// There is one terminal, so a server with several callers asks about one call at a time.
static TERMINAL: Mutex<()> = Mutex::const_new(());

/// Waits until no question is on the terminal, and holds back the next one while something else is printed.
pub async fn silence() -> MutexGuard<'static, ()> {
    TERMINAL.lock().await
}

/// Whether there is a terminal to ask at.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows a text on standard error and asks one question. Everything but a clear yes is a no.
pub async fn confirm(text: &str, question: &str) -> bool {
    if !can_ask() {
        return false;
    }
    let _turn = TERMINAL.lock().await;
    let mut keyboard = TerminalKeyboard::default();
    // What was typed before the question was shown is not an answer to it.
    if keyboard.forget().is_err() || write!(io::stderr(), "{text}{question} [y/N] ").is_err() {
        return false;
    }
    match keyboard.line().await {
        Ok(Some(line)) => matches!(line.trim().to_lowercase().as_str(), "y" | "yes"),
        Ok(None) | Err(_) => false,
    }
}

/// Shows a question on the terminal and waits for its answer.
pub async fn ask(question: &ApprovalQuestion, offer: Offer) -> Answer {
    let _turn = TERMINAL.lock().await;
    let sheet = ApprovalView::new(question);
    let mut keyboard = TerminalKeyboard::default();
    interview(&StandardError::new(), &mut keyboard, &sheet, &offer).await
}

/// Asks on the terminal when there is one, and has the question kept otherwise. There is no session, so it asks for each call.
#[derive(Clone, Copy, Debug)]
pub struct TerminalApprover {
    /// Whether the command takes `--yes`.
    pub has_yes: bool,
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        if !can_ask() {
            let reason = match self.has_yes && !request.runs_later() {
                true => "there is no terminal to ask at; --yes agrees beforehand",
                false => "there is no terminal to ask at",
            };
            return ApprovalAnswer::Later { reason: reason.to_owned() };
        }
        match ask(&ApprovalQuestion::new(&request), Offer::Once).await {
            Answer::Yes | Answer::Always => {
                ApprovalAnswer::Approved { by: "terminal".to_owned(), hash: request.hash }
            }
            Answer::No { reason } => ApprovalAnswer::Refused { reason },
        }
    }
}
