//! A graph in memory: for each commit the set of its files, what they export, and which file imports which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use async_trait::async_trait;
use tgp_contract::{Change, Code, Graph, GraphQuery, GraphRows, IngestSummary, SnapshotInfo, ToolError};
use tokio::sync::Mutex;

use crate::cypher::ChainQuery;
use crate::imports::is_source;
use crate::matching::Facts;
use crate::repository::{Repository, Snapshot, Source};

/// The files as they are, as a name of a commit.
const WORK_TREE: &str = "WORKTREE";

/// Answers questions in a part of Cypher about the commits of a repository on disk, which it reads with the program `git`.
pub struct MemoryGraph {
    repository: Repository,
    commits: Mutex<Commits>,
}

#[derive(Default)]
struct Commits {
    known: BTreeMap<String, Snapshot>,
    latest: Option<String>,
}

impl MemoryGraph {
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { repository: Repository::new(&directory.into()), commits: Mutex::default() }
    }

    /// What a question is about, and what the answer says of that.
    async fn meant(&self, commit: Option<&str>) -> Result<(Snapshot, SnapshotInfo), ToolError> {
        let commits = self.commits.lock().await;
        let unknown = |name: &str| {
            ToolError::new(Code::NotFound, format!("`{name}` was not ingested")).help("ingest it first")
        };
        let (reference, commit) = match commit {
            Some(WORK_TREE) => {
                let head = self.repository.resolve("HEAD").await.unwrap_or_default();
                let mut snapshot = self.repository.work_tree().await?;
                if let Some(known) = commits.known.get(&head) {
                    snapshot.renames.clone_from(&known.renames);
                }
                let standing = SnapshotInfo {
                    reference: WORK_TREE.to_owned(),
                    commit: head,
                    draft: true,
                    ..SnapshotInfo::default()
                };
                return Ok((snapshot, standing));
            }
            Some(name) => (name.to_owned(), self.repository.resolve(name).await?),
            None => {
                let latest = commits.latest.clone().ok_or_else(|| unknown("HEAD"))?;
                (latest.clone(), latest)
            }
        };
        let snapshot = commits.known.get(&commit).ok_or_else(|| unknown(&reference))?.clone();
        Ok((snapshot, SnapshotInfo { reference, commit, ..SnapshotInfo::default() }))
    }
}

#[async_trait]
impl Graph for MemoryGraph {
    fn marks_unread_files(&self) -> bool {
        false
    }

    async fn ingest(&self, commit: &str) -> Result<IngestSummary, ToolError> {
        let name = if commit == WORK_TREE { "HEAD" } else { commit };
        let commit = self.repository.resolve(name).await?;
        let mut commits = self.commits.lock().await;
        let mut new = 0;
        for ancestor in self.repository.history(&commit).await? {
            if commits.known.contains_key(&ancestor) {
                continue;
            }
            let parent = self.repository.parent(&ancestor).await?;
            let mut snapshot = self.repository.snapshot(&ancestor, parent.as_deref()).await?;
            // What was renamed before stays known as long as the file lives on under whatever name.
            let earlier = parent.and_then(|parent| commits.known.get(&parent));
            let earlier = earlier.map(|known| known.renames.clone()).unwrap_or_default();
            snapshot.renames = living(&snapshot, &earlier);
            commits.known.insert(ancestor, snapshot);
            new += 1;
        }
        let files = commits.known.get(&commit).map_or(0, |snapshot| snapshot.files.len());
        commits.latest = Some(commit.clone());
        let files = u64::try_from(files).unwrap_or(u64::MAX);
        Ok(IngestSummary { commit, commits: new, parsed: 0, files, broken: 0 })
    }

    async fn query(&self, question: GraphQuery) -> Result<GraphRows, ToolError> {
        let (snapshot, standing) = self.meant(question.commit.as_deref()).await?;
        answer(&snapshot, &question, standing)
    }

    async fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError> {
        let (before, standing) = self.meant(Some(WORK_TREE)).await?;
        let mut after = before.clone();
        for change in changes {
            let path = change.path().as_str().to_owned();
            match change {
                Change::Write { content, .. } => {
                    if is_source(&path) {
                        let source = Source::of(&String::from_utf8_lossy(content));
                        after.sources.insert(path.clone(), source);
                    }
                    after.files.insert(path);
                }
                Change::Remove { .. } => {
                    after.sources.remove(&path);
                    after.files.remove(&path);
                }
            }
        }
        questions
            .iter()
            .map(|question| {
                let before = answer(&before, question, standing.clone())?;
                Ok((before, answer(&after, question, standing.clone())?))
            })
            .collect()
    }
}

/// The renames that lead from a file of this commit into its past.
fn living(snapshot: &Snapshot, earlier: &BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    let all: BTreeSet<(String, String)> = snapshot.renames.union(earlier).cloned().collect();
    let mut living = BTreeSet::new();
    let mut reached: Vec<String> = snapshot.files.iter().cloned().collect();
    while let Some(path) = reached.pop() {
        for rename in all.iter().filter(|(new, _)| *new == path) {
            if living.insert(rename.clone()) {
                reached.push(rename.1.clone());
            }
        }
    }
    living
}

fn answer(
    snapshot: &Snapshot,
    question: &GraphQuery,
    standing: SnapshotInfo,
) -> Result<GraphRows, ToolError> {
    let asked = ChainQuery::parse(&question.query, &question.params)?;
    let rows = Facts::new(snapshot).rows(&asked)?;
    let columns = asked.columns.into_iter().map(|column| column.name).collect();
    Ok(GraphRows { columns, rows, truncated: false, standing })
}
