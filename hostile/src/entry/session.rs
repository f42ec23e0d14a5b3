//! `tgp run` with a scripted model that makes the calls.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::script;
use crate::case::{CaseFile, Step};
use crate::outcome::Outcome;
use crate::project::Project;

/// Makes the steps as calls of one session, or of several where a session ends before its last call: an outcome that
/// halts a session must not keep the rest of the attack from being tried.
pub(super) fn calls(project: &Project, case: &CaseFile, steps: &[Step]) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    while outcomes.len() < steps.len() {
        let rest = steps.get(outcomes.len()..).unwrap_or_default();
        let made = session(project, case, rest)?;
        if made.is_empty() {
            break;
        }
        outcomes.extend(made);
    }
    outcomes.resize(steps.len(), Outcome::none("the session did not make the call", String::new()));
    Ok(outcomes)
}

/// The outcomes of the first steps of `steps`: as many as one session came to.
fn session(project: &Project, case: &CaseFile, steps: &[Step]) -> Result<Vec<Outcome>> {
    let provider = script::write(project, steps)?;
    let turns = script::turns(steps).to_string();
    let mut words = vec!["run", "attack", "--provider", &provider, "--json", "--max-steps", &turns];
    if steps.first().is_some_and(|step| step.approve) {
        words.push("--yes");
    }
    let limit = project.step_limit(case) + Duration::from_secs(2) * u32::try_from(steps.len())?;
    let ran = project.tgp(&words, limit)?;
    if ran.timed_out {
        return Ok(vec![Outcome::none("no end within its time", ran.said())]);
    }
    let events: Vec<Value> = ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut outcomes = Vec::new();
    for at in 0..steps.len() {
        let id = script::call_id(at);
        let is_result = |event: &&Value| event["type"] == "tool_result" && event["callId"] == id.as_str();
        let Some(event) = events.iter().find(is_result) else { break };
        outcomes.push(Outcome::of_result(&event["result"], &ran.stderr));
    }
    if outcomes.is_empty() {
        return Ok(vec![Outcome::none("the session made no call", ran.said())]);
    }
    Ok(outcomes)
}
