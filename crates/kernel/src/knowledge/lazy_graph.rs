//! The code graph, opened when it is first needed: most commands never ask it anything.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::{
    Change, Graph, GraphQuery, GraphRows, IngestSummary, ToolError, ToolMetadata, Visibility,
};
use tgp_graph::{GraphOptions, GraphStore, IngestProgress, ToolFact};
use tokio::sync::OnceCell;

use super::graph_server::GraphServer;
use super::inspect::known_tools;

/// The name of the files as they are.
const WORKTREE: &str = "WORKTREE";
/// Asks nothing but whether a commit was ingested.
const KNOWN: &str = "RETURN 1 AS known";

/// Whether a question may name the files as they are as a revision. A question that only contains the word costs a
/// check of the files, and gets the same answer.
fn names_worktree(question: &GraphQuery) -> bool {
    question.query.contains(WORKTREE)
        || question.params.values().any(|value| value.as_str() == Some(WORKTREE))
}

/// A store that is opened once.
pub(crate) struct LazyGraph {
    options: GraphOptions,
    /// The tool repository, whose tools are part of the graph.
    root: PathBuf,
    store: OnceCell<Arc<GraphStore>>,
    /// The server that also keeps the graph and answers queries.
    server: Option<GraphServer>,
    remote: OnceCell<Arc<dyn Graph>>,
}

impl LazyGraph {
    pub(crate) fn new(options: GraphOptions, root: PathBuf, server: Option<GraphServer>) -> Self {
        Self { options, root, store: OnceCell::new(), server, remote: OnceCell::new() }
    }

    /// The embedded store.
    pub(crate) async fn store(&self) -> Result<&Arc<GraphStore>, ToolError> {
        let open = async || GraphStore::open(self.options.clone()).await.map(Arc::new);
        self.store.get_or_try_init(open).await
    }

    /// How far an ingest of this process is.
    pub(crate) fn progress(&self) -> Option<IngestProgress> {
        self.store.get()?.progress()
    }

    /// The server, where there is one.
    async fn remote(&self) -> Result<Option<&Arc<dyn Graph>>, ToolError> {
        let Some(server) = &self.server else { return Ok(None) };
        let open = async || server.open(self.options.clone()).await;
        self.remote.get_or_try_init(open).await.map(Some)
    }
}

#[async_trait]
impl Graph for LazyGraph {
    fn marks_unread_files(&self) -> bool {
        true
    }

    async fn ingest(&self, commit: &str) -> Result<IngestSummary, ToolError> {
        let store = self.store().await?;
        let is_worktree = commit == WORKTREE;
        // A commit can be asked about, with the tools, before its history is read.
        let mut ingested =
            if is_worktree { store.ingest(commit).await? } else { store.ingest_alone(commit).await? };
        let tool = |tool: ToolMetadata| ToolFact {
            path: tool.path.to_string(),
            name: tool.name,
            description: tool.description,
        };
        store.set_tools(known_tools(&self.root).into_iter().map(tool).collect()).await?;
        if !is_worktree {
            let IngestSummary { commits, parsed, .. } = ingested;
            ingested = store.ingest(commit).await?;
            ingested.commits += commits;
            ingested.parsed += parsed;
        }
        if !is_worktree && let Some(remote) = self.remote().await? {
            remote.ingest(commit).await?;
        }
        Ok(ingested)
    }

    async fn query(&self, mut question: GraphQuery) -> Result<GraphRows, ToolError> {
        if question.commit.as_deref() == Some(WORKTREE) {
            // The files as they are now, and not when they were last read; only this machine has them.
            return self.store().await?.query_worktree(question).await;
        }
        match self.remote().await? {
            Some(remote) => {
                // What is on the server came from an embedded store, and a server cannot leave anything out: it is
                // asked where this store knows all of the commit, and nothing of it is hidden. A question that still
                // says what may be seen is one that the server refuses.
                let visible = std::mem::take(&mut question.visible);
                if visible.is_everything() {
                    return remote.query(question).await;
                }
                let refused = GraphQuery { visible: visible.clone(), ..question.clone() };
                if self.hides(&visible).await? {
                    return remote.query(refused).await;
                }
                let answer = remote.query(question).await?;
                let known = GraphQuery::new(KNOWN).at(answer.standing.commit.clone());
                match self.store().await?.query(known).await {
                    Ok(_) => Ok(answer),
                    Err(_) => remote.query(refused).await,
                }
            }
            // `exists_at` means the files as they are now, too.
            None if names_worktree(&question) => self.store().await?.query_beside_worktree(question).await,
            None => self.store().await?.query(question).await,
        }
    }

    async fn hides(&self, visible: &Visibility) -> Result<bool, ToolError> {
        self.store().await?.hides(visible).await
    }

    async fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError> {
        self.store().await?.propose(changes, questions).await
    }
}
