//! `tgp call`, and bash for what a call cannot express.

use anyhow::Result;

use crate::case::{Act, CaseFile, Step};
use crate::outcome::Outcome;
use crate::process::Ran;
use crate::project::Project;

/// Makes one step in its own process.
pub(super) fn step(project: &Project, case: &CaseFile, step: &Step) -> Result<Outcome> {
    match step.act() {
        Some(Act::Script { text, .. }) => {
            let ran = project.bash(text, project.step_limit(case))?;
            Ok(Outcome { code: exit_of(&ran), text: ran.said() })
        }
        _ => call(project, case, step),
    }
}

/// How a process ended, as an outcome: `exit 3`.
fn exit_of(ran: &Ran) -> String {
    match ran.code {
        Some(code) => format!("exit {code}"),
        None if ran.timed_out => "[no end within its time]".to_owned(),
        None => "[killed by a signal]".to_owned(),
    }
}

fn call(project: &Project, case: &CaseFile, step: &Step) -> Result<Outcome> {
    let (tool, arguments) = step.as_call().unwrap_or_default();
    let arguments = arguments.to_string();
    let mut words = vec!["call", tool, arguments.as_str()];
    if step.approve {
        words.push("--yes");
    }
    if step.dry_run {
        words.push("--dry-run");
    }
    let ran = project.tgp(&words, project.step_limit(case))?;
    Ok(result_of(&ran))
}

/// The one JSON result that a command has printed.
pub(super) fn result_of(ran: &Ran) -> Outcome {
    if ran.timed_out {
        return Outcome::none("no end within its time", ran.said());
    }
    match serde_json::from_str(&ran.stdout) {
        Ok(result) => Outcome::of_result(&result, &ran.stderr),
        Err(_) => Outcome::none("no result", ran.said()),
    }
}
