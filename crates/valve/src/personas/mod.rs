//! Which persona reacts to which changes.

mod duration;
mod fault;
mod file;

use std::time::Duration;

use globset::GlobMatcher;
use regex::bytes::Regex;
use tgp_contract::{RelativePath, ToolError};

use crate::{Action, FileChangeKind};

/// A persona that reacts to changes.
#[derive(Clone, Debug)]
pub struct Persona {
    pub name: String,
    /// As they are in the file: globs, parts of a path, and with a `!` prefix what is excluded.
    pub filters: Vec<String>,
    /// Patterns of which one has to be found in the file; none means that the path is enough.
    pub contents: Vec<String>,
    pub changes: Vec<FileChangeKind>,
    /// After an event of a file, further changes of it are gathered for so long.
    pub cooldown: Duration,
    /// An action that takes longer is asked to end, and has failed.
    pub timeout: Duration,
    pub action: Action,
    wanted: Vec<Filter>,
    unwanted: Vec<Filter>,
    patterns: Vec<Regex>,
}

/// One filter, ready to be asked.
#[derive(Clone, Debug)]
struct Filter {
    /// As it is in the file.
    text: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Part(String),
    Path(GlobMatcher),
    /// A glob without `/` is about the last name, wherever it is.
    Name(GlobMatcher),
}

impl Filter {
    fn fits(&self, path: &RelativePath) -> bool {
        match &self.test {
            Test::Part(part) => path.as_str().contains(part.as_str()),
            Test::Path(glob) => glob.is_match(path.as_str()),
            Test::Name(glob) => path.name().is_some_and(|name| glob.is_match(name)),
        }
    }
}

impl Persona {
    /// The filter by which a path is meant.
    pub(crate) fn filter_of(&self, path: &RelativePath) -> Option<&str> {
        if self.unwanted.iter().any(|filter| filter.fits(path)) {
            return None;
        }
        if self.wanted.is_empty() {
            // Only exclusions: everything else is meant, and the first of them says so.
            return self.unwanted.first().map(|filter| filter.text.as_str());
        }
        self.wanted.iter().find(|filter| filter.fits(path)).map(|filter| filter.text.as_str())
    }

    pub(crate) fn wants_contents(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// The pattern that is found in some bytes, which need not be text: one odd byte must not hide a secret.
    pub(crate) fn pattern_of(&self, text: &[u8]) -> Option<&str> {
        self.patterns.iter().find(|pattern| pattern.is_match(text)).map(Regex::as_str)
    }
}

/// All personas of a project, in the order of their file.
#[derive(Clone, Debug, Default)]
pub struct Personas {
    all: Vec<Persona>,
}

impl Personas {
    /// Reads a file of personas; `file_name` is for errors.
    ///
    /// # Errors
    /// `ECONFIG` with the place of the first problem and the next step.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, ToolError> {
        Ok(Self { all: file::read(text, file_name)? })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Persona> {
        self.all.iter()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn want_contents(&self) -> bool {
        self.all.iter().any(Persona::wants_contents)
    }
}
