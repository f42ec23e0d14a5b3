//! A persona of the valve whose agent makes the calls when a file changes.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::script;
use crate::case::{CaseFile, Step};
use crate::outcome::Outcome;
use crate::project::Project;

/// Where personas are written.
pub(super) const FILE: &str = ".sage/valve.yml";

/// The file whose change the persona waits for.
const TRIGGER: &str = "hostile-trigger.txt";

/// The sessions of agents.
const SESSIONS: &str = ".tgp/.state/sessions";

/// Makes the steps as calls of one persona's agent.
pub(super) fn calls(project: &Project, case: &CaseFile, steps: &[Step]) -> Result<Vec<Outcome>> {
    let model = script::write(project, steps)?;
    let mut tools: Vec<&str> = steps.iter().filter_map(|step| step.call.as_deref()).collect();
    tools.sort_unstable();
    tools.dedup();
    let persona = json!({ "personas": [{
        "name": "attacker",
        "filters": [TRIGGER],
        "action": { "agent": {
            "prompt": "attack", "model": model, "tools": tools, "max_steps": script::turns(steps),
        } },
    }] });
    // JSON is YAML too, and needs no extra quoting.
    project.write(FILE, &persona.to_string())?;
    let limit = project.step_limit(case) + Duration::from_secs(2) * u32::try_from(steps.len())?;
    let before = sessions(project);
    project.tgp(&["valve", "scan"], limit)?;
    project.write(TRIGGER, &format!("{}\n", before.len()))?;
    let mut words = vec!["valve", "scan"];
    if steps.first().is_some_and(|step| step.approve) {
        words.push("--yes");
    }
    let ran = project.tgp(&words, limit)?;
    fs::remove_file(project.file(TRIGGER)).context("the trigger cannot be removed")?;
    if ran.timed_out {
        return Ok(vec![Outcome::none("no end within its time", ran.said()); steps.len()]);
    }
    let new = sessions(project).into_iter().find(|session| !before.contains(session));
    let transcript = match new {
        Some(session) => fs::read_to_string(project.file(SESSIONS).join(session).join("transcript.ndjson"))?,
        None => return Ok(vec![Outcome::none("the persona did not act", ran.said()); steps.len()]),
    };
    let lines: Vec<Value> = transcript.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok((0..steps.len()).map(|at| outcome(&lines, &script::call_id(at), &ran.said())).collect())
}

fn sessions(project: &Project) -> Vec<String> {
    let entries = fs::read_dir(project.file(SESSIONS)).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The result of a call in a transcript, found by the id that the model has given it.
fn outcome(lines: &[Value], call_id: &str, said: &str) -> Outcome {
    let call = lines.iter().find(|line| line["type"] == "call" && line["callId"] == call_id);
    let result =
        call.and_then(|call| lines.iter().find(|line| line["type"] == "result" && line["id"] == call["id"]));
    match result {
        Some(line) => Outcome::of_result(&line["result"], said),
        None => Outcome::none("the persona's agent did not make the call", said),
    }
}
