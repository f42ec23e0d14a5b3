//! What a run has to say: a line per family, and each failure with the way to see it again.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::entry::Entry;

/// One thing that did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The file of the case; the family where it is about all of its cases.
    pub place: String,
    pub entry: Option<Entry>,
    /// Counted from 1.
    pub step: Option<usize>,
    pub what: String,
    /// The command that runs it again.
    pub rerun: String,
}

/// What came of a family.
#[derive(Clone, Debug, Default)]
pub struct Family {
    pub name: String,
    pub cases: usize,
    /// Cases times entry points.
    pub runs: usize,
    pub steps: usize,
    /// Runs that this machine could not make, by what it lacks.
    pub skipped: BTreeMap<String, usize>,
    pub failures: Vec<Failure>,
    /// What came of the steps of each run, in a line.
    pub outcomes: Vec<String>,
    pub time: Duration,
}

impl Family {
    /// One line.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!(
            "{:<18} {:>3} cases {:>4} runs {:>5} steps {:>6.1} s  ",
            self.name,
            self.cases,
            self.runs,
            self.steps,
            self.time.as_secs_f64()
        );
        match self.failures.len() {
            0 => line.push_str("held"),
            count => line.push_str(&format!("FAILED: {count}")),
        }
        for (what, count) in &self.skipped {
            line.push_str(&format!(", {count} runs skipped: no {what}"));
        }
        line
    }
}

impl Failure {
    /// The failure as a person reads it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.place.clone();
        if let Some(entry) = self.entry {
            text.push_str(&format!(" through {entry}"));
        }
        if let Some(step) = self.step {
            text.push_str(&format!(", step {step}"));
        }
        format!("{text}: {}\n    again: {}", self.what, self.rerun)
    }
}

/// What came of all families.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub families: Vec<Family>,
}

impl Summary {
    /// Every failure, in the order of the families.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.families.iter().flat_map(|family| &family.failures)
    }

    /// The closing lines: failures, then the sums.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for failure in self.failures() {
            text.push_str(&failure.text());
            text.push('\n');
        }
        let sum = |of: fn(&Family) -> usize| self.families.iter().map(of).sum::<usize>();
        let seconds: f64 = self.families.iter().map(|family| family.time.as_secs_f64()).sum();
        let sums = format!(
            "{} families, {} cases, {} runs, {} steps, {} failures, {seconds:.0} s",
            self.families.len(),
            sum(|family| family.cases),
            sum(|family| family.runs),
            sum(|family| family.steps),
            self.failures().count()
        );
        text + &sums
    }
}
