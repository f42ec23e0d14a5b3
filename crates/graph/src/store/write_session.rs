//! The one that writes: its connection, and what it remembers from one write to the next.

use std::collections::HashSet;
use std::path::Path;

use git2::Oid;
use globset::GlobSet;
use rusqlite::{Connection, TransactionBehavior};
use tgp_contract::IngestSummary;
use tgp_fs::RepositoryAccess;

use super::progress::{IngestPhase, Progress};
use super::query;
use super::revisions;
use crate::ingest::blobs::{Keep, ParseCache};
use crate::ingest::commits;
use crate::ingest::past::{self, Past};
use crate::ingest::repository::{Changed, Repo};
use crate::ingest::shallow;
use crate::ingest::state::State;
use crate::ingest::tracked::TrackedFiles;
use crate::tables::connect::{REBUILT, forget_meta, give_back, meta, set_meta, start_anew};
use crate::tables::facts::Frontier;
use crate::tables::failure::GraphError;
use crate::tables::undo::take_back;

/// Commits in one transaction: enough to make the transaction cheap, few enough to lose little when it is cut off.
pub(crate) const BATCH: usize = 64;

/// Files that are read in one transaction, before the first commit is there.
const FILES_AT_ONCE: usize = 1000;

/// After so many new blobs the planner's numbers are looked up again.
const GROWN: u64 = 500;

/// How much of the history an ingest reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IngestScope {
    /// The commit alone, unless its history is short: for what is only about the files.
    Head,
    /// All of it, within the cap.
    Whole,
}

/// What an ingest works with.
pub(crate) struct IngestRun<'a> {
    pub(crate) project: &'a Path,
    /// Where its repository may be.
    pub(crate) repository: &'a RepositoryAccess,
    pub(crate) cap: usize,
    /// A history of so many commits is read at once.
    pub(crate) short: usize,
    pub(crate) tests: &'a GlobSet,
    pub(crate) progress: Option<&'a Progress>,
    pub(crate) tracked: &'a TrackedFiles,
}

impl IngestRun<'_> {
    fn show(&self, phase: IngestPhase, done: u64, total: u64) {
        if let Some(progress) = self.progress {
            progress.show(phase, done, total);
        }
    }
}

pub(crate) struct WriteSession {
    pub(crate) connection: Connection,
    pub(crate) parses: ParseCache,
    /// The state at the last moment, and the number of the write it is from.
    pub(crate) state: Option<(u64, State)>,
    /// The history that is being read, and the number of the write it is from.
    past: Option<(u64, Past)>,
}

