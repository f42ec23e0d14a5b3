//! Machines and runs in SQLite: every transition is one transaction that reads, computes and writes.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use tgp_contract::{RelativePath, TddState, ToolError};

use crate::machine::{Cycle, FileHashes, Machine, known};
use crate::schema::{self, StoreError};
use crate::{RecordedRun, Scope, Selection, TestOutcome};

/// The runs that are kept of each scope: some days of work.
const MAX_RUNS: i64 = 200;

/// The scopes that are kept: the project, and the tools that were worked on last. A forgotten one is idle, which
/// admits nothing.
const MAX_SCOPES: i64 = 10_000;

/// Machines that are kept in memory between two questions.
const MAX_CACHED: usize = 64;

/// A longer command line is cut; it is kept to be read.
const MAX_COMMAND_BYTES: usize = 4096;

/// Where machines live, shared by all processes that open the same file.
#[derive(Debug)]
pub struct Store {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
    /// SQLite's own number for "another connection has written"; while it stays, the cache holds.
    version: Option<i64>,
    cache: HashMap<Scope, Arc<Machine>>,
}

impl Store {
    /// Opens the file, and makes it when it is not there. Its folder must be there.
    ///
    /// # Errors
    /// When the file cannot be opened, or is not a store of this version.
    pub fn open(path: &Path) -> Result<Self, ToolError> {
        Ok(Self::with(schema::open(path)?))
    }

    /// A store that is gone with the process.
    ///
    /// # Errors
    /// When SQLite cannot be started.
    pub fn open_in_memory() -> Result<Self, ToolError> {
        Ok(Self::with(schema::open_in_memory()?))
    }

    fn with(connection: Connection) -> Self {
        Self { inner: Mutex::new(Inner { connection, version: None, cache: HashMap::new() }) }
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Inner) -> Result<T, StoreError>) -> Result<T, StoreError> {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The machine of a scope as it is now.
    pub(crate) fn machine(&self, scope: &Scope) -> Result<Arc<Machine>, StoreError> {
        self.locked(|inner| {
            forget_old(&inner.connection, &mut inner.version, &mut inner.cache)?;
            if let Some(machine) = inner.cache.get(scope) {
                return Ok(Arc::clone(machine));
            }
            // One read transaction, so that the rows of one machine belong together.
            let transaction = inner.connection.transaction()?;
            let machine = Arc::new(load(&transaction, scope)?);
            transaction.commit()?;
            keep(&mut inner.cache, scope, &machine);
            Ok(machine)
        })
    }

    /// The states of scopes when they can be had without waiting: the store is free, and nothing has changed since the
    /// machines were loaded. Whether it has is asked once for all of them.
    pub(crate) fn states_at_once(&self, scopes: &[Scope]) -> Option<Vec<TddState>> {
        let mut inner = self.inner.try_lock().ok()?;
        let Inner { connection, version, cache } = &mut *inner;
        forget_old(connection, version, cache).ok()?;
        scopes.iter().map(|scope| cache.get(scope).map(|machine| machine.state)).collect()
    }

    /// Reads, computes and writes in one transaction; nothing is kept when `work` fails.
    pub(crate) fn transact<T>(
        &self,
        work: impl FnOnce(&mut Work<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.locked(|inner| {
            let transaction = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            forget_old(&transaction, &mut inner.version, &mut inner.cache)?;
            let mut open = Work { transaction: &transaction, cache: &inner.cache, changed: BTreeMap::new() };
            let answer = work(&mut open)?;
            let changed = open.changed;
            let mut forgotten = Vec::new();
            for (scope, machine) in &changed {
                let before = match inner.cache.get(scope) {
                    Some(known) => Arc::clone(known),
                    None => Arc::new(load(&transaction, scope)?),
                };
                if before.as_ref() != machine.as_ref() {
                    let is_new = save(&transaction, scope, &before, machine)?;
                    if is_new {
                        forget_scopes(&transaction, &mut forgotten)?;
                    }
                }
            }
            transaction.commit()?;
            for (scope, machine) in &changed {
                keep(&mut inner.cache, scope, machine);
            }
            inner.cache.retain(|scope, _| !forgotten.contains(&scope.to_string()));
            Ok(answer)
        })
    }

    /// Every scope that has a machine, with its state, the one that was touched last first.
    pub(crate) fn scopes(&self) -> Result<Vec<(Scope, TddState)>, StoreError> {
        self.locked(|inner| {
            let mut statement = inner
                .connection
                .prepare_cached("SELECT scope, state FROM machine ORDER BY touched DESC, scope LIMIT ?1")?;
            let rows = statement
                .query_map([MAX_SCOPES], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
            rows.map(|row| {
                let (scope, state) = row?;
                Ok((parse_scope(&scope)?, parse_state(&state)?))
            })
            .collect()
        })
    }

    /// The last runs of a scope, the newest first.
    pub(crate) fn runs(&self, scope: &Scope, most: usize) -> Result<Vec<RecordedRun>, StoreError> {
        let most = i64::try_from(most).unwrap_or(MAX_RUNS).min(MAX_RUNS);
        self.locked(|inner| {
            let mut statement = inner.connection.prepare_cached(
                "SELECT id, scope, command, selection, exit_code, passed, failed, outcome, state_before,
                        state_after, fingerprint, started_ms, duration_ms
                 FROM run WHERE scope = ?1 ORDER BY id DESC LIMIT ?2",
            )?;
            let mut rows = statement.query(params![scope.to_string(), most])?;
            let mut runs = Vec::new();
            while let Some(row) = rows.next()? {
                runs.push(recorded(row)?);
            }
            Ok(runs)
        })
    }
}

/// An open transaction.
pub(crate) struct Work<'a> {
    transaction: &'a Transaction<'a>,
    cache: &'a HashMap<Scope, Arc<Machine>>,
    changed: BTreeMap<Scope, Arc<Machine>>,
}

impl Work<'_> {
    /// The machine of a scope, to be changed; it is written when the transaction ends.
    pub fn machine(&mut self, scope: &Scope) -> Result<&mut Machine, StoreError> {
        let entry = match self.changed.entry(scope.clone()) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let machine = match self.cache.get(scope) {
                    Some(known) => Arc::clone(known),
                    None => Arc::new(load(self.transaction, scope)?),
                };
                entry.insert(machine)
            }
        };
        Ok(Arc::make_mut(entry))
    }

    /// Keeps a run, and lets the oldest of its scope go.
    pub fn record(&mut self, run: &RecordedRun) -> Result<(), StoreError> {
        let scope = run.scope.to_string();
        let insert =
            "INSERT INTO run (scope, command, selection, exit_code, passed, failed, outcome, state_before,
                          state_after, fingerprint, started_ms, duration_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.transaction.prepare_cached(insert)?.execute(params![
            scope,
            tgp_text::head(&run.command, MAX_COMMAND_BYTES),
            selection_word(run.selection),
            run.exit_code,
            run.passed.map(to_signed),
            run.failed.map(to_signed),
            run.outcome.as_str(),
            run.state_before.as_str(),
            run.state_after.as_str(),
            run.fingerprint,
            to_signed(run.started_ms),
            to_signed(run.duration_ms),
        ])?;
        let prune = "DELETE FROM run WHERE scope = ?1 AND id NOT IN
            (SELECT id FROM run WHERE scope = ?1 ORDER BY id DESC LIMIT ?2)";
        self.transaction.prepare_cached(prune)?.execute(params![scope, MAX_RUNS])?;
        Ok(())
    }
}

