//! Comparing what came of an attack with what its file expects.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;

use crate::case::{Act, CaseFile, Step};
use crate::entry::Entry;
use crate::outcome::Outcome;
use crate::project::Project;

/// How much of an outcome a failure shows.
const SHOWN: usize = 600;

/// What is wrong, and at which step (counted from 1); without a step it is about the whole case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub step: Option<usize>,
    pub what: String,
}

/// The files that must stay as they are, before the attack.
pub struct Before(BTreeMap<String, Option<Vec<u8>>>);

impl Before {
    /// Reads them.
    #[must_use]
    pub fn of(project: &Project, case: &CaseFile) -> Self {
        let read = |name: &String| (name.clone(), fs::read(project.file(name)).ok());
        Self(case.after.unchanged.iter().map(read).collect())
    }
}

/// Compares every step with its expectation.
#[must_use]
pub fn steps(case: &CaseFile, entry: Entry, outcomes: &[Outcome]) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for (at, step) in case.steps.iter().enumerate() {
        let missing = Outcome::none("the step was not made", String::new());
        let outcome = outcomes.get(at).unwrap_or(&missing);
        let found = step_faults(step, entry, outcome);
        wrong.extend(found.into_iter().map(|what| Wrong { step: Some(at + 1), what }));
    }
    for text in &case.after.lacks {
        let shown = outcomes.iter().position(|outcome| outcome.text.contains(text));
        wrong.extend(shown.map(|at| Wrong {
            step: Some(at + 1),
            what: format!("the outcome shows `{text}`, which nothing in the case may"),
        }));
    }
    wrong
}

fn step_faults(step: &Step, entry: Entry, outcome: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    let expected = match step.act() {
        Some(Act::Script { exit, .. }) => vec![format!("exit {exit}")],
        _ => step.expect.as_ref().map(|expected| expected.at(entry).to_vec()).unwrap_or_default(),
    };
    if !outcome.is_one_of(&expected) {
        faults.push(format!(
            "expected {}, got {}: {}",
            expected.join(" or "),
            outcome.code,
            shortened(&outcome.text)
        ));
    }
    for text in step.contains.iter().filter(|text| !outcome.text.contains(*text)) {
        faults.push(format!("the outcome lacks `{text}`: {}", shortened(&outcome.text)));
    }
    for text in step.lacks.iter().filter(|text| outcome.text.contains(*text)) {
        faults.push(format!("the outcome shows `{text}`: {}", shortened(&outcome.text)));
    }
    faults
}

/// Checks what must hold when the attack is over.
///
/// # Errors
/// When the person's script cannot be started.
pub fn after(project: &Project, case: &CaseFile, before: &Before) -> Result<Vec<Wrong>> {
    let mut wrong = Vec::new();
    let mut add = |what: String| wrong.push(Wrong { step: None, what });
    for (name, bytes) in &before.0 {
        if fs::read(project.file(name)).ok() != *bytes {
            add(format!("`{name}` is not as it was"));
        }
    }
    for name in &case.after.absent {
        if fs::symlink_metadata(project.file(name)).is_ok() {
            add(format!("`{name}` is there"));
        }
    }
    for (name, text) in &case.after.present {
        match fs::read(project.file(name)) {
            Ok(bytes) if bytes == text.as_bytes() => {}
            Ok(bytes) => add(format!("`{name}` holds `{}`", shortened(&String::from_utf8_lossy(&bytes)))),
            Err(error) => add(format!("`{name}` cannot be read: {error}")),
        }
    }
    if let Some(script) = &case.after.script {
        let ran = project.person(script)?;
        if ran.code != Some(0) {
            add(format!("the script `after` ended with {:?}: {}", ran.code, shortened(&ran.said())));
        }
    }
    Ok(wrong)
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.trim().chars().take(SHOWN).collect();
    if shown.len() < text.trim().len() {
        shown.push('…');
    }
    shown
}
