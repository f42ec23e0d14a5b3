//! The store as others see it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use globset::{Glob, GlobSet, GlobSetBuilder};
use rusqlite::Connection;
use tgp_contract::{
    Change, Code, Graph, GraphQuery, GraphRows, IngestSummary, ToolError, Visibility, background,
};

use super::current::HeldFiles;
use super::hidden::HiddenCache;
use super::options::GraphOptions;
use super::progress::Progress;
use super::revisions::WORKTREE;
use super::write_session::{BATCH, IngestRun, IngestScope, WriteSession};
use crate::ingest::repository::Repo;
use crate::ingest::tracked::TrackedFiles;
use crate::tables::connect;
use crate::tables::failure::GraphError;
use crate::tables::identity;
use crate::tables::schema::MAX_HISTORY;

/// Between two steps of reading history: a few times as long as others wait before they try to get the lock again.
const PAUSE: Duration = Duration::from_millis(5);

/// Connections that are kept for the next question.
const MAX_IDLE: usize = 4;

/// A graph of one project in one file.
#[derive(Clone)]
pub struct GraphStore {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) options: GraphOptions,
    pub(crate) tests: GlobSet,
    writing: Mutex<WriteSession>,
    readers: Mutex<Vec<Connection>>,
    repositories: Mutex<Vec<Repo>>,
    /// What callers may not see, as it was found out for the questions before.
    pub(crate) hidden: HiddenCache,
    pub(crate) held_files: HeldFiles,
    pub(crate) progress: Progress,
    pub(crate) tracked: TrackedFiles,
}

