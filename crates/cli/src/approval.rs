//! Asking a person at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use async_trait::async_trait;
use tgp::contract::{ApprovalAnswer, ApprovalRequest, Approver};

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
            Ok(Ok(true)) => ApprovalAnswer::Approved { by: "terminal".to_owned() },
            Ok(Ok(false)) => ApprovalAnswer::Refused { reason: "the answer at the terminal was no".to_owned() },
            _ => ApprovalAnswer::Refused { reason: "the terminal could not be read".to_owned() },
        }
    }
}

fn question(request: &ApprovalRequest<'_>) -> String {
    let arguments = serde_json::to_string_pretty(&request.call.arguments).unwrap_or_default();
    let arguments: String = arguments
        .chars()
        .flat_map(|character| {
            // What is shown must be what is there: nothing in the arguments may move the cursor or hide text.
            let plain = character == '\n' || !character.is_control();
            let shown = if plain { character.to_string() } else { character.escape_unicode().to_string() };
            shown.chars().collect::<Vec<_>>()
        })
        .collect();
    format!(
        "{} wants to run with\n{arguments}\n{}\nAllow it? [y/N] ",
        request.definition.name,
        request.reasons.join("\n")
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
