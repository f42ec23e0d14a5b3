//! What was reported to the callers, to be compared with what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::report::lock;

/// What was reported of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// It has taken effect.
    Success,
    /// It has taken effect, and its record, or the event of its change, could not be kept.
    Stands,
    /// It has failed, and nothing of it stays.
    Failure,
    /// Its caller was killed or left, or the outcome itself was reported as unknown.
    Nothing,
    /// Its outcome was unknown and it was made once more, as `--again` allows.
    Repeated,
}

impl Reported {
    /// Reads a result `{"ok": …}`.
    #[must_use]
    pub fn of(result: &Value) -> Self {
        match result.get("ok").and_then(Value::as_bool) {
            Some(true) => Self::Success,
            Some(false) => Self::of_error(result.get("error").unwrap_or(&Value::Null)),
            None => Self::Nothing,
        }
    }

    /// Reads an error `{"code", "details", …}`.
    #[must_use]
    pub fn of_error(error: &Value) -> Self {
        match error.pointer("/details/outcome").and_then(Value::as_str) {
            Some("unknown") => Self::Nothing,
            _ if change_stands(error) => Self::Stands,
            _ => Self::Failure,
        }
    }
}

/// Whether an error is about what came after the change: it was made, and its record or its event is missing.
#[must_use]
pub fn change_stands(error: &Value) -> bool {
    error.pointer("/details/outcome").and_then(Value::as_str) == Some("done")
}

/// What a run does, which is also the name of its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes a file, waits, inserts a row.
    Both,
    /// Has another tool do it.
    Nested,
    /// Has two others do it at once, for its number and the next one.
    Fans,
    /// Does it, and catches the failure of another run for the next number.
    Catches,
    /// Does it and throws.
    Fails,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Both, Self::Nested, Self::Fans, Self::Catches, Self::Fails];

    /// The tool's name.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Nested => "nested",
            Self::Fans => "fans",
            Self::Catches => "catches",
            Self::Fails => "fails",
        }
    }

    /// The numbers that a successful run leaves.
    #[must_use]
    pub fn effects(self, number: u64) -> Vec<u64> {
        match self {
            Self::Both | Self::Nested | Self::Catches => vec![number],
            Self::Fans => vec![number, number + 1],
            Self::Fails => Vec::new(),
        }
    }
}

/// A run and what its caller knows.
#[derive(Clone, Debug)]
pub struct Run {
    pub kind: Kind,
    /// How it was made: through the socket, a process, a session or a query.
    pub through: &'static str,
    pub reported: Reported,
    /// The error or result that was reported, for a finding.
    pub told: String,
}

/// A tool that an actor writes again and again. No other actor writes it.
#[derive(Clone, Debug, Default)]
pub struct Forged {
    /// The newest version that was reported as written.
    pub written: Option<u64>,
    /// Later versions of which nothing was reported.
    pub unknown: BTreeSet<u64>,
    /// What was reported of each version, for a finding.
    pub history: Vec<(u64, Reported, String)>,
}

/// What was reported to the callers of one project.
#[derive(Debug, Default)]
pub struct Ledger {
    next: AtomicU64,
    runs: Mutex<BTreeMap<u64, Run>>,
    forged: Mutex<BTreeMap<String, Forged>>,
    pushed: Mutex<BTreeSet<String>>,
    events: Mutex<BTreeMap<String, BTreeSet<String>>>,
    sessions: Mutex<BTreeSet<String>>,
    queries: Mutex<BTreeMap<String, Vec<u64>>>,
}

impl Ledger {
    /// A new run, of which nothing is known yet. Every run has its own two numbers.
    pub fn begin(&self, kind: Kind, through: &'static str) -> u64 {
        let number = self.number() * 2;
        let run = Run { kind, through, reported: Reported::Nothing, told: String::new() };
        lock(&self.runs).insert(number, run);
        number
    }

    /// A number that nothing else has.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes down what was reported of a run.
    pub fn settle(&self, number: u64, reported: Reported, told: &Value) {
        if let Some(run) = lock(&self.runs).get_mut(&number) {
            run.reported = reported;
            run.told = told.to_string().chars().take(600).collect();
        }
    }

    /// What is known of a run.
    #[must_use]
    pub fn run(&self, number: u64) -> Option<Run> {
        lock(&self.runs).get(&number).cloned()
    }

    /// All runs.
    #[must_use]
    pub fn runs(&self) -> BTreeMap<u64, Run> {
        lock(&self.runs).clone()
    }

    /// A version of a tool is about to be written.
    pub fn forge(&self, path: &str, version: u64) {
        lock(&self.forged).entry(path.to_owned()).or_default().unknown.insert(version);
    }

    /// What was reported of that version.
    pub fn forge_settled(&self, path: &str, version: u64, reported: Reported, told: &Value) {
        let mut all = lock(&self.forged);
        let forged = all.entry(path.to_owned()).or_default();
        forged.history.push((version, reported, told.to_string().chars().take(400).collect()));
        match reported {
            Reported::Success | Reported::Stands => {
                forged.written = Some(version);
                forged.unknown.clear();
            }
            Reported::Failure => {
                forged.unknown.remove(&version);
            }
            Reported::Nothing | Reported::Repeated => {}
        }
    }

    /// All tools that were written.
    #[must_use]
    pub fn forged(&self) -> BTreeMap<String, Forged> {
        lock(&self.forged).clone()
    }

    /// A commit was reported as pushed.
    pub fn push(&self, commit: &str) {
        lock(&self.pushed).insert(commit.to_owned());
    }

    /// The commits that were reported as pushed.
    #[must_use]
    pub fn pushed(&self) -> BTreeSet<String> {
        lock(&self.pushed).clone()
    }

    /// An event was reported as appended to the chronicle of a file.
    pub fn append(&self, path: &str, event: &str) {
        lock(&self.events).entry(path.to_owned()).or_default().insert(event.to_owned());
    }

    /// The events that were reported as appended, by file.
    #[must_use]
    pub fn events(&self) -> BTreeMap<String, BTreeSet<String>> {
        lock(&self.events).clone()
    }

    /// A session has an id.
    pub fn session(&self, id: &str) {
        lock(&self.sessions).insert(id.to_owned());
    }

    /// The ids of sessions.
    #[must_use]
    pub fn sessions(&self) -> BTreeSet<String> {
        lock(&self.sessions).clone()
    }

    /// The run of a query has an id; its steps are for these numbers.
    pub fn query(&self, id: &str, numbers: &[u64]) {
        lock(&self.queries).insert(id.to_owned(), numbers.to_vec());
    }

    /// The runs of queries and the numbers of their steps.
    #[must_use]
    pub fn queries(&self) -> BTreeMap<String, Vec<u64>> {
        lock(&self.queries).clone()
    }
}