fn forget_old(
    connection: &Connection,
    version: &mut Option<i64>,
    cache: &mut HashMap<Scope, Arc<Machine>>,
) -> Result<(), StoreError> {
    let now: i64 = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    if *version != Some(now) {
        cache.clear();
        *version = Some(now);
    }
    Ok(())
}

fn keep(cache: &mut HashMap<Scope, Arc<Machine>>, scope: &Scope, machine: &Arc<Machine>) {
    if cache.len() >= MAX_CACHED && !cache.contains_key(scope) {
        cache.clear();
    }
    cache.insert(scope.clone(), Arc::clone(machine));
}

fn load(connection: &Connection, scope: &Scope) -> Result<Machine, StoreError> {
    let mut machine = Machine::new();
    let name = scope.to_string();
    let row = connection
        .prepare_cached("SELECT state, cycle, baseline_is_complete FROM machine WHERE scope = ?1")?
        .query_row([&name], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?))
        })
        .optional()?;
    let Some((state, cycle, complete)) = row else { return Ok(machine) };
    machine.state = parse_state(&state)?;
    machine.cycle = parse_cycle(&cycle)?;
    machine.baseline_is_complete = complete;
    let mut statement = connection.prepare_cached("SELECT role, path, hash FROM file WHERE scope = ?1")?;
    let mut rows = statement.query([&name])?;
    while let Some(row) = rows.next()? {
        let (role, path, hash): (String, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let path = RelativePath::new(&path)
            .map_err(|error| StoreError::Damaged(format!("a file of {scope}: {error}")))?;
        match (role.as_str(), hash) {
            (BASELINE, hash) => {
                machine.baseline.insert(path, hash);
            }
            (RED, Some(hash)) => {
                machine.red.insert(path, hash);
            }
            (SEEN, hash) => {
                machine.seen.insert(path, hash);
            }
            (other, _) => return Err(StoreError::Damaged(format!("`{path}` of {scope} is `{other}`"))),
        }
    }
    Ok(machine)
}

const BASELINE: &str = "baseline";
const RED: &str = "red";
const SEEN: &str = "seen";

