//! What a soak counts and finds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::plan::Plan;

/// Kinds of findings beyond this number are only counted.
const SHOWN: usize = 40;

/// Numbers and findings, added to by all actors.
#[derive(Debug, Default)]
pub struct Report {
    counts: Mutex<BTreeMap<String, u64>>,
    findings: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
}

/// What one thread left is whole even if it panicked later.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Report {
    /// Counts one more of something.
    pub fn count(&self, what: &str) {
        self.count_many(what, 1);
    }

    /// Counts more of something.
    pub fn count_many(&self, what: &str, more: u64) {
        *lock(&self.counts).entry(what.to_owned()).or_default() += more;
    }

    /// How many there were.
    #[must_use]
    pub fn counted(&self, what: &str) -> u64 {
        lock(&self.counts).get(what).copied().unwrap_or_default()
    }

    /// Something that does not agree.
    pub fn find(&self, what: impl Into<String>) {
        lock(&self.findings).push(what.into());
    }

    /// Something to be known that is not a finding, such as a part that was skipped.
    pub fn note(&self, what: impl Into<String>) {
        lock(&self.notes).push(what.into());
    }

    /// Whether everything agreed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        lock(&self.findings).is_empty()
    }

    /// The report as it is printed.
    #[must_use]
    pub fn text(&self, plan: &Plan) -> String {
        let mut text = String::new();
        for note in lock(&self.notes).iter() {
            let _ = writeln!(text, "note: {note}");
        }
        for (what, count) in lock(&self.counts).iter() {
            let _ = writeln!(text, "{count:>8}  {what}");
        }
        let findings = lock(&self.findings);
        let groups = grouped(&findings);
        for (finding, times) in groups.iter().take(SHOWN) {
            let times = if *times == 1 { String::new() } else { format!(" ({times} times like this)") };
            let _ = writeln!(text, "finding: {finding}{times}");
        }
        if groups.len() > SHOWN {
            let _ = writeln!(text, "… and {} kinds of findings more", groups.len() - SHOWN);
        }
        if findings.is_empty() {
            let _ = writeln!(text, "soak: no findings (seed {})", plan.seed);
        } else {
            let _ = writeln!(text, "soak: {} findings (seed {})", findings.len(), plan.seed);
            let _ = writeln!(text, "run it again: {}", plan.command());
        }
        text
    }
}

/// One finding of each kind, with the number of those that differ from it in numbers and ids only: one defect often
/// shows many times.
fn grouped(findings: &[String]) -> Vec<(&String, usize)> {
    let mut groups: Vec<(String, &String, usize)> = Vec::new();
    for finding in findings {
        let words = finding.split(|letter: char| !letter.is_alphanumeric());
        let plain = words.filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
        let kind: String = plain.take(60).collect::<Vec<_>>().join(" ");
        match groups.iter_mut().find(|group| group.0 == kind) {
            Some(group) => group.2 += 1,
            None => groups.push((kind, finding, 1)),
        }
    }
    groups.into_iter().map(|(_, finding, times)| (finding, times)).collect()
}
