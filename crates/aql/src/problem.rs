//! What is wrong with a source: every problem with its place and what to do about it, all at once.

use serde_json::{Value, json};
use tgp_contract::{Code, SourceLocation, ToolError};

/// More problems than a person fixes at once; the rest are reported when these are fixed.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// Problems that are collected before they are sorted; a source of nothing but mistakes has no end of them.
const MAX_COLLECTED: usize = 1_000;

/// Bytes of a message. Names in quotes can be as long as a source.
const LONGEST_MESSAGE: usize = 600;

/// Labels of one problem: a circle may have any number of members.
const MAX_LABELS: usize = 20;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Relative to the project.
    pub path: String,
    pub text: String,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryProblem {
    /// Stable, such as `unknown-step`.
    pub kind: &'static str,
    pub message: String,
    pub place: SourceLocation,
    /// The first column behind it, in the same line.
    pub end_column: u32,
    pub help: Option<String>,
    /// Further places that belong to it, each with the column behind it and a label.
    pub labels: Vec<(SourceLocation, u32, String)>,
}

impl QueryProblem {
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says what can be done, where something can be said.
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    pub(crate) fn label(mut self, (place, end): (SourceLocation, u32), text: impl Into<String>) -> Self {
        self.labels.push((place, end, text.into()));
        self
    }

    fn to_json(&self) -> Value {
        let mut value = json!({
            "kind": self.kind,
            "message": self.message,
            "place": self.place,
            "endColumn": self.end_column,
        });
        if let Some(object) = value.as_object_mut() {
            if let Some(help) = &self.help {
                object.insert("help".to_owned(), json!(help));
            }
            if !self.labels.is_empty() {
                let label = |(place, end, text): &(SourceLocation, u32, String)| json!({ "place": place, "endColumn": end, "message": text });
                object.insert("labels".to_owned(), self.labels.iter().map(label).collect());
            }
        }
        value
    }
}

/// Everything that is wrong with a source and what it imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryProblems {
    /// Never empty, sorted by place, at most a hundred.
    pub problems: Vec<QueryProblem>,
    /// The files that the places are in, the main one first.
    pub sources: Vec<Source>,
}

impl QueryProblems {
    /// The first one as an error; the others are in `details.problems`.
    #[must_use]
    pub fn to_error(&self) -> ToolError {
        let Some(first) = self.problems.first() else {
            return ToolError::new(Code::Internal, "a query was refused without a reason");
        };
        let message = match self.problems.len() {
            1 => first.message.clone(),
            many => format!("{} (and {} more)", first.message, many - 1),
        };
        let error = ToolError::new(Code::Validation, message).place(&first.place);
        let error = match &first.help {
            Some(help) => error.help(help.clone()),
            None => error,
        };
        error.detail("problems", self.problems.iter().map(QueryProblem::to_json).collect::<Value>())
    }
}

/// What a message repeats of a source must not move the reader's cursor, nor reverse the line, nor fill the screen.
fn plain(message: &str) -> String {
    let mut plain = String::with_capacity(message.len().min(LONGEST_MESSAGE));
    for letter in message.chars() {
        if plain.len() >= LONGEST_MESSAGE {
            plain.push('…');
            break;
        }
        let turns =
            matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if letter.is_control() || turns || letter == '\u{2028}' || letter == '\u{2029}' {
            plain.extend(letter.escape_unicode());
        } else {
            plain.push(letter);
        }
    }
    plain
}

/// Collects problems while sources are worked on.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<QueryProblem>,
}

impl Findings {
    pub(crate) fn add(&mut self, mut problem: QueryProblem) {
        if self.found.len() < MAX_COLLECTED {
            problem.labels.truncate(MAX_LABELS);
            problem.message = plain(&problem.message);
            problem.help = problem.help.map(|help| plain(&help));
            for (_, _, text) in &mut problem.labels {
                *text = plain(text);
            }
            self.found.push(problem);
        }
    }

    /// Forgets those after the first `length`, because they follow from another.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.found.truncate(length);
    }

    /// Whether one of these kinds was found since there were `from` of them.
    pub(crate) fn has(&self, from: usize, kinds: &[&str]) -> bool {
        self.found.iter().skip(from).any(|problem| kinds.contains(&problem.kind))
    }

    /// How many there are; used to find out whether something has brought new ones.
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// In the order of the sources, and of places in them. Nothing is reported twice for one place.
    pub(crate) fn into_problems(self, sources: Vec<Source>) -> QueryProblems {
        let file =
            |problem: &QueryProblem| sources.iter().position(|source| source.path == problem.place.file);
        let mut problems = self.found;
        problems.sort_by_cached_key(|problem| {
            (file(problem), problem.place.line, problem.place.column, problem.end_column)
        });
        problems.dedup_by(|later, first| {
            later.place == first.place && (later.kind == first.kind || later.message == first.message)
        });
        problems.truncate(MAX_PROBLEMS);
        QueryProblems { problems, sources }
    }
}
