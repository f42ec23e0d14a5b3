//! Facts by who says them: what no longer holds is closed, what holds now is opened, what stays is not touched.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::failure::GraphError;
use super::identity::{self, Identities};
use super::schema::OPEN;

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
    pub(crate) moment: i64,
    /// Whether the moment can be undone.
    pub(crate) draft: bool,
    pub(crate) ids: &'c mut Identities,
}

impl Writer<'_> {
    pub(crate) fn held(&self, owner: FactSource, name: &str) -> Result<Option<CurrentFacts>, GraphError> {
        held(self.connection, owner, name)
    }

    /// Makes the owner say this and nothing else. Returns what it said before.
    pub(crate) fn set(
        &mut self,
        owner: FactSource,
        name: &str,
        holding: NextFacts<'_>,
    ) -> Result<Option<CurrentFacts>, GraphError> {
        let before = self.held(owner, name)?;
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
        if owner == FactSource::File && held.keys != old.keys {
            unkey(self.connection, name, &old.keys)?;
            enkey(self.connection, name, &held.keys)?;
        }
        self.connection
            .prepare_cached(
                "INSERT INTO now (owner, name, file, facts) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT (owner, name) DO UPDATE SET file = excluded.file, facts = excluded.facts",
            )?
            .execute(params![owner as i64, name, holding.file, postcard::to_stdvec(&held)?])?;
        Ok(before)
    }

    /// Makes the owner say nothing. Returns what it said before.
    pub(crate) fn clear(
        &mut self,
        owner: FactSource,
        name: &str,
    ) -> Result<Option<CurrentFacts>, GraphError> {
        let Some(held) = self.held(owner, name)? else { return Ok(None) };
        self.remember(owner, name)?;
        for row in &held.rows {
            self.end(*row)?;
        }
        if owner == FactSource::File {
            unkey(self.connection, name, &held.keys)?;
        }
        self.connection
            .prepare_cached("DELETE FROM now WHERE owner = ?1 AND name = ?2")?
            .execute(params![owner as i64, name])?;
        Ok(Some(held))
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
        match fact {
            Fact::Node { id, props } => {
                self.connection
                    .prepare_cached("INSERT INTO node (id, props, since, until) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![id, props, self.moment, OPEN])?;
            }
            Fact::Edge { id, kind, source, target, props } => {
                self.connection
                    .prepare_cached(
                        "INSERT INTO edge (id, type, source, target, props, since, until) \
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    )?
                    .execute(params![id, kind, source, target, props, self.moment, OPEN])?;
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
        let sql = if row.edge {
            "UPDATE edge SET until = ?2 WHERE row_id = ?1"
        } else {
            "UPDATE node SET until = ?2 WHERE row_id = ?1"
        };
        self.connection.prepare_cached(sql)?.execute([row.row, self.moment])?;
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

fn held(connection: &Connection, owner: FactSource, name: &str) -> Result<Option<CurrentFacts>, GraphError> {
    let bytes: Option<Vec<u8>> = connection
        .prepare_cached("SELECT facts FROM now WHERE owner = ?1 AND name = ?2")?
        .query_row(params![owner as i64, name], |row| row.get(0))
        .optional()?;
    Ok(bytes.map(|bytes| postcard::from_bytes(&bytes)).transpose()?)
}

fn enkey(connection: &Connection, name: &str, keys: &[i64]) -> Result<(), GraphError> {
    let mut statement =
        connection.prepare_cached("INSERT OR IGNORE INTO now_key (key, name) VALUES (?1, ?2)")?;
    for key in keys {
        statement.execute(params![key, name])?;
    }
    Ok(())
}

fn unkey(connection: &Connection, name: &str, keys: &[i64]) -> Result<(), GraphError> {
    let mut statement = connection.prepare_cached("DELETE FROM now_key WHERE key = ?1 AND name = ?2")?;
    for key in keys {
        statement.execute(params![key, name])?;
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
        let now: Option<Vec<u8>> = connection
            .prepare_cached("SELECT facts FROM now WHERE owner = ?1 AND name = ?2")?
            .query_row(params![owner, name], |row| row.get(0))
            .optional()?;
        let decode = |bytes: Option<&Vec<u8>>| -> Result<CurrentFacts, GraphError> {
            Ok(bytes.map(|bytes| postcard::from_bytes(bytes)).transpose()?.unwrap_or_default())
        };
        let (old, new) = (decode(facts.as_ref())?, decode(now.as_ref())?);
        restore_rows(connection, &old, &new)?;
        if owner == FactSource::File as i64 {
            unkey(connection, &name, &new.keys)?;
            enkey(connection, &name, &old.keys)?;
        }
        match facts {
            Some(facts) => connection
                .prepare_cached(
                    "INSERT INTO now (owner, name, file, facts) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT (owner, name) DO UPDATE SET file = excluded.file, facts = excluded.facts",
                )?
                .execute(params![owner, name, file, facts])?,
            None => connection
                .prepare_cached("DELETE FROM now WHERE owner = ?1 AND name = ?2")?
                .execute(params![owner, name])?,
        };
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