/// Writes what differs, so that a large project costs no more than a small change. Returns whether the scope is new.
fn save(
    transaction: &Transaction<'_>,
    scope: &Scope,
    before: &Machine,
    after: &Machine,
) -> Result<bool, StoreError> {
    let name = scope.to_string();
    let row = params![name, after.state.as_str(), cycle_word(after.cycle), after.baseline_is_complete];
    let update = "UPDATE machine SET state = ?2, cycle = ?3, baseline_is_complete = ?4,
        touched = (SELECT coalesce(max(touched), 0) + 1 FROM machine) WHERE scope = ?1";
    let insert = "INSERT INTO machine (scope, state, cycle, baseline_is_complete, touched)
        VALUES (?1, ?2, ?3, ?4, (SELECT coalesce(max(touched), 0) + 1 FROM machine))";
    let is_new = transaction.prepare_cached(update)?.execute(row)? == 0;
    if is_new {
        transaction.prepare_cached(insert)?.execute(row)?;
    }
    save_files(transaction, &name, BASELINE, &before.baseline, &after.baseline)?;
    save_files(transaction, &name, RED, &known(&before.red), &known(&after.red))?;
    save_files(transaction, &name, SEEN, &before.seen, &after.seen)?;
    Ok(is_new)
}

fn save_files(
    transaction: &Transaction<'_>,
    scope: &str,
    role: &str,
    before: &FileHashes,
    after: &FileHashes,
) -> Result<(), StoreError> {
    let mut delete =
        transaction.prepare_cached("DELETE FROM file WHERE scope = ?1 AND role = ?2 AND path = ?3")?;
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        delete.execute(params![scope, role, path.as_str()])?;
    }
    let mut insert = transaction
        .prepare_cached("INSERT OR REPLACE INTO file (scope, role, path, hash) VALUES (?1, ?2, ?3, ?4)")?;
    for (path, hash) in after.iter().filter(|(path, hash)| before.get(*path) != Some(*hash)) {
        insert.execute(params![scope, role, path.as_str(), hash])?;
    }
    Ok(())
}

/// Drops the tools that were not touched for the longest time. What a person has halted stays halted.
fn forget_scopes(transaction: &Transaction<'_>, forgotten: &mut Vec<String>) -> Result<(), StoreError> {
    let count: i64 =
        transaction.prepare_cached("SELECT count(*) FROM machine")?.query_row([], |row| row.get(0))?;
    for _ in MAX_SCOPES..count {
        let oldest: Option<String> = transaction
            .prepare_cached(
                "SELECT scope FROM machine WHERE state <> ?1 AND scope <> ?2 ORDER BY touched LIMIT 1",
            )?
            .query_row(params![TddState::Halted.as_str(), Scope::Project.to_string()], |row| row.get(0))
            .optional()?;
        let Some(scope) = oldest else { return Ok(()) };
        for table in ["machine", "file", "run"] {
            transaction
                .prepare_cached(&format!("DELETE FROM {table} WHERE scope = ?1"))?
                .execute([&scope])?;
        }
        forgotten.push(scope);
    }
    Ok(())
}

fn recorded(row: &Row<'_>) -> Result<RecordedRun, StoreError> {
    let word = |index: usize| row.get::<_, String>(index);
    let count = |index: usize| Ok::<_, StoreError>(row.get::<_, Option<i64>>(index)?.map(to_unsigned));
    let (selection, outcome) = (word(3)?, word(7)?);
    Ok(RecordedRun {
        id: row.get(0)?,
        scope: parse_scope(&word(1)?)?,
        command: word(2)?,
        selection: [Selection::Whole, Selection::Part]
            .into_iter()
            .find(|one| selection_word(*one) == selection)
            .ok_or_else(|| StoreError::Damaged(format!("the selection `{selection}`")))?,
        exit_code: row.get(4)?,
        passed: count(5)?,
        failed: count(6)?,
        outcome: TestOutcome::parse(&outcome)
            .ok_or_else(|| StoreError::Damaged(format!("the outcome `{outcome}`")))?,
        state_before: parse_state(&word(8)?)?,
        state_after: parse_state(&word(9)?)?,
        fingerprint: word(10)?,
        started_ms: to_unsigned(row.get(11)?),
        duration_ms: to_unsigned(row.get(12)?),
    })
}

fn selection_word(selection: Selection) -> &'static str {
    match selection {
        Selection::Whole => "whole",
        Selection::Part => "part",
    }
}

fn cycle_word(cycle: Cycle) -> &'static str {
    match cycle {
        Cycle::Fresh => "fresh",
        Cycle::Refactoring => "refactoring",
        Cycle::Repairing => "repairing",
        Cycle::Opened => "opened",
    }
}

fn parse_cycle(word: &str) -> Result<Cycle, StoreError> {
    [Cycle::Fresh, Cycle::Refactoring, Cycle::Repairing, Cycle::Opened]
        .into_iter()
        .find(|cycle| cycle_word(*cycle) == word)
        .ok_or_else(|| StoreError::Damaged(format!("the cycle `{word}`")))
}

fn parse_state(word: &str) -> Result<TddState, StoreError> {
    TddState::parse(word).ok_or_else(|| StoreError::Damaged(format!("the state `{word}`")))
}

fn parse_scope(word: &str) -> Result<Scope, StoreError> {
    Scope::parse(word).ok_or_else(|| StoreError::Damaged(format!("the scope `{word}`")))
}

/// SQLite's integers are signed; a count or a time beyond them is their largest.
fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn to_unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
