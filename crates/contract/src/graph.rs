//! The code graph as every crate above it sees it: a question about a commit, and an answer that says which commit it
//! was.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Change, ToolError, Visibility};

/// A read-only question in Cypher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphQuery {
    pub query: String,
    /// Values for `$name` in the query; they are bound, never put into text.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Any name of a commit, or `WORKTREE` for the files as they are. The latest commit that was ingested when there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Which files the caller may see. What belongs to others is left out before anything is matched. No wire
    /// carries it: it is the kernel's statement about the caller.
    #[serde(skip)]
    pub visible: Visibility,
}

impl GraphQuery {
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }

    #[must_use]
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn at(mut self, commit: impl Into<String>) -> Self {
        self.commit = Some(commit.into());
        self
    }

    /// The same question, asked by a caller who sees no more than this.
    #[must_use]
    pub fn seen_by(mut self, visible: &Visibility) -> Self {
        self.visible = visible.clone();
        self
    }
}

/// What the graph was when it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// The name that was asked for, or the branch whose commit was taken.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit that the answer is about; empty where there is no commit yet.
    pub commit: String,
    /// Whether the answer is about changed files on top of that commit.
    pub draft: bool,
    /// Whether the repository's head has moved on and was not ingested since.
    pub behind: bool,
    /// What of the history is not in the graph; none where all of it is, and no ingest is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<UnreadHistory>,
    /// Files that the answer does not know, because they can be neither named nor opened.
    #[serde(default, rename = "leftOut", skip_serializing_if = "LeftOutFiles::is_empty")]
    pub left_out: LeftOutFiles,
}

/// Files and directories that no list can name or open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutFiles {
    pub count: u64,
    /// The first of them in the order of their paths.
    pub first: BTreeSet<LeftOutFile>,
}

/// A file or directory that is not in the graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOutFile {
    /// Its path, with U+FFFD for each byte that is not UTF-8.
    pub path: String,
    pub reason: LeftOutReason,
}

/// Why a file or directory is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutReason {
    /// Its name is not UTF-8.
    Name,
    /// The system does not let it be opened.
    Permission,
}

impl LeftOutFiles {
    /// Files that are named; the others are counted.
    const MAX_NAMED: usize = 20;

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn add(&mut self, path: String, reason: LeftOutReason) {
        self.count += 1;
        self.first.insert(LeftOutFile { path, reason });
        if self.first.len() > Self::MAX_NAMED {
            self.first.pop_last();
        }
    }
}

/// History that is not in the graph yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadHistory {
    /// Whether an ingest, of any process, is reading now.
    pub running: bool,
    /// Commits that were read, newest first.
    pub read: u64,
    /// Commits of the history; 0 where they were not counted yet.
    pub total: u64,
    /// The oldest commit that can be asked about; empty before the first one.
    pub oldest: String,
}

/// Rows of values. A node is an object of its properties with `_labels`, a relationship one with `_type`, a path a list
/// of both in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphRows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// Whether there were more rows than the cap.
    pub truncated: bool,
    #[serde(flatten)]
    pub standing: SnapshotInfo,
}

/// What an ingest has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestSummary {
    /// The commit that was asked for, in full.
    pub commit: String,
    /// Commits that were new, ancestors included.
    pub commits: u64,
    /// Blobs that had to be parsed, each for the first time ever.
    pub parsed: u64,
    /// Files of the commit.
    pub files: u64,
    /// Files of it in which the parser met an error; their other symbols are kept.
    pub broken: u64,
}

/// A graph of the code at every commit.
#[async_trait]
pub trait Graph: Send + Sync {
    /// Reads a commit and its history into the graph; `WORKTREE` reads the files as they are, on top of the head. What
    /// is there already changes nothing.
    ///
    /// # Errors
    /// `ENOTFOUND` for a name that is not a commit, `EGIT` when the repository cannot be read.
    async fn ingest(&self, commit: &str) -> Result<IngestSummary, ToolError>;

    /// # Errors
    /// `EVALIDATION` with line, column and a suggestion for a query that cannot be used, `ENOTFOUND` for a commit that
    /// was not ingested.
    async fn query(&self, question: GraphQuery) -> Result<GraphRows, ToolError>;

    /// Whether the graph has, at any commit, anything that may not be seen so.
    ///
    /// # Errors
    /// When that cannot be found out.
    async fn hides(&self, visible: &Visibility) -> Result<bool, ToolError> {
        Ok(!visible.is_everything())
    }

    /// Whether files that were not read completely have the property `broken`. A graph that returns false knows of none, and
    /// is not asked for them: the Guardian cannot tell what they would change.
    fn marks_unread_files(&self) -> bool;

    /// Asks about the files as they are, and about the same files with `changes` made, which are not made. Answers both
    /// for each question, in order.
    ///
    /// # Errors
    /// As [`Graph::query`], and when the files cannot be read.
    async fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError>;
}
