//! Facts by who says them: what no longer holds is closed, what holds now is opened, what stays is not touched.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::failure::GraphError;
use super::identity::{self, Identities};
use super::schema::{BASE, FIRST, OPEN};

/// Who says a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FactSource {
    /// A file of the tree, by its path.
    File = 0,
    /// A package that files import and that is not in the tree, by ecosystem and name.
    Package = 1,
    /// A commit, by its id.
    Commit = 2,
    /// The forged tools, all of them together.
    Tools = 3,
}

/// The end of the moments at which facts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frontier {
    /// After all others: what is opened holds from now on.
    Newest,
    /// Before all others: what is opened holds at all moments up to this one.
    Oldest,
}

impl Frontier {
    /// The table of what holds there, by owner.
    pub(crate) fn ledger(self) -> &'static str {
        match self {
            Self::Newest => "now",
            Self::Oldest => "past",
        }
    }

    /// The table of what the owners read.
    pub(crate) fn keys(self) -> &'static str {
        match self {
            Self::Newest => "now_key",
            Self::Oldest => "past_key",
        }
    }
}

/// The stretches of moments, in order and apart from each other, each without its end.
pub(crate) type Stretches = Vec<(i64, i64)>;

/// One node or relationship as it holds at a moment.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    Node { id: i64, props: String },
    Edge { id: i64, kind: &'static str, source: i64, target: i64, props: String },
}

impl Fact {
    pub(crate) fn edge(
        kind: &'static str,
        source: i64,
        target: i64,
        occurrence: usize,
        props: String,
    ) -> Self {
        Self::Edge { id: identity::edge_id(kind, source, target, occurrence), kind, source, target, props }
    }

    fn identity(&self) -> (bool, i64) {
        match self {
            Self::Node { id, .. } => (false, *id),
            Self::Edge { id, .. } => (true, *id),
        }
    }

    /// Ends and type are in the id; a rare id that two relationships share is distinguished here.
    fn digest(&self) -> u64 {
        match self {
            Self::Node { props, .. } => identity::number(&identity::digest(&[props])),
            Self::Edge { source, target, props, .. } => {
                identity::number(&identity::digest(&[props, &source.to_string(), &target.to_string()]))
            }
        }
    }
}

/// The row in which a fact is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FactRow {
    edge: bool,
    row: i64,
    id: i64,
    digest: u64,
    since: i64,
}

/// What an owner holds at the last moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CurrentFacts {
    rows: Vec<FactRow>,
    /// What it read.
    keys: Vec<i64>,
    /// Packages outside the tree that it names.
    pub(crate) packages: Vec<String>,
}

/// What an owner says from now on.
#[derive(Default)]
pub(crate) struct NextFacts<'a> {
    pub(crate) file: Option<&'a [u8]>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) keys: Vec<i64>,
    pub(crate) packages: Vec<String>,
}

/// Writes one moment.
pub(crate) struct Writer<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) frontier: Frontier,
    pub(crate) moment: i64,
    /// From when on holds what is opened at the newest end.
    since: i64,
    /// Whether the moment can be undone.
    draft: bool,
    /// Keys that are written together and in their order, which is faster: at the first moment of a store nobody reads them
    /// before all are there.
    keys: Option<Vec<(i64, i64)>>,
    pub(crate) ids: &'c mut Identities,
}

impl<'c> Writer<'c> {
    /// A moment after all others.
    pub(crate) fn after(connection: &'c Connection, ids: &'c mut Identities, moment: i64) -> Self {
        Self { connection, frontier: Frontier::Newest, moment, since: moment, draft: false, keys: None, ids }
    }

    /// The work tree on top of the last moment, which can be undone.
    pub(crate) fn draft(connection: &'c Connection, ids: &'c mut Identities, moment: i64) -> Self {
        Self { draft: true, ..Self::after(connection, ids, moment) }
    }

    /// The first moment of a store. Its facts hold at all earlier moments until these are read.
    pub(crate) fn base(connection: &'c Connection, ids: &'c mut Identities) -> Self {
        Self { since: FIRST, keys: Some(Vec::new()), ..Self::after(connection, ids, BASE) }
    }

    /// A moment before all others.
    pub(crate) fn before(connection: &'c Connection, ids: &'c mut Identities, moment: i64) -> Self {
        Self { frontier: Frontier::Oldest, ..Self::after(connection, ids, moment) }
    }

    pub(crate) fn held(&self, owner: FactSource, name: &str) -> Result<Option<CurrentFacts>, GraphError> {
        Ok(held(self.connection, self.frontier, owner, name)?.map(|(_, held)| held))
    }

