//! Asking a person at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use async_trait::async_trait;
use tgp::contract::{Actor, ApprovalAnswer, ApprovalRequest, Approver};

use crate::text::visible;

/// Asks on the terminal when there is one, and refuses otherwise.
#[derive(Clone, Copy, Debug)]
pub struct TerminalApprover;

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return ApprovalAnswer::Refused { reason: "there is no terminal to ask at".to_owned() };
        }
        let question = question(&request);
        // Reading a line blocks, and a signal must still end the command meanwhile.
        let answer = tokio::task::spawn_blocking(move || read_answer(&question)).await;
        match answer {
            Ok(Ok(true)) => ApprovalAnswer::Approved { by: "terminal".to_owned(), hash: request.hash },
            Ok(Ok(false)) => {
                ApprovalAnswer::Refused { reason: "the answer at the terminal was no".to_owned() }
            }
            _ => ApprovalAnswer::Refused { reason: "the terminal could not be read".to_owned() },
        }
    }
}

/// The exact arguments, with nothing in them that could move the cursor or hide text.
fn question(request: &ApprovalRequest<'_>) -> String {
    let arguments = serde_json::to_string_pretty(&request.call.arguments).unwrap_or_default();
    let actor = match &request.context.actor {
        Actor::Person(id) | Actor::Agent(id) => id.clone(),
        Actor::Tool(path) => path.to_string(),
    };
    format!(
        "`{}` wants to call `{}` with\n{}\n{}\nAllow it? [y/N] ",
        visible(&actor),
        request.definition.name,
        visible(&arguments),
        visible(&request.reasons.join("\n")),
    )
}

fn read_answer(question: &str) -> io::Result<bool> {
    let mut terminal = io::stderr();
    terminal.write_all(question.as_bytes())?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
