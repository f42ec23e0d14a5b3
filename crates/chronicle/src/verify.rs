//! Whether a chronicle is what was written.

use std::collections::HashSet;
use std::fs::File;

use serde::Serialize;
use tgp_contract::{ChronicleEvent, RelativePath};

use crate::chronicle::ChronicleInner;
use crate::dirfd::Missing;
use crate::events;
use crate::failure::{Doing, Failure};
use crate::line::{self, LineError};
use crate::lines::Lines;
use crate::torn::{self, Torn};

/// Problems that are listed; a file with more has one, and its name is not corruption.
const MAX_PROBLEMS: usize = 1000;
/// Ids that are held at once to find one that is there twice. A larger file is read several times, each time for
/// another part of all ids.
const MAX_IDS: u64 = 1 << 20;
/// No line is shorter: an id has 64 digits, and the names of the fields that every event has take as much again.
const SHORTEST_LINE: u64 = 140;

/// What is wrong with one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineProblem {
    /// Counted from 1.
    pub line: u64,
    pub problem: String,
}

/// What a chronicle is found to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChronicleReport {
    /// The name of the chronicle.
    pub file: RelativePath,
    /// Where its file is.
    pub stored: RelativePath,
    /// Lines that are events.
    pub events: u64,
    /// By line.
    pub problems: Vec<LineProblem>,
    /// Lines that say again what a line before them says, as a merge of two branches leaves them. Nothing is lost by it.
    pub repeated: u64,
    /// Problems beyond those that are listed.
    pub more_problems: u64,
    /// The unfinished line at the end, which the next append will set aside.
    pub torn: Option<Torn>,
    /// Torn lines that were set aside before, by the files that hold them.
    pub set_aside: Vec<RelativePath>,
    pub first_id: Option<String>,
    pub last_id: Option<String>,
}

impl ChronicleReport {
    /// Whether every line is an event. A torn end and what was set aside are traces of a
    /// crash, not of a change.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty() && self.more_problems == 0
    }

    fn add(&mut self, line: u64, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(LineProblem { line, problem });
        } else {
            self.more_problems += 1;
        }
    }
}

pub(crate) fn verify(keeper: &ChronicleInner, path: &RelativePath) -> Result<ChronicleReport, Failure> {
    let stored = keeper.file_of(path)?;
    let Some((file, extent)) = events::open(keeper, path)? else {
        return Err(Failure::NotFound(path.clone()));
    };
    let mut report = ChronicleReport {
        file: path.clone(),
        stored: stored.clone(),
        events: 0,
        problems: Vec::new(),
        repeated: 0,
        more_problems: 0,
        torn: extent.torn,
        set_aside: set_aside(keeper, &stored)?,
        first_id: None,
        last_id: None,
    };
    let parts = extent.whole / SHORTEST_LINE / MAX_IDS + 1;
    for part in 0..parts {
        let lines =
            read(&file, extent.whole, Part { part, parts }, &mut report).doing("cannot read", &stored)?;
        if part == 0 && extent.is_foreign {
            report.add(lines + 1, torn::FOREIGN.to_owned());
        }
    }
    report.problems.sort_by_key(|problem| problem.line);
    Ok(report)
}

/// Shows the events of a chronicle with the numbers of their lines, oldest first. Lines that are not events are left out:
/// [`verify`] reports them. Nothing is shown where there is no such chronicle.
pub(crate) fn each_event(
    keeper: &ChronicleInner,
    path: &RelativePath,
    each: &mut dyn FnMut(u64, ChronicleEvent),
) -> Result<(), Failure> {
    let stored = keeper.file_of(path)?;
    let Some((file, extent)) = events::open(keeper, path)? else { return Ok(()) };
    let mut lines = Lines::new(&file, 0, extent.whole).doing("cannot read", &stored)?;
    let mut number = 0;
    while let Some(found) = lines.next().doing("cannot read", &stored)? {
        number += 1;
        if let Ok(event) = found.bytes.ok_or(LineError::TooLong).and_then(line::decode) {
            each(number, event);
        }
    }
    Ok(())
}

/// The ids that one reading of the file compares.
#[derive(Clone, Copy)]
struct Part {
    part: u64,
    parts: u64,
}

/// Returns how many lines there are.
fn read(file: &File, whole: u64, part: Part, report: &mut ChronicleReport) -> std::io::Result<u64> {
    let mut seen = HashSet::new();
    let mut lines = Lines::new(file, 0, whole)?;
    let mut number = 0;
    while let Some(found) = lines.next()? {
        number += 1;
        let decoded = found.bytes.ok_or(LineError::TooLong).and_then(line::decode);
        match decoded {
            Ok(event) => {
                let id = id(&event);
                if first_digits(&id) % part.parts == part.part && !seen.insert(short(&id)) {
                    report.repeated += 1;
                }
                if part.part == 0 {
                    report.events += 1;
                    report.first_id.get_or_insert_with(|| id.clone());
                    report.last_id = Some(id);
                }
            }
            Err(error) if part.part == 0 => report.add(number, error.to_string()),
            Err(_) => {}
        }
    }
    Ok(number)
}

fn id(event: &ChronicleEvent) -> String {
    event.event_id.clone().unwrap_or_default()
}

fn first_digits(id: &str) -> u64 {
    id.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

/// Half of an id: finding two events that share it is infeasible.
fn short(id: &str) -> u128 {
    id.get(..32).and_then(|digits| u128::from_str_radix(digits, 16).ok()).unwrap_or_default()
}

fn set_aside(keeper: &ChronicleInner, path: &RelativePath) -> Result<Vec<RelativePath>, Failure> {
    let Some(directory) = keeper.project.directory(&path.parent(), Missing::Refuse)? else {
        return Ok(Vec::new());
    };
    let own = path.name().unwrap_or_default();
    let names = directory.children()?.into_iter().filter(|name| torn::is_kept(name, own));
    let mut kept: Vec<RelativePath> = names.filter_map(|name| path.parent().join(&name).ok()).collect();
    kept.sort();
    Ok(kept)
}
