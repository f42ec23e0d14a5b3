//! How far an ingest is: for the process that runs it, and for others that ask meanwhile.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use serde::Serialize;

use super::graph_store::{GraphStore, Inner};
use crate::ingest::past;
use crate::tables::failure::GraphError;
use tgp_contract::{ToolError, UnreadHistory};

/// What an ingest is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IngestPhase {
    /// Reading the files of the newest commit.
    Files,
    /// Connecting them.
    Links,
    /// Reading commits that are new on top of what is known.
    Commits,
    /// Reading older commits, the newest first.
    History,
}

impl IngestPhase {
    /// Its name for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Links => "links",
            Self::Commits => "commits",
            Self::History => "history",
        }
    }
}

/// How far an ingest of this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IngestProgress {
    pub phase: IngestPhase,
    pub done: u64,
    /// 0 where it is not known.
    pub total: u64,
}

/// Written by the ingest, read by whoever shows it.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Option<IngestProgress>>);

impl Progress {
    pub(crate) fn show(&self, phase: IngestPhase, done: u64, total: u64) {
        let progress = IngestProgress { phase, done, total };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    pub(crate) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn get(&self) -> Option<IngestProgress> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An ingest that is running: others see it by the lock, which ends with the process.
pub(crate) struct Running<'a> {
    progress: &'a Progress,
    /// None where another process is running one too, or the file cannot be made.
    _lock: Option<File>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.progress.end();
    }
}

fn lock_file(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-ingest");
    PathBuf::from(name)
}

impl Inner {
    /// Shows others that an ingest is running, as long as what is returned lives.
    pub(crate) fn running(&self) -> Running<'_> {
        let file = File::options().create(true).append(true).open(lock_file(&self.options.file)).ok();
        Running { progress: &self.progress, _lock: file.filter(|file| file.try_lock().is_ok()) }
    }

    fn unread(&self) -> Result<Option<UnreadHistory>, GraphError> {
        self.reader(unread)
    }
}

/// Whether a process is ingesting into the store.
pub(crate) fn is_running(connection: &Connection) -> bool {
    let Some(store) = connection.path() else { return false };
    let Ok(file) = File::open(lock_file(Path::new(store))) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// What of the history is not in the graph; none where all is there and no ingest is running.
pub(crate) fn unread(connection: &Connection) -> Result<Option<UnreadHistory>, GraphError> {
    let running = is_running(connection);
    let pending = past::pending(connection)?;
    if pending.is_none() && !running {
        return Ok(None);
    }
    let mut statement = connection
        .prepare_cached("SELECT commit_id FROM moment WHERE commit_id IS NOT NULL ORDER BY number LIMIT 1")?;
    let oldest = statement.query_map([], |row| row.get(0))?.next().transpose()?.unwrap_or_default();
    let (read, total) = pending.map_or((0, 0), |pending| (pending.read, pending.total));
    Ok(Some(UnreadHistory { running, read, total, oldest }))
}

impl GraphStore {
    /// How far the ingest of this process is; none while there is none.
    #[must_use]
    pub fn progress(&self) -> Option<IngestProgress> {
        self.inner().progress.get()
    }

    /// What of the history is not in the graph; none where all is there and no ingest is running, in any process.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn unread_history(&self) -> Result<Option<UnreadHistory>, ToolError> {
        self.with(Inner::unread).await
    }

    /// Reads at most so many of the commits before the first one that was ingested, the newest first. Returns whether
    /// there are more.
    ///
    /// # Errors
    /// `EGIT` when the repository cannot be read.
    pub async fn read_history(&self, commits: usize) -> Result<bool, ToolError> {
        self.with(move |inner| inner.read_history(commits)).await
    }

    /// Ingests a commit without its history, which [`GraphStore::read_history`] reads; a short one is read at once.
    ///
    /// # Errors
    /// As `ingest`.
    pub async fn ingest_alone(&self, commit: &str) -> Result<tgp_contract::IngestSummary, ToolError> {
        let name = commit.to_owned();
        self.with(move |inner| inner.ingest_alone(&name)).await
    }
}
