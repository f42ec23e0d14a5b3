//! What is wrong with policy files: every problem with its place, all at once.

use std::fmt;

use serde::Serialize;
use serde_json::json;
use tgp_contract::{Code, SourceLocation, ToolError};

/// More problems than a person repairs in one go; the rest is counted, not kept.
pub(crate) const MAX_PROBLEMS: usize = 50;

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PolicyProblem {
    pub place: SourceLocation,
    pub message: String,
    pub help: String,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} ({})", self.place, self.message, self.help)
    }
}

/// Why rules were not loaded. There is at least one problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PolicyError {
    first: PolicyProblem,
    rest: Vec<PolicyProblem>,
    left_out: usize,
}

impl PolicyError {
    /// The problems, by file and place, at most fifty of them.
    pub fn problems(&self) -> impl Iterator<Item = &PolicyProblem> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// How many more there were than are kept.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.first.place, self.first.message)?;
        match self.rest.len().saturating_add(self.left_out) {
            0 => Ok(()),
            1 => formatter.write_str(", and 1 more problem"),
            more => write!(formatter, ", and {more} more problems"),
        }
    }
}

impl From<PolicyError> for ToolError {
    fn from(error: PolicyError) -> Self {
        let message = match error.rest.len().saturating_add(error.left_out) {
            0 => error.first.message.clone(),
            1 => format!("{}, and 1 more problem", error.first.message),
            more => format!("{}, and {more} more problems", error.first.message),
        };
        ToolError::new(Code::Config, message)
            .place(&error.first.place)
            .help(error.first.help.clone())
            .detail("problems", json!(error.problems().collect::<Vec<_>>()))
    }
}

/// Collects problems while files are read.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<PolicyProblem>,
    left_out: usize,
}

impl Problems {
    pub(crate) fn add(&mut self, place: SourceLocation, message: impl Into<String>, help: impl Into<String>) {
        if self.found.len() < MAX_PROBLEMS {
            self.found.push(PolicyProblem { place, message: message.into(), help: help.into() });
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.found.len().saturating_add(self.left_out)
    }

    pub(crate) fn into_result(mut self) -> Result<(), PolicyError> {
        self.found.sort();
        let mut found = self.found.into_iter();
        match found.next() {
            None => Ok(()),
            Some(first) => Err(PolicyError { first, rest: found.collect(), left_out: self.left_out }),
        }
    }
}
