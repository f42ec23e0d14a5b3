//! Audit and chronicle: intact, and in agreement with what was reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Result, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Check;
use super::recovery::was_restarted;
use super::rows::integer;
use crate::ledger::Reported;
use crate::program::documents;
use crate::site::Database;

/// The chain is intact, and each run has the record that belongs to what was reported of it.
pub(super) fn audit(check: &Check<'_>) -> Result<()> {
    let Check { soak, site, runner } = check;
    let verified = &site.data(&["audit", "verify"])?;
    soak.report.count_many("audit entries verified", integer(&verified["entries"]).unwrap_or_default());
    if was_restarted(site) {
        soak.report.note("the chain of the audit had to be begun again, so its records are not compared");
        return Ok(());
    }
    let exported = runner.run(site.tgp(&["audit", "export", "--tool", "exec_tool"]), "")?;
    if exported.code != Some(0) {
        bail!("`tgp audit export` ended with {:?}: {}", exported.code, exported.stderr);
    }
    // Records of successful runs by number; all others are only counted.
    let mut successes: BTreeMap<u64, u64> = BTreeMap::new();
    for document in documents(&exported.stdout) {
        let entry = document.get("body").unwrap_or(&document);
        let number = entry.pointer("/arguments/args/n").and_then(Value::as_u64);
        if let Some(number) = number
            && entry["depth"] == 0
            && entry.pointer("/outcome/ok") == Some(&Value::Bool(true))
        {
            *successes.entry(number).or_default() += 1;
        }
    }
    for (number, run) in site.ledger.runs() {
        let found = successes.get(&number).copied().unwrap_or_default();
        let agrees = match run.reported {
            Reported::Success => found == 1,
            Reported::Failure => found == 0,
            Reported::Stands | Reported::Nothing => found <= 1,
            Reported::Repeated => found <= 2,
        };
        if !agrees {
            let (through, reported) = (run.through, run.reported);
            check.find(format!(
                "run {number} of {through}, {reported:?}: {found} records of a success; {}",
                run.told
            ));
        }
    }
    Ok(())
}

/// All chronicles are intact, and each event that was reported as appended is there once.
pub(super) fn chronicle(check: &Check<'_>) -> Result<()> {
    let Check { soak, site, runner } = check;
    let printed = runner.run(site.tgp(&["--json", "chronicle", "verify"]), "")?.stdout;
    let document = documents(&printed).pop().unwrap_or_default();
    let verified = document.get("data").unwrap_or(&Value::Null);
    let audit = verified.get("audit").unwrap_or(&Value::Null);
    let list = |of: &Value, name: &str| of.get(name).and_then(Value::as_array).cloned();
    let problems = list(audit, "problems");
    // A call that was killed before it was recorded has left its event alone.
    let is_killed = |problem: &Value| problem.get("kind").is_some_and(|kind| kind == "added");
    let are_killed = problems.as_ref().is_some_and(|problems| problems.iter().all(is_killed))
        && audit.get("moreProblems").is_some_and(|more| *more == 0);
    let is_intact = |file: &Value| list(file, "problems").is_some_and(|problems| problems.is_empty());
    let are_intact = list(verified, "chronicles").is_some_and(|files| files.iter().all(is_intact));
    if !are_killed || !are_intact {
        check.find(format!("the chronicle is not intact: {verified}"));
    }
    for _ in problems.into_iter().flatten() {
        soak.report.count("events of calls that were killed before their record");
    }
    for (path, events) in site.ledger.events() {
        let read = documents(&runner.run(site.tgp(&["chronicle", "read", &path]), "")?.stdout);
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for event in &read {
            *found.entry(event["eventId"].as_str().unwrap_or_default()).or_default() += 1;
        }
        for event in events {
            let times = found.get(event.as_str()).copied().unwrap_or_default();
            if times != 1 {
                check.find(format!("the event {event} of {path} is there {times} times"));
            }
            soak.report.count("events compared");
        }
    }
    Ok(())
}

/// The valve has reported the last state of each watched file, and no action was begun twice.
pub(super) fn triggers(check: &Check<'_>) -> Result<()> {
    let Check { soak, site, runner } = check;
    if site.database != Database::Sqlite {
        return Ok(());
    }
    let statement = format!("SELECT event, COUNT(*) AS times FROM {} GROUP BY event", site.notes());
    let data = &site.data(&["sql", &statement])?;
    let noted: BTreeMap<String, u64> = data["rows"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| {
            (row["event"].as_str().unwrap_or_default().to_owned(), integer(&row["times"]).unwrap_or_default())
        })
        .collect();
    for (event, times) in noted.iter().filter(|(_, times)| **times != 1) {
        check.find(format!("the action on the event {event} was carried out {times} times"));
    }
    let mut told = BTreeSet::new();
    for entry in fs::read_dir(site.project.file(".sage/files/src/watch"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        // Torn lines that were moved aside are beside the chronicles.
        let Some(file) = name.strip_suffix(".sage") else { continue };
        let path = format!("src/watch/{file}");
        let events = documents(&runner.run(site.tgp(&["chronicle", "read", &path]), "")?.stdout);
        for event in &events {
            let id = event["eventId"].as_str().unwrap_or_default().to_owned();
            if !told.insert(id) {
                check.find(format!("an event of {path} is told twice: {event}"));
            }
            let trigger = event["trigger"].as_str().unwrap_or_default();
            if event["type"] == "VALVE_ACTION" && event["ok"] == true && !noted.contains_key(trigger) {
                check.find(format!("an action of {path} was reported as done and left no row: {event}"));
            }
        }
        let last = events.iter().rfind(|event| event["type"] == "VALVE_PERSONA_TRIGGER");
        if let (Ok(content), Some(last)) = (fs::read(site.project.file(&path)), last) {
            let hash: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
            if last["after"] != hash.as_str() {
                check
                    .find(format!("the valve has not told the last change of {path}: {last}, it has {hash}"));
            }
            soak.report.count("watched files compared");
        }
    }
    Ok(())
}
