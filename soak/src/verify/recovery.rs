//! Every part of the product is started once more and finishes what was interrupted.

use anyhow::{Result, bail};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Check;
use crate::ledger::{Kind, Reported};
use crate::load::{is_query_done, is_session_done, resume_query, resume_session};
use crate::site::Site;

/// How often a session or a query is resumed before it counts as stuck.
const TRIES: usize = 3;

/// Sessions and runs of queries that are listed: the largest numbers that the commands take.
const SESSIONS: &str = "10000";
const QUERIES: usize = 1000;

/// A command, and a server with one run, work on what the load has left.
pub(super) fn start(check: &Check<'_>) -> Result<()> {
    let Check { soak, site, runner } = check;
    if let Err(error) = site.data(&["list"]) {
        // The first known defect can outlast the load: then nothing works until a person begins a new chain.
        check.find(format!("no command works after the load: {error:#}"));
        site.must(site.tgp(&["audit", "restart", "--reason", "the soak goes on"]))?;
    }
    if !site.server.start(soak, site)? {
        bail!("`tgp serve` does not start");
    }
    let number = site.ledger.begin(Kind::Both, "the last server");
    let arguments = json!({ "path": "tools/both.ts", "args": { "n": number, "ms": 0 } });
    let told = site.server.connect(site)?.call("exec_tool", &arguments, false)?;
    soak.settle(site, number, Reported::of(&told), &told);
    if Reported::of(&told) != Reported::Success {
        check.find(format!("a run fails after the load: {told}"));
    }
    site.server.stop(soak, site, Signal::SIGINT, 130);
    let number = site.ledger.begin(Kind::Nested, "the last process");
    let args = json!({ "n": number, "ms": 0 }).to_string();
    let ran = runner.run(site.tgp(&["--json", "exec", "tools/nested.ts", "--args", &args]), "")?;
    let told: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    soak.settle(site, number, Reported::of(&told), &told);
    if Reported::of(&told) != Reported::Success {
        check.find(format!("a run fails after the load: {}", ran.said()));
    }
    Ok(())
}

/// All sessions are listed; those that did not end are resumed to their end, and each can be played again.
pub(super) fn sessions(check: &Check<'_>) -> Result<()> {
    let Check { soak, site, runner } = check;
    let known = site.ledger.sessions();
    if known.is_empty() {
        return Ok(());
    }
    let listed = states(&site.data(&["sessions", "list", "-n", SESSIONS])?, "sessions");
    for id in &known {
        let Some((_, state)) = listed.iter().find(|(listed, _)| listed == id) else {
            check.find(format!("session {id} is not listed"));
            continue;
        };
        let mut is_done = state == "done";
        let mut last = Vec::new();
        for _ in 0..TRIES {
            if is_done {
                break;
            }
            last = resume_session(soak, site, runner, id)?;
            is_done = is_session_done(&last);
        }
        if !is_done {
            check
                .find(format!("session {id} ({state}) cannot be resumed to its end: {}", shown(last.last())));
            continue;
        }
        // A chain that was begun again does not have the hashes of earlier transcripts.
        if was_restarted(site) {
            continue;
        }
        let replayed = runner.run(site.tgp(&["replay", id]), "")?;
        if replayed.code != Some(0) {
            check.find(format!("session {id} cannot be replayed: {}", replayed.said()));
        }
    }
    soak.report.count_many("sessions listed, ended and replayed", u64::try_from(known.len())?);
    Ok(())
}

/// All runs of queries are listed, and those that did not end are resumed. A step whose outcome is unknown is allowed
/// once more.
pub(super) fn queries(check: &Check<'_>) -> Result<()> {
    let Check { soak, site, runner } = check;
    let known = site.ledger.queries();
    let listed = states(&site.data(&["aql", "runs", "-n", &QUERIES.to_string()])?, "runs");
    for (id, numbers) in &known {
        // Where there are more than can be listed, the oldest are resumed like those that did not end.
        let found = listed.iter().find(|(listed, _)| listed == id);
        if found.is_none() && listed.len() < QUERIES {
            // A run whose first line found no room on the disk has an id and leaves nothing.
            let is_success =
                |number: &u64| site.ledger.run(*number).is_some_and(|run| run.reported == Reported::Success);
            if numbers.iter().any(is_success) {
                check.find(format!("the run {id} of a query has done something and is not listed"));
            }
            continue;
        }
        let state = found.map_or("not listed", |(_, state)| state.as_str());
        let mut is_done = state == "done";
        let mut again = Vec::new();
        let mut last = Vec::new();
        // Each try can name one step more.
        for _ in 0..TRIES + numbers.len() {
            if is_done {
                break;
            }
            last = resume_query(soak, site, runner, id, numbers, &again)?;
            is_done = is_query_done(&last);
            let unknown = last.iter().filter(|event| {
                event["type"] == "failed" && Reported::of_error(&event["error"]) == Reported::Nothing
            });
            let steps = unknown.filter_map(|event| event["step"].as_str()).map(str::to_owned);
            again = steps.collect();
        }
        if !is_done {
            check.find(format!(
                "the run {id} ({state}) of a query cannot be resumed to its end: {}",
                shown(last.last())
            ));
        }
    }
    soak.report.count_many("runs of queries listed and ended", u64::try_from(known.len())?);
    Ok(())
}

/// The valve finds what changed while it was away, and what was pending is delivered.
pub(super) fn valve(check: &Check<'_>) -> Result<()> {
    let Check { site, runner, .. } = check;
    for _ in 0..2 {
        let ran = runner.run(site.tgp(&["--json", "valve", "scan", "--yes"]), "")?;
        if ran.code != Some(0) {
            bail!("`tgp valve scan` ended with {:?}: {}", ran.code, ran.said());
        }
    }
    let status = &site.data(&["valve", "status"])?;
    for pending in ["pendingEvents", "heldChanges"] {
        if status[pending] != 0 {
            check.find(format!("the valve still has {pending}: {status}"));
        }
    }
    Ok(())
}

/// Whether a new chain of the audit was begun; the old one is beside it.
pub(super) fn was_restarted(site: &Site) -> bool {
    let state = std::fs::read_dir(site.project.file(".tgp/.state")).into_iter().flatten().flatten();
    state.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("audit.sqlite.broken"))
}

fn shown(event: Option<&Value>) -> String {
    event.map_or_else(|| "nothing was printed".to_owned(), Value::to_string)
}

/// The ids and states of a list.
fn states(data: &Value, name: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = data.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    entries.iter().map(|entry| (text(&entry["id"]), text(&entry["state"]))).collect()
}