/// A lock whose holder fell over guards nothing that a transaction does not guard.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GraphStore {
    /// Opens the store and makes it where there is none. It does not ingest anything.
    ///
    /// # Errors
    /// `ECONFIG` for a pattern that is none, `EGIT` for a repository that cannot be opened, and when the file cannot be
    /// made.
    pub async fn open(options: GraphOptions) -> Result<Self, ToolError> {
        let inner = blocking(move || Inner::open(options)).await?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Answers a question about the files as they are now, and not as they were when they were last read. The store is
    /// written only when they have changed since.
    ///
    /// # Errors
    /// As [`Graph::query`] and [`Graph::ingest`].
    pub async fn query_worktree(&self, question: GraphQuery) -> Result<GraphRows, ToolError> {
        self.with(move |inner| inner.query_worktree(&question)).await
    }

    /// Answers a question about the commit that it names, after the work tree was brought up to date: for a question that
    /// compares the two with `exists_at`.
    ///
    /// # Errors
    /// As [`GraphStore::query_worktree`].
    pub async fn query_beside_worktree(&self, question: GraphQuery) -> Result<GraphRows, ToolError> {
        self.with(move |inner| inner.query_with_worktree(&question, question.commit.as_deref())).await
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, GraphError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || work(&inner)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GraphError> + Send + 'static,
) -> Result<T, ToolError> {
    background::run_bounded(move || work().map_err(ToolError::from)).await
}

/// Opens the repository for a question about a commit. The files as they are need none: one that may not be used is not
/// there for them.
fn open_repository(options: &GraphOptions, commit: Option<&str>) -> Result<Option<Repo>, GraphError> {
    match Repo::open(&options.project, &options.repository) {
        Err(GraphError::Told(error))
            if commit == Some(WORKTREE) && matches!(error.code, Code::Config | Code::Security) =>
        {
            Ok(None)
        }
        opened => opened,
    }
}

impl Inner {
    fn open(options: GraphOptions) -> Result<Self, GraphError> {
        let mut builder = GlobSetBuilder::new();
        for pattern in &options.test_patterns {
            let glob = Glob::new(pattern).map_err(|error| {
                ToolError::new(Code::Config, format!("`{pattern}` is not a glob: {error}"))
                    .help("write patterns such as `**/*.test.ts`")
            })?;
            builder.add(glob);
        }
        let tests = builder.build().map_err(|error| ToolError::new(Code::Config, error.to_string()))?;
        let repository = open_repository(&options, Some(WORKTREE))?;
        let prefix = repository.as_ref().map_or("", Repo::prefix);
        let mut about = vec![prefix];
        about.extend(options.test_patterns.iter().map(String::as_str));
        let about = identity::key(&about).to_string();
        let writing = WriteSession::new(connect::writer(&options.file, &about)?);
        Ok(Self {
            options,
            tests,
            writing: Mutex::new(writing),
            readers: Mutex::new(Vec::new()),
            repositories: Mutex::new(repository.into_iter().collect()),
            hidden: HiddenCache::default(),
            held_files: HeldFiles::default(),
            progress: Progress::default(),
            tracked: TrackedFiles::default(),
        })
    }

    pub(crate) fn writing(&self) -> MutexGuard<'_, WriteSession> {
        lock(&self.writing)
    }

    /// Opens the repository for a question about a commit.
    pub(crate) fn open_repository(&self, commit: Option<&str>) -> Result<Option<Repo>, GraphError> {
        open_repository(&self.options, commit)
    }

    /// Does something with the repository, which is looked for again where there was none or another one.
    pub(crate) fn repository<T>(
        &self,
        commit: Option<&str>,
        work: impl FnOnce(Option<&Repo>) -> Result<T, GraphError>,
    ) -> Result<T, GraphError> {
        let held = lock(&self.repositories).pop();
        let repo = match held.filter(Repo::is_current) {
            Some(repo) => Some(repo),
            None => self.open_repository(commit)?,
        };
        let answer = work(repo.as_ref());
        let mut idle = lock(&self.repositories);
        if idle.len() < MAX_IDLE {
            idle.extend(repo);
        }
        answer
    }

    pub(crate) fn reader<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, GraphError>,
    ) -> Result<T, GraphError> {
        let held = lock(&self.readers).pop();
        let connection = match held {
            Some(connection) => connection,
            None => super::query::reader(&self.options.file)?,
        };
        // One read of one state of the store, from the name of the commit to the last row.
        let transaction = connection.unchecked_transaction()?;
        let answer = work(&transaction);
        transaction.commit()?;
        let mut idle = lock(&self.readers);
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        answer
    }

    fn ingest(&self, name: &str) -> Result<IngestSummary, GraphError> {
        // A separate repository handle: an ingest may take long, and questions are asked meanwhile.
        let repo = self.open_repository(Some(name))?;
        if name == WORKTREE {
            let done = self.writing().draft(repo.as_ref(), &self.run());
            return done.map_err(|error| match &repo {
                Some(repo) => repo.explain(error),
                None => error,
            });
        }
        let Some(repo) = repo else {
            return Err(ToolError::new(Code::NotFound, "the project is in no git repository")
                .help(format!("run `tgp graph ingest --commit {WORKTREE}` to ingest the files as they are"))
                .into());
        };
        self.ingest_commit(&repo, name, IngestScope::Whole)
    }

    pub(crate) fn ingest_alone(&self, name: &str) -> Result<IngestSummary, GraphError> {
        match self.open_repository(Some(name))? {
            Some(repo) if name != WORKTREE => self.ingest_commit(&repo, name, IngestScope::Head),
            _ => self.ingest(name),
        }
    }

    fn ingest_commit(
        &self,
        repo: &Repo,
        name: &str,
        scope: IngestScope,
    ) -> Result<IngestSummary, GraphError> {
        let id = repo.resolve(name)?;
        let _running = self.running();
        let run = self.run();
        let done = self.writing().ingest(repo, id, scope, &run);
        let mut ingested = done.map_err(|error| repo.explain(error))?;
        if scope == IngestScope::Head {
            return Ok(ingested);
        }
        loop {
            let more = self.writing().read_history(repo, BATCH, &run, &mut ingested);
            if !more.map_err(|error| repo.explain(error))? {
                return Ok(ingested);
            }
            // Who waits for the lock gets it between two steps.
            std::thread::sleep(PAUSE);
        }
    }

    pub(crate) fn run(&self) -> IngestRun<'_> {
        let GraphOptions { project, repository, history, short_history, .. } = &self.options;
        IngestRun {
            project,
            repository,
            cap: (*history).min(MAX_HISTORY),
            short: *short_history,
            tests: &self.tests,
            progress: Some(&self.progress),
            tracked: &self.tracked,
        }
    }

    pub(crate) fn read_history(&self, commits: usize) -> Result<bool, GraphError> {
        let Some(repo) = self.open_repository(None)? else { return Ok(false) };
        let _running = self.running();
        let mut ingested = IngestSummary::default();
        let more = self.writing().read_history(&repo, commits, &self.run(), &mut ingested);
        more.map_err(|error| repo.explain(error))
    }
}

#[async_trait]
impl Graph for GraphStore {
    fn marks_unread_files(&self) -> bool {
        true
    }

    async fn ingest(&self, commit: &str) -> Result<IngestSummary, ToolError> {
        let name = commit.to_owned();
        self.with(move |inner| inner.ingest(&name)).await
    }

    async fn query(&self, question: GraphQuery) -> Result<GraphRows, ToolError> {
        self.with(move |inner| inner.query(&question)).await
    }

    async fn hides(&self, visible: &Visibility) -> Result<bool, ToolError> {
        if visible.is_everything() {
            return Ok(false);
        }
        let visible = visible.clone();
        self.with(move |inner| inner.hides(&visible)).await
    }

    async fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError> {
        let (changes, questions) = (changes.to_vec(), questions.to_vec());
        self.with(move |inner| inner.propose(&changes, &questions)).await
    }
}