    /// Whether a file holds one of these keys.
    pub(crate) fn is_read(&self, key: i64) -> Result<bool, GraphError> {
        let sql = format!("SELECT 1 FROM {} WHERE key = ?1", self.frontier.keys());
        Ok(self.connection.prepare_cached(&sql)?.exists([key])?)
    }

    /// The files that read what a key is about.
    pub(crate) fn readers(&self, key: i64, names: &mut impl Extend<String>) -> Result<(), GraphError> {
        let sql = format!(
            "SELECT n.name FROM {} AS k JOIN {} AS n ON n.row_id = k.row WHERE k.key = ?1",
            self.frontier.keys(),
            self.frontier.ledger()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([key], |row| row.get(0))?;
        for row in rows {
            names.extend([row?]);
        }
        Ok(())
    }

    /// Writes facts of an owner that says nothing else, each in its own stretches. Those that hold at the last moment are
    /// known to be the owner's from then on.
    pub(crate) fn place(
        &mut self,
        owner: FactSource,
        name: &str,
        facts: &[(Fact, Stretches)],
    ) -> Result<(), GraphError> {
        let mut held = CurrentFacts::default();
        for (fact, stretches) in facts {
            for (since, until) in stretches {
                let row = self.insert(fact, *since, *until)?;
                if *until == OPEN {
                    let (edge, id) = fact.identity();
                    held.rows.push(FactRow { edge, row, id, digest: fact.digest(), since: *since });
                }
            }
        }
        if held.rows.is_empty() {
            return Ok(());
        }
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO now (owner, name, facts) VALUES (?1, ?2, ?3)")?
            .execute(params![owner as i64, name, postcard::to_stdvec(&held)?])?;
        Ok(())
    }

    /// Makes the owner say this and nothing else. Returns what it said before.
    pub(crate) fn set(
        &mut self,
        owner: FactSource,
        name: &str,
        holding: NextFacts<'_>,
    ) -> Result<Option<CurrentFacts>, GraphError> {
        let (row, before) = held(self.connection, self.frontier, owner, name)?.unzip();
        self.remember(owner, name)?;
        let old = before.clone().unwrap_or_default();
        let mut by_id: HashMap<(bool, i64), FactRow> =
            old.rows.iter().map(|row| ((row.edge, row.id), *row)).collect();
        let mut held = CurrentFacts { packages: holding.packages, ..CurrentFacts::default() };
        for fact in &holding.facts {
            let digest = fact.digest();
            let (edge, id) = fact.identity();
            match by_id.remove(&(edge, id)) {
                Some(row) if row.digest == digest => held.rows.push(row),
                row => {
                    if let Some(row) = row {
                        self.close(row)?;
                    }
                    let row = self.open(fact)?;
                    held.rows.push(FactRow { edge, row, id, digest, since: self.moment });
                }
            }
        }
        for row in by_id.into_values() {
            self.end(row)?;
        }
        held.keys = holding.keys;
        held.keys.sort_unstable();
        held.keys.dedup();
        let row = self.hold(row, owner, name, holding.file, &postcard::to_stdvec(&held)?)?;
        if owner == FactSource::File && held.keys != old.keys {
            match &mut self.keys {
                Some(keys) if old.keys.is_empty() => keys.extend(held.keys.iter().map(|key| (*key, row))),
                _ => rekey(self.connection, self.frontier, row, &old.keys, &held.keys)?,
            }
        }
        Ok(before)
    }

    /// Writes the keys that were kept back.
    pub(crate) fn write_keys(&mut self) -> Result<(), GraphError> {
        let mut keys = self.keys.as_mut().map(std::mem::take).unwrap_or_default();
        keys.sort_unstable();
        let sql = format!("INSERT OR IGNORE INTO {} (key, row) VALUES (?1, ?2)", self.frontier.keys());
        let mut insert = self.connection.prepare_cached(&sql)?;
        for (key, row) in keys {
            insert.execute([key, row])?;
        }
        Ok(())
    }

    /// Makes the owner say nothing. Returns what it said before.
    pub(crate) fn clear(
        &mut self,
        owner: FactSource,
        name: &str,
    ) -> Result<Option<CurrentFacts>, GraphError> {
        let Some((number, held)) = held(self.connection, self.frontier, owner, name)? else {
            return Ok(None);
        };
        self.remember(owner, name)?;
        for row in &held.rows {
            self.end(*row)?;
        }
        if owner == FactSource::File {
            rekey(self.connection, self.frontier, number, &held.keys, &[])?;
        }
        let sql = format!("DELETE FROM {} WHERE row_id = ?1", self.frontier.ledger());
        self.connection.prepare_cached(&sql)?.execute([number])?;
        Ok(Some(held))
    }

    /// Writes the row of the ledger, and returns its number.
    fn hold(
        &self,
        row: Option<i64>,
        owner: FactSource,
        name: &str,
        file: Option<&[u8]>,
        facts: &[u8],
    ) -> Result<i64, GraphError> {
        let ledger = self.frontier.ledger();
        if let Some(row) = row {
            let sql = format!("UPDATE {ledger} SET file = ?2, facts = ?3 WHERE row_id = ?1");
            self.connection.prepare_cached(&sql)?.execute(params![row, file, facts])?;
            return Ok(row);
        }
        let sql = format!("INSERT INTO {ledger} (owner, name, file, facts) VALUES (?1, ?2, ?3, ?4)");
        self.connection.prepare_cached(&sql)?.execute(params![owner as i64, name, file, facts])?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Keeps what a draft is about to replace; only the first time in a draft is what was before it.
    fn remember(&self, owner: FactSource, name: &str) -> Result<(), GraphError> {
        if !self.draft {
            return Ok(());
        }
        let kept = self
            .connection
            .prepare_cached(
                "INSERT OR IGNORE INTO undo (owner, name, file, facts) \
                 SELECT owner, name, file, facts FROM now WHERE owner = ?1 AND name = ?2",
            )?
            .execute(params![owner as i64, name])?;
        if kept == 0 {
            self.connection
                .prepare_cached("INSERT OR IGNORE INTO undo (owner, name) VALUES (?1, ?2)")?
                .execute(params![owner as i64, name])?;
        }
        Ok(())
    }

    fn open(&self, fact: &Fact) -> Result<i64, GraphError> {
        match self.frontier {
            Frontier::Newest => self.insert(fact, self.since, OPEN),
            Frontier::Oldest => self.insert(fact, FIRST, self.moment + 1),
        }
    }

    fn insert(&self, fact: &Fact, since: i64, until: i64) -> Result<i64, GraphError> {
        match fact {
            Fact::Node { id, props } => {
                self.connection
                    .prepare_cached("INSERT INTO node (id, props, since, until) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![id, props, since, until])?;
            }
            Fact::Edge { id, kind, source, target, props } => {
                self.connection
                    .prepare_cached(
                        "INSERT INTO edge (id, type, source, target, props, since, until) \
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    )?
                    .execute(params![id, kind, source, target, props, since, until])?;
            }
        }
        Ok(self.connection.last_insert_rowid())
    }

    /// Closes a fact that does not continue in another form.
    fn end(&self, row: FactRow) -> Result<(), GraphError> {
        self.close(row)?;
        if row.since == self.moment { forget_label(self.connection, row) } else { Ok(()) }
    }

    /// A row that was opened at this moment never was.
    fn close(&self, row: FactRow) -> Result<(), GraphError> {
        if row.since == self.moment {
            return delete(self.connection, row);
        }
        let (sql, moment) = match (self.frontier, row.edge) {
            (Frontier::Newest, true) => ("UPDATE edge SET until = ?2 WHERE row_id = ?1", self.moment),
            (Frontier::Newest, false) => ("UPDATE node SET until = ?2 WHERE row_id = ?1", self.moment),
            (Frontier::Oldest, true) => ("UPDATE edge SET since = ?2 WHERE row_id = ?1", self.moment + 1),
            (Frontier::Oldest, false) => ("UPDATE node SET since = ?2 WHERE row_id = ?1", self.moment + 1),
        };
        self.connection.prepare_cached(sql)?.execute([row.row, moment])?;
        Ok(())
    }
}

fn delete(connection: &Connection, row: FactRow) -> Result<(), GraphError> {
    let sql =
        if row.edge { "DELETE FROM edge WHERE row_id = ?1" } else { "DELETE FROM node WHERE row_id = ?1" };
    connection.prepare_cached(sql)?.execute([row.row])?;
    Ok(())
}

/// The label of a node that never existed would never be found, and kept forever.
fn forget_label(connection: &Connection, row: FactRow) -> Result<(), GraphError> {
    if !row.edge {
        connection
            .prepare_cached(
                "DELETE FROM label WHERE node = ?1 AND NOT EXISTS (SELECT 1 FROM node WHERE id = ?1)",
            )?
            .execute([row.id])?;
    }
    Ok(())
}

/// What an owner holds, and the row in which that is written.
fn held(
    connection: &Connection,
    frontier: Frontier,
    owner: FactSource,
    name: &str,
) -> Result<Option<(i64, CurrentFacts)>, GraphError> {
    let sql = format!("SELECT row_id, facts FROM {} WHERE owner = ?1 AND name = ?2", frontier.ledger());
    let row: Option<(i64, Vec<u8>)> = connection
        .prepare_cached(&sql)?
        .query_row(params![owner as i64, name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    row.map(|(row, bytes)| Ok((row, postcard::from_bytes(&bytes)?))).transpose()
}

/// Replaces the keys of a row of the ledger. Both lists are in order.
fn rekey(
    connection: &Connection,
    frontier: Frontier,
    row: i64,
    old: &[i64],
    new: &[i64],
) -> Result<(), GraphError> {
    let table = frontier.keys();
    let mut delete =
        connection.prepare_cached(&format!("DELETE FROM {table} WHERE key = ?1 AND row = ?2"))?;
    for key in old.iter().filter(|key| new.binary_search(key).is_err()) {
        delete.execute([*key, row])?;
    }
    let mut insert =
        connection.prepare_cached(&format!("INSERT OR IGNORE INTO {table} (key, row) VALUES (?1, ?2)"))?;
    for key in new.iter().filter(|key| old.binary_search(key).is_err()) {
        insert.execute([*key, row])?;
    }
    Ok(())
}

/// Takes the draft back: everything is as it was before the moment `draft`.
pub(crate) fn take_back(connection: &Connection) -> Result<(), GraphError> {
    let mut statement = connection.prepare("SELECT owner, name, file, facts FROM undo")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let owner: i64 = row.get(0)?;
        let name: String = row.get(1)?;
        let file: Option<Vec<u8>> = row.get(2)?;
        let facts: Option<Vec<u8>> = row.get(3)?;
        let now: Option<(i64, Vec<u8>)> = connection
            .prepare_cached("SELECT row_id, facts FROM now WHERE owner = ?1 AND name = ?2")?
            .query_row(params![owner, name], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let decode = |bytes: Option<&Vec<u8>>| -> Result<CurrentFacts, GraphError> {
            Ok(bytes.map(|bytes| postcard::from_bytes(bytes)).transpose()?.unwrap_or_default())
        };
        let (old, new) = (decode(facts.as_ref())?, decode(now.as_ref().map(|(_, facts)| facts))?);
        restore_rows(connection, &old, &new)?;
        let row = match (now.map(|(row, _)| row), &facts) {
            (Some(row), Some(facts)) => {
                connection
                    .prepare_cached("UPDATE now SET file = ?2, facts = ?3 WHERE row_id = ?1")?
                    .execute(params![row, file, facts])?;
                Some(row)
            }
            (None, Some(facts)) => {
                connection
                    .prepare_cached("INSERT INTO now (owner, name, file, facts) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![owner, name, file, facts])?;
                Some(connection.last_insert_rowid())
            }
            (Some(row), None) => {
                connection.prepare_cached("DELETE FROM now WHERE row_id = ?1")?.execute([row])?;
                Some(row)
            }
            (None, None) => None,
        };
        if let Some(row) = row.filter(|_| owner == FactSource::File as i64) {
            rekey(connection, Frontier::Newest, row, &new.keys, &old.keys)?;
        }
    }
    drop(rows);
    drop(statement);
    connection.execute("DELETE FROM undo", [])?;
    connection.execute("DELETE FROM moment WHERE commit_id IS NULL", [])?;
    Ok(())
}

/// Deletes what the draft opened and opens what it closed.
fn restore_rows(connection: &Connection, old: &CurrentFacts, new: &CurrentFacts) -> Result<(), GraphError> {
    let kept: std::collections::HashSet<(bool, i64)> =
        old.rows.iter().map(|row| (row.edge, row.row)).collect();
    for row in &new.rows {
        if !kept.contains(&(row.edge, row.row)) {
            delete(connection, *row)?;
            forget_label(connection, *row)?;
        }
    }
    let still: std::collections::HashSet<(bool, i64)> =
        new.rows.iter().map(|row| (row.edge, row.row)).collect();
    for row in &old.rows {
        if !still.contains(&(row.edge, row.row)) {
            let sql = if row.edge {
                "UPDATE edge SET until = ?2 WHERE row_id = ?1"
            } else {
                "UPDATE node SET until = ?2 WHERE row_id = ?1"
            };
            connection.prepare_cached(sql)?.execute([row.row, OPEN])?;
        }
    }
    Ok(())
}