fn generation(connection: &Connection) -> Result<u64, GraphError> {
    Ok(meta(connection, "generation")?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Whether more of the history can be had than was read, or git has dropped the commit whose history is being read.
fn is_outdated(connection: &Connection, repo: &Repo, cap: usize) -> Result<bool, GraphError> {
    let is_dropped = match past::pending(connection)? {
        Some(pending) => !repo.has(pending.base()?),
        None => false,
    };
    Ok(is_dropped || shallow::is_lifted(connection, repo, cap)?)
}

impl WriteSession {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, parses: ParseCache::default(), state: None, past: None }
    }

    /// Runs `work` in a transaction, with the state as it is at the last moment. What fails leaves nothing.
    pub(crate) fn transact<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut State, &mut ParseCache) -> Result<T, GraphError>,
    ) -> Result<T, GraphError> {
        let Self { connection, parses, state, .. } = self;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let generation = generation(&transaction)?;
        let mut current = match state.take() {
            Some((held, state)) if held == generation => state,
            _ => State::load(&transaction, Frontier::Newest, parses)?,
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

    /// Ingests a commit, and its history where that is short. With [`IngestScope::Whole`] the caller reads the rest.
    pub(crate) fn ingest(
        &mut self,
        repo: &Repo,
        id: Oid,
        scope: IngestScope,
        run: &IngestRun<'_>,
    ) -> Result<IngestSummary, GraphError> {
        let mut ingested = self.ingest_uncounted(repo, id, scope, run)?;
        (ingested.files, ingested.broken) = self.count(id)?;
        Ok(ingested)
    }

    /// The same without the numbers of files, which all of them are looked at for.
    pub(crate) fn ingest_uncounted(
        &mut self,
        repo: &Repo,
        id: Oid,
        scope: IngestScope,
        run: &IngestRun<'_>,
    ) -> Result<IngestSummary, GraphError> {
        self.parses.read_from(run.project, run.repository)?;
        if is_outdated(&self.connection, repo, run.cap)? {
            self.transact(|connection, state, _| {
                // Another process may have been faster.
                if is_outdated(connection, repo, run.cap)? {
                    start_anew(connection)?;
                    *state = State::default();
                }
                Ok(())
            })?;
        }
        let mut ingested = IngestSummary { commit: id.to_string(), ..IngestSummary::default() };
        let is_known = commits::is_known(&self.connection, id)?;
        if !is_known {
            self.ingest_new(repo, id, scope, run, &mut ingested)?;
        }
        if !is_known && self.is_history_short(repo, run)? {
            while self.read_history(repo, BATCH, run, &mut ingested)? {}
        }
        let asked = id.to_string();
        if meta(&self.connection, revisions::ASKED)?.as_ref() != Some(&asked) {
            set_meta(&self.connection, revisions::ASKED, &asked)?;
        }
        if ingested.parsed >= GROWN {
            // The planner's numbers are looked up again where the tables have grown.
            self.connection.execute_batch("PRAGMA analysis_limit = 1000; PRAGMA optimize")?;
        }
        if let Some(progress) = run.progress {
            progress.end();
        }
        Ok(ingested)
    }

    /// Ingests a commit that is not there.
    fn ingest_new(
        &mut self,
        repo: &Repo,
        id: Oid,
        scope: IngestScope,
        run: &IngestRun<'_>,
        ingested: &mut IngestSummary,
    ) -> Result<(), GraphError> {
        let pending = past::pending(&self.connection)?;
        let base = pending.as_ref().map(past::Pending::base).transpose()?;
        if let Some(base) = base
            && repo.is_ancestor(id, base)?
        {
            let is_checked_out = repo.head().is_some_and(|(_, head)| head == id);
            if scope == IngestScope::Head && is_checked_out {
                // An older commit was checked out while the history is being read: its files are what counts now.
                self.transact(|connection, state, _| {
                    start_anew(connection)?;
                    *state = State::default();
                    Ok(())
                })?;
            } else {
                while !commits::is_known(&self.connection, id)?
                    && self.read_history(repo, BATCH, run, ingested)?
                {}
                if commits::is_known(&self.connection, id)? {
                    return Ok(());
                }
            }
        }
        if commits::last(&self.connection)?.commit.is_none() {
            return self.ingest_first(repo, id, run, ingested);
        }
        self.ingest_after(repo, id, run, ingested)
    }

    /// Ingests the first commit: its files are read in steps that stay, then all of them are linked.
    fn ingest_first(
        &mut self,
        repo: &Repo,
        id: Oid,
        run: &IngestRun<'_>,
        ingested: &mut IngestSummary,
    ) -> Result<(), GraphError> {
        let files = repo.files(id)?;
        let total = files.len() as u64;
        for (number, chunk) in files.chunks(FILES_AT_ONCE).enumerate() {
            run.show(IngestPhase::Files, (number * FILES_AT_ONCE) as u64, total);
            ingested.parsed += self.read_files(repo, chunk)?;
        }
        run.show(IngestPhase::Links, 0, total);
        self.transact(|connection, state, parses| {
            // Another process may have been faster.
            if commits::last(connection)?.commit.is_some() {
                return Ok(());
            }
            if revisions::draft(connection)?.is_some() {
                take_back(connection)?;
                *state = State::load(connection, Frontier::Newest, parses)?;
            }
            commits::ingest_first(connection, repo, state, parses, run.tests, id)?;
            forget_meta(connection, REBUILT)?;
            ingested.commits += 1;
            Ok(())
        })?;
        run.show(IngestPhase::Links, total, total);
        if commits::is_known(&self.connection, id)? {
            return Ok(());
        }
        self.ingest_after(repo, id, run, ingested)
    }

    /// Reads blobs that were never read, and nothing else: no state is needed for it.
    fn read_files(&mut self, repo: &Repo, files: &[Changed]) -> Result<u64, GraphError> {
        let Self { connection, parses, .. } = self;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let read = commits::read(&transaction, repo, parses, Keep::InStore, files);
        match read.and_then(|read| Ok((read, transaction.commit()?))) {
            Ok((read, ())) => {
                parses.confirm();
                Ok(read)
            }
            Err(error) => {
                parses.undo();
                Err(error)
            }
        }
    }

    /// Ingests a commit and those of its ancestors that are not there, ancestors first.
    fn ingest_after(
        &mut self,
        repo: &Repo,
        id: Oid,
        run: &IngestRun<'_>,
        ingested: &mut IngestSummary,
    ) -> Result<(), GraphError> {
        let known = commits::known(&self.connection)?;
        let base = past::pending(&self.connection)?.map(|pending| pending.base()).transpose()?;
        let (missing, cut) = repo.missing(id, &known, base, run.cap)?;
        let total = missing.len() as u64;
        for (number, batch) in missing.chunks(BATCH).enumerate() {
            run.show(IngestPhase::Commits, (number * BATCH) as u64, total);
            let (commits, parsed) = self.transact(|connection, state, parses| {
                // Another process may have been faster.
                let known: HashSet<Oid> = commits::known(connection)?;
                let batch: Vec<Oid> = batch.iter().copied().filter(|id| !known.contains(id)).collect();
                if batch.is_empty() {
                    return Ok((0, 0));
                }
                if revisions::draft(connection)?.is_some() {
                    take_back(connection)?;
                    *state = State::load(connection, Frontier::Newest, parses)?;
                }
                past::copy(connection)?;
                if cut {
                    set_meta(connection, "cut", "true")?;
                }
                let parsed = commits::ingest(connection, repo, state, parses, run.tests, &batch)?;
                if cut || repo.has_shallow() {
                    shallow::remember(connection, repo, &batch, run.cap)?;
                }
                Ok((batch.len() as u64, parsed))
            })?;
            ingested.commits += commits;
            ingested.parsed += parsed;
        }
        Ok(())
    }

    /// Whether the history that is still to be read is read with less work than asking about it.
    fn is_history_short(&self, repo: &Repo, run: &IngestRun<'_>) -> Result<bool, GraphError> {
        let Some(pending) = past::pending(&self.connection)? else { return Ok(false) };
        // One commit is all there is, or all that may be read.
        let short = run.short.max(1);
        Ok(run.cap <= short || !repo.has_more_than(pending.base()?, short)?)
    }

    /// Reads the next commits of the history. Returns whether there are more.
    pub(crate) fn read_history(
        &mut self,
        repo: &Repo,
        limit: usize,
        run: &IngestRun<'_>,
        ingested: &mut IngestSummary,
    ) -> Result<bool, GraphError> {
        self.parses.read_from(run.project, run.repository)?;
        let Self { connection, parses, state, past } = self;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some(pending) = past::pending(&transaction)? else { return Ok(false) };
        let base = pending.base()?;
        let number = generation(&transaction)?;
        let mut reading = match past.take() {
            Some((held, reading)) if held == number => reading,
            _ => Past::load(&transaction, repo, base, run.cap)?,
        };
        let mut held = state.take().filter(|(held, _)| *held == number);
        // A draft on the last commit sees what that sees; any other would have to be asked about each commit. And the
        // ledger of the oldest moment is made of one without a draft.
        let last = commits::last(&transaction)?.commit.map(|id| id.to_string());
        if let Some((_, on)) = revisions::draft(&transaction)?
            && (on != last || !pending.is_copied())
        {
            take_back(&transaction)?;
            held = None;
        }
        let (mut commits, mut parsed) = (0, 0);
        if !reading.is_done() {
            (commits, parsed) = reading.step(&transaction, repo, parses, run.tests, limit)?;
        }
        let is_done = reading.is_done();
        if is_done {
            reading.finish(&transaction, repo, base, run.cap)?;
        }
        set_meta(&transaction, "generation", &(number + 1).to_string())?;
        transaction.commit()?;
        if is_done {
            // What had to be known of the oldest moment is not needed any more. It is a lot.
            give_back(connection)?;
        }
        parses.confirm();
        *state = held.map(|(_, state)| (number + 1, state));
        let (read, total) = reading.counts();
        *past = (!is_done).then_some((number + 1, reading));
        ingested.commits += commits;
        ingested.parsed += parsed;
        run.show(IngestPhase::History, read, total);
        Ok(!is_done)
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
