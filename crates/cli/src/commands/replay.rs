//! `tgp replay`: a session played again from its transcript.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::json;
use tgp::agent::{Replayed, SessionReplay, TranscriptIntegrity};
use tgp::contract::Code;

use super::done;
use crate::arguments::Global;
use crate::candidates;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, visible};

/// Characters of a line that differ is shown by.
const SHOWN: usize = 400;

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The session's id, the beginning of it, or `last`.
    #[arg(default_value = "last", add = ArgValueCandidates::new(candidates::sessions))]
    id: String,
}

pub async fn run(arguments: ReplayArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let sessions = session::sessions(global).await?;
    let id = sessions.find(&arguments.id)?;
    let SessionReplay { played, sealed } = sessions.replay(&id).await?;
    let seal = match sealed {
        TranscriptIntegrity::Same { .. } => "intact",
        TranscriptIntegrity::Broken => "broken",
        TranscriptIntegrity::Never => "none",
    };
    if printer.json() {
        let document = match &played {
            Replayed::Same { lines } => json!({ "session": id, "same": true, "lines": lines, "seal": seal }),
            Replayed::SameWithOlderPrompt { lines, recorded, current } => json!({
                "session": id, "same": true, "lines": lines, "seal": seal,
                "promptVersion": { "recorded": recorded, "current": current },
            }),
            Replayed::Differs { line, expected, actual } => json!({
                "session": id, "same": false, "line": line, "recorded": expected, "played": actual, "seal": seal,
            }),
        };
        printer.document(&done(document));
    } else {
        print(&id, &played, &sealed, printer);
    }
    let holds = !matches!(played, Replayed::Differs { .. }) && sealed != TranscriptIntegrity::Broken;
    if holds { Ok(()) } else { Err(Failure::Silent(Code::Integrity)) }
}

fn print(id: &str, played: &Replayed, sealed: &TranscriptIntegrity, printer: &Printer) {
    match played {
        Replayed::Same { lines } => {
            let lines = count(usize::try_from(*lines).unwrap_or(usize::MAX), "line");
            printer.line(&format!("session {id}: the same, byte for byte ({lines})"));
        }
        Replayed::SameWithOlderPrompt { lines, recorded, current } => {
            let lines = count(usize::try_from(*lines).unwrap_or(usize::MAX), "line");
            printer.line(&format!("session {id}: the same apart from its requests ({lines})"));
            printer.note(&format!(
                "it was recorded with prompt version {recorded}, and this version of tgp has prompt version {current}: the \
                 hashes of the requests were not compared"
            ));
        }
        Replayed::Differs { line, expected, actual } => {
            printer.line(&format!("session {id}: differs at line {line}"));
            printer.line(&format!("  recorded  {}", around(expected, actual)));
            printer.line(&format!("  played    {}", around(actual, expected)));
            printer.note(
                "either the transcript was changed, or this version of tgp would have done something else",
            );
        }
    }
    match sealed {
        TranscriptIntegrity::Same { lines_after: 0 } => {
            printer.line("it is the transcript whose hash the audit has kept")
        }
        TranscriptIntegrity::Same { lines_after } => {
            let lines = count(*lines_after, "line");
            printer.line(&format!(
                "the audit has kept its hash up to the last {lines}, which came after a crash"
            ));
        }
        TranscriptIntegrity::Broken => {
            printer.line("it is not the transcript whose hash the audit has kept: it was changed")
        }
        TranscriptIntegrity::Never => {
            printer.note("the audit has no hash of it: the session was killed before its first end");
        }
    }
}

/// A line from a little before the first character that differs.
fn around(line: &str, other: &str) -> String {
    if line.is_empty() {
        return "(nothing)".to_owned();
    }
    let same = line.chars().zip(other.chars()).take_while(|(one, two)| one == two).count();
    let start = same.saturating_sub(SHOWN / 4);
    let shown: String = line.chars().skip(start).take(SHOWN).collect();
    format!("{}{}", if start > 0 { "…" } else { "" }, visible(&shown))
}
