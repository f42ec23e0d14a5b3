//! A query with a step per call.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::literal::object;
use crate::case::{CaseFile, Step};
use crate::expected::OK;
use crate::outcome::Outcome;
use crate::project::Project;

/// Makes the steps as steps of one query. Where the query does not compile, each is tried in its own query,
/// since one call that is refused before anything runs must not hide what the others come to.
pub(super) fn calls(project: &Project, case: &CaseFile, steps: &[Step]) -> Result<Vec<Outcome>> {
    let outcomes = query(project, case, steps)?;
    let ran = outcomes.iter().any(Option::is_some);
    if ran || steps.len() == 1 {
        let missing = || Outcome::none("the query did not make the call", String::new());
        return Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect());
    }
    let mut each = Vec::new();
    for step in steps {
        each.extend(calls(project, case, std::slice::from_ref(step))?);
    }
    Ok(each)
}

/// What one query came to, step by step. A single step that does not compile has that error as its outcome.
fn query(project: &Project, case: &CaseFile, steps: &[Step]) -> Result<Vec<Option<Outcome>>> {
    let mut words = vec!["aql", "run", "-", "--json"];
    if steps.first().is_some_and(|step| step.approve) {
        words.push("--yes");
    }
    let limit = project.step_limit(case) + Duration::from_secs(2) * u32::try_from(steps.len())?;
    let ran = project.tgp_with_input(&words, &source(steps), limit)?;
    if ran.timed_out {
        return Ok(vec![Some(Outcome::none("no end within its time", ran.said())); steps.len()]);
    }
    let events: Vec<Value> = ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let started = events.iter().any(|event| event["type"] == "run");
    if !started && steps.len() == 1 {
        let refused = events.first().map(|result| Outcome::of_result(result, &ran.stderr));
        return Ok(vec![Some(refused.unwrap_or_else(|| Outcome::none("no result", ran.said())))]);
    }
    let outputs = events
        .iter()
        .find(|event| event["type"] == "end")
        .and_then(|event| event.pointer("/report/outputs"))
        .cloned()
        .unwrap_or_default();
    Ok((0..steps.len()).map(|at| outcome(&events, &outputs, &name(at), &ran.stderr)).collect())
}

fn outcome(events: &[Value], outputs: &Value, step: &str, besides: &str) -> Option<Outcome> {
    let of_step = |kind: &str| events.iter().find(|event| event["type"] == kind && event["step"] == step);
    if let Some(event) = of_step("failed").or_else(|| of_step("excused")) {
        return Some(Outcome::of_error(&event["error"]));
    }
    of_step("done")?;
    let value = outputs.get(step).cloned().unwrap_or_default();
    Some(Outcome { code: OK.to_owned(), text: format!("{value}\n{besides}") })
}

/// The query's text. Steps run one after the other, and one that fails does not end the run.
fn source(steps: &[Step]) -> String {
    let mut text = String::from("query Attack {\n");
    for (at, step) in steps.iter().enumerate() {
        let (tool, arguments) = step.as_call().unwrap_or_default();
        let after = at.checked_sub(1).map(|before| format!(", after: {}", name(before)));
        let after = after.unwrap_or_default();
        let fields = object(&arguments);
        text.push_str(&format!("  {}: tool({tool}, on_error: skip{after}) {fields}\n", name(at)));
    }
    let outputs: Vec<String> = (0..steps.len()).map(|at| format!("{0}: {0}", name(at))).collect();
    text.push_str(&format!("  return {{ {} }}\n}}\n", outputs.join(", ")));
    text
}

fn name(at: usize) -> String {
    format!("s{at}")
}
