//! Rows and files against what was reported of each run.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, bail};
use serde_json::Value;

use super::Check;
use crate::ledger::{Reported, Run};

/// Numbers that are read at a time; a statement returns a limited number of rows.
const PAGE: u64 = 4000;

/// What is there for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Effect {
    rows: u64,
    file: FileState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    Absent,
    Whole,
    Wrong,
}

const NONE: Effect = Effect { rows: 0, file: FileState::Absent };
const ONCE: Effect = Effect { rows: 1, file: FileState::Whole };

/// Compares rows, files and reports.
pub(super) fn rows(check: &Check<'_>) -> Result<()> {
    let site = check.site;
    let runs = site.ledger.runs();
    let mut rows = read_rows(check, runs.keys().next_back().copied().unwrap_or_default() + 2)?;
    let mut files = read_files(check)?;
    for (&number, run) in &runs {
        let mut effect = |number: u64| Effect {
            rows: rows.remove(&number).unwrap_or_default(),
            file: files.remove(&number).unwrap_or(FileState::Absent),
        };
        let found = [(number, effect(number)), (number + 1, effect(number + 1))];
        for problem in problems(check, number, run, found) {
            let Run { through, reported, told, .. } = run;
            check.find(format!(
                "run {number} ({}) of {through}, {reported:?}: {problem}; {told}",
                run.kind.tool()
            ));
        }
    }
    for (number, times) in rows {
        check.find(format!("{times} rows of the number {number}, which no run has"));
    }
    for number in files.keys() {
        check.find(format!("a file of the number {number}, which no run has"));
    }
    Ok(())
}

fn problems(check: &Check<'_>, number: u64, run: &Run, found: [(u64, Effect); 2]) -> Vec<String> {
    let effects = run.kind.effects(number);
    let mut problems = Vec::new();
    for (number, effect) in found {
        let is_effect = effects.contains(&number);
        let agrees = match run.reported {
            _ if !is_effect => effect == NONE,
            Reported::Success | Reported::Stands => effect == ONCE,
            Reported::Failure => effect == NONE,
            // ARCHITECTURE.md names the moment between the last file and the answer of the database: a kernel that
            // is killed in it leaves the file without its row. The other way round is never right.
            Reported::Nothing if effect.rows == 0 && effect.file == FileState::Whole => {
                check.soak.report.count("killed runs with a file and no row (the documented moment)");
                true
            }
            Reported::Nothing => effect == NONE || effect == ONCE,
            Reported::Repeated => effect == NONE || (effect.file == FileState::Whole && effect.rows <= 2),
        };
        if !agrees {
            problems.push(format!("{number} has {} rows and its file is {:?}", effect.rows, effect.file));
        }
    }
    let of_effects: Vec<u64> =
        found.iter().filter(|(number, _)| effects.contains(number)).map(|(_, effect)| effect.rows).collect();
    if run.reported != Reported::Repeated && of_effects.iter().any(|rows| Some(rows) != of_effects.first()) {
        problems.push(format!("half of its rows are there: {found:?}"));
    }
    problems
}

/// How many rows each number has.
fn read_rows(check: &Check<'_>, end: u64) -> Result<BTreeMap<u64, u64>> {
    let site = check.site;
    let mut rows = BTreeMap::new();
    let mut from = 0;
    while from < end {
        let until = from + PAGE;
        let table = site.rows();
        let statement =
            format!("SELECT n, COUNT(*) AS times FROM {table} WHERE n >= {from} AND n < {until} GROUP BY n");
        let data = &site.data(&["sql", &statement])?;
        if data["truncated"] != false {
            bail!("the rows from {from} on are not all returned");
        }
        for row in data["rows"].as_array().into_iter().flatten() {
            let (Some(number), Some(times)) = (integer(&row["n"]), integer(&row["times"])) else {
                bail!("a row that cannot be read: {row}");
            };
            rows.insert(number, times);
        }
        from = until;
    }
    check.soak.report.count_many("rows compared", rows.values().sum());
    Ok(rows)
}

/// A number, which some databases return as text where it may be large.
pub(super) fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The state of the file of each number.
fn read_files(check: &Check<'_>) -> Result<BTreeMap<u64, FileState>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(check.site.project.file("out"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(number) = name.strip_suffix(".txt").and_then(|name| name.parse::<u64>().ok()) else {
            check.find(format!("a file that no run writes: out/{name}"));
            continue;
        };
        let is_whole = fs::read_to_string(&path)? == format!("{number}\n");
        files.insert(number, if is_whole { FileState::Whole } else { FileState::Wrong });
    }
    check.soak.report.count_many("files compared", u64::try_from(files.len())?);
    Ok(files)
}
