//! The options with which a store is opened.

use std::path::PathBuf;
use std::time::Duration;

use tgp_fs::RepositoryAccess;

/// A deeper history is cut off at its older end, which `stats` says.
const HISTORY_COMMITS: usize = 20_000;

/// So short a history is read together with its newest commit.
const SHORT_HISTORY: usize = 64;

/// Rows of one answer: more would not be read, and a model cannot.
const MAX_ROWS: usize = 10_000;
/// How long one query may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a test is called where the options do not say otherwise.
const TEST_PATTERNS: [&str; 10] = [
    "**/*.test.*",
    "**/*.spec.*",
    "**/__tests__/**",
    "**/tests/**",
    "**/test/**",
    "**/src/test/**",
    "**/test_*.py",
    "**/*_test.py",
    "**/*_test.go",
    "**/*_tests.rs",
];

/// Where the store is, and what it is about.
#[derive(Clone, Debug)]
pub struct GraphOptions {
    /// The SQLite file; it is made when it is not there.
    pub file: PathBuf,
    /// The work tree: a repository, a directory in one, a bare repository, or files without git.
    pub project: PathBuf,
    /// Where its repository may be besides in the project.
    pub repository: RepositoryAccess,
    /// Globs of paths, relative to the project, that are tests.
    pub test_patterns: Vec<String>,
    /// How many commits one ingest takes at most.
    pub history: usize,
    /// A history of at most so many commits is read at once, also where only the newest one is needed.
    pub short_history: usize,
    /// Rows of one answer.
    pub max_rows: usize,
    /// How long one query may take.
    pub patience: Duration,
}

impl GraphOptions {
    #[must_use]
    pub fn new(file: impl Into<PathBuf>, project: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            project: project.into(),
            repository: RepositoryAccess::default(),
            test_patterns: TEST_PATTERNS.iter().map(|pattern| (*pattern).to_owned()).collect(),
            history: HISTORY_COMMITS,
            short_history: SHORT_HISTORY,
            max_rows: MAX_ROWS,
            patience: PATIENCE,
        }
    }
}
