//! Questions about the files as they are now.
//!
//! The draft is compared with the files by reading alone. Only where they differ it is brought up to date, which takes
//! the store's one write lock: a question must not wait for the ingest of another process when nothing has changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tgp_contract::{Code, GraphQuery, GraphRows, ToolError};

use super::draft;
use super::graph_store::Inner;
use super::query;
use super::revisions::{self, WORKTREE};
use crate::ingest::ignores::Ignores;
use crate::ingest::repository::Repo;
use crate::ingest::shallow;
use crate::ingest::state::{Blob, FileState};
use crate::ingest::worktree::WorkTree;
use crate::tables::connect::meta;
use crate::tables::facts::FactSource;
use crate::tables::failure::GraphError;

/// How often the draft is rebuilt because another process replaced it in between.
const MAX_TRIES: usize = 5;

/// Paths and blobs.
type Files = Arc<BTreeMap<String, Blob>>;

/// The files of the last moment and their blobs, by the number of the write that they are from.
#[derive(Default)]
pub(crate) struct HeldFiles(Mutex<Option<(String, Files)>>);

impl HeldFiles {
    fn at(&self, connection: &Connection) -> Result<Files, GraphError> {
        let generation = meta(connection, "generation")?.unwrap_or_default();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, files)) = held.as_ref()
            && *of == generation
        {
            return Ok(Arc::clone(files));
        }
        let mut files = BTreeMap::new();
        let mut statement = connection.prepare_cached("SELECT name, file FROM now WHERE owner = ?1")?;
        let mut rows = statement.query([FactSource::File as i64])?;
        while let Some(row) = rows.next()? {
            let file: FileState =
                postcard::from_bytes(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?)?;
            files.insert(row.get(0)?, file.blob);
        }
        let files = Arc::new(files);
        *held = Some((generation, Arc::clone(&files)));
        Ok(files)
    }
}

impl Inner {
    /// Answers a question about the files as they are now, whatever commit it names.
    pub(crate) fn query_worktree(&self, question: &GraphQuery) -> Result<GraphRows, GraphError> {
        self.query_with_worktree(question, Some(WORKTREE))
    }

    /// Answers a question about `commit`, which may name the files as they are now in `exists_at`.
    pub(crate) fn query_with_worktree(
        &self,
        question: &GraphQuery,
        commit: Option<&str>,
    ) -> Result<GraphRows, GraphError> {
        let repo = self.open_repository(commit)?;
        let repo = repo.as_ref();
        let mut is_new = false;
        for _ in 0..MAX_TRIES {
            let answer = self.reader(|connection| {
                let is_current =
                    stands_on_head(connection, repo)? && (is_new || self.is_current(connection, repo)?);
                if !is_current {
                    return Ok(None);
                }
                let moment = revisions::find(connection, repo, commit)?;
                let limits = self.limits();
                query::answer(connection, repo, question, &moment, &limits, Some(&self.hidden)).map(Some)
            })?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
            self.writing().draft(repo, &self.run())?;
            is_new = true;
        }
        Err(ToolError::new(Code::Conflict, "other processes keep changing the graph's store")
            .help("try again")
            .into())
    }

    /// Brings the draft up to date with the files, where they are what is asked about.
    pub(crate) fn catch_up(&self, commit: Option<&str>) -> Result<(), GraphError> {
        if commit != Some(WORKTREE) {
            return Ok(());
        }
        let repo = self.open_repository(commit)?;
        let repo = repo.as_ref();
        let is_current = self.reader(|connection| {
            Ok(stands_on_head(connection, repo)? && self.is_current(connection, repo)?)
        })?;
        if !is_current {
            self.writing().draft(repo, &self.run())?;
        }
        Ok(())
    }

    /// Whether the draft, which is based on the head, has the files as they are.
    fn is_current(&self, connection: &Connection, repo: Option<&Repo>) -> Result<bool, GraphError> {
        if let Some(repo) = repo
            && shallow::is_lifted(connection, repo, self.options.history)?
        {
            return Ok(false);
        }
        let project = &self.options.project;
        let tracked = self.tracked.of(repo)?;
        let absent = repo.map_or(Ok(BTreeMap::new()), Repo::absent)?;
        let tree = WorkTree {
            project,
            tracked,
            ignores: Ignores::new(project, &self.options.repository, repo),
            absent,
        };
        let files = self.held_files.at(connection)?;
        match tree.left_out_if_same(connection, &files)? {
            Some(left_out) => Ok(draft::left_out(connection)? == left_out),
            None => Ok(false),
        }
    }
}

fn stands_on_head(connection: &Connection, repo: Option<&Repo>) -> Result<bool, GraphError> {
    let head = repo.and_then(Repo::head).map(|(_, id)| id.to_string());
    Ok(revisions::draft(connection)?.is_some_and(|(_, base)| base == head))
}
