//! The one that writes: its connection, and what it remembers from one write to the next.

use std::collections::HashSet;

use git2::Oid;
use globset::GlobSet;
use rusqlite::{Connection, TransactionBehavior};
use tgp_contract::IngestSummary;

use super::query;
use super::revisions;
use crate::ingest::blobs::ParseCache;
use crate::ingest::commits;
use crate::ingest::repository::Repo;
use crate::ingest::shallow;
use crate::ingest::state::State;
use crate::tables::connect::{meta, set_meta, start_anew};
use crate::tables::failure::GraphError;
use crate::tables::write::take_back;

/// Commits in one transaction: enough to make the transaction cheap, few enough to lose little when it is cut off.
const BATCH: usize = 64;

/// After so many new blobs the planner's numbers are looked up again.
const GROWN: u64 = 500;

pub(crate) struct WriteSession {
    pub(crate) connection: Connection,
    pub(crate) parses: ParseCache,
    /// The state at the last moment, and the number of the write it is from.
    pub(crate) state: Option<(u64, State)>,
}

impl WriteSession {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, parses: ParseCache::default(), state: None }
    }

    /// Runs `work` in a transaction, with the state as it is at the last moment. What fails leaves nothing.
    pub(crate) fn transact<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut State, &mut ParseCache) -> Result<T, GraphError>,
    ) -> Result<T, GraphError> {
        let Self { connection, parses, state } = self;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let generation = meta(&transaction, "generation")?.and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut current = match state.take() {
            Some((held, state)) if held == generation => state,
            _ => State::load(&transaction, parses)?,
        };
        let answer = work(&transaction, &mut current, parses).and_then(|answer| {
            set_meta(&transaction, "generation", &(generation + 1).to_string())?;
            transaction.commit()?;
            Ok(answer)
        });
        if answer.is_ok() {
            parses.confirm();
            *state = Some((generation + 1, current));
        } else {
            parses.undo();
        }
        answer
    }

    /// Ingests a commit and its history.
    pub(crate) fn ingest(
        &mut self,
        repo: &Repo,
        id: Oid,
        cap: usize,
        tests: &GlobSet,
    ) -> Result<IngestSummary, GraphError> {
        if shallow::is_lifted(&self.connection, repo, cap)? {
            self.transact(|connection, state, _| {
                // Another process may have been faster.
                if shallow::is_lifted(connection, repo, cap)? {
                    start_anew(connection)?;
                    *state = State::default();
                }
                Ok(())
            })?;
        }
        let known = commits::known(&self.connection)?;
        let (missing, cut) = repo.missing(id, &known, cap)?;
        let mut ingested = IngestSummary { commit: id.to_string(), ..IngestSummary::default() };
        for batch in missing.chunks(BATCH) {
            let (commits, parsed) = self.transact(|connection, state, parses| {
                // Another process may have been faster.
                let known: HashSet<Oid> = commits::known(connection)?;
                let batch: Vec<Oid> = batch.iter().copied().filter(|id| !known.contains(id)).collect();
                if batch.is_empty() {
                    return Ok((0, 0));
                }
                if revisions::draft(connection)?.is_some() {
                    take_back(connection)?;
                    *state = State::load(connection, parses)?;
                }
                if cut {
                    set_meta(connection, "cut", "true")?;
                }
                let parsed = commits::ingest(connection, repo, state, parses, tests, &batch)?;
                if cut || repo.has_shallow() {
                    shallow::remember(connection, repo, &batch, cap)?;
                }
                Ok((batch.len() as u64, parsed))
            })?;
            ingested.commits += commits;
            ingested.parsed += parsed;
        }
        let asked = id.to_string();
        if meta(&self.connection, revisions::ASKED)?.as_ref() != Some(&asked) {
            set_meta(&self.connection, revisions::ASKED, &asked)?;
        }
        if ingested.parsed >= GROWN {
            // The planner's numbers are looked up again where the tables have grown.
            self.connection.execute_batch("PRAGMA analysis_limit = 1000; PRAGMA optimize")?;
        }
        (ingested.files, ingested.broken) = self.count(id)?;
        Ok(ingested)
    }

    /// Files of a commit, and how many of them are broken: known already where it is the last moment.
    fn count(&self, id: Oid) -> Result<(u64, u64), GraphError> {
        let held = meta(&self.connection, "generation")?;
        if let Some((generation, state)) = &self.state
            && held == Some(generation.to_string())
            && revisions::draft(&self.connection)?.is_none()
            && commits::last(&self.connection)?.commit == Some(id)
        {
            let broken = state.files().values().filter(|file| file.broken).count();
            return Ok((state.files().len() as u64, broken as u64));
        }
        let moment = revisions::find(&self.connection, None, Some(&id.to_string()))?;
        query::count_files(&self.connection, moment.number)
    }
}
