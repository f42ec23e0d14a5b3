//! Facts by who says them: what no longer holds is closed, what holds now is opened, what stays is not touched.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::facts::{CurrentFacts, Fact, FactRow, FactSource, Frontier, Stretches, Table};
use super::failure::GraphError;
use super::identity::{self, Identities};
use super::positions::{self, Position, Positions};
use super::schema::{BASE, FIRST, OPEN};

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
                let row = self.insert(fact, None, (*since, *until))?;
                if *until == OPEN {
                    let (table, id) = fact.identity();
                    let digest = fact.digest();
                    held.rows.push(FactRow { table, row, id, digest, since: *since, slot: None });
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
        let mut by_id: HashMap<(Table, i64), FactRow> =
            old.rows.iter().map(|row| ((row.table, row.id), *row)).collect();
        let mut held =
            CurrentFacts { packages: holding.packages, number: old.number, ..CurrentFacts::default() };
        let mut positions = Positions::default();
        let mut new: Vec<(&Fact, u64)> = Vec::new();
        for fact in &holding.facts {
            let digest = fact.digest();
            let known = by_id.remove(&fact.identity());
            match (known, fact.position()) {
                (Some(row), at) if row.digest == digest && row.slot.is_some() == at.is_some() => {
                    if let (Some(slot), Some(at)) = (row.slot, at) {
                        positions.keep(slot, at);
                    }
                    held.rows.push(row);
                }
                (row, _) => {
                    if let Some(row) = row {
                        self.close(row)?;
                    }
                    new.push((fact, digest));
                }
            }
        }
        // Steps from slot to slot are small in the order of the lines.
        new.sort_by_key(|(fact, _)| fact.position());
        for (fact, digest) in new {
            let place = match fact.position() {
                Some(at) => self.take_slot(&mut held, &mut positions, at)?,
                None => None,
            };
            let row = self.open(fact, place.map(|(number, slot)| positions::place(number, slot)))?;
            let (table, id) = fact.identity();
            let slot = place.map(|(_, slot)| slot);
            held.rows.push(FactRow { table, row, id, digest, since: self.moment, slot });
        }
        for row in by_id.into_values() {
            self.end(row)?;
        }
        held.positions = self.hold_positions(old.positions, held.number, &positions)?;
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
        for row in held.all_rows() {
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

    /// A slot for a new fact of a file, and the file's number, which it gets with the first of them.
    fn take_slot(
        &self,
        held: &mut CurrentFacts,
        positions: &mut Positions,
        at: Position,
    ) -> Result<Option<(i64, u32)>, GraphError> {
        let number = match held.number {
            Some(number) => number,
            None => self.next_number()?,
        };
        held.number = Some(number);
        Ok(positions.add(at).map(|slot| (number, slot)))
    }

    /// A number that no file ever had.
    fn next_number(&self) -> Result<i64, GraphError> {
        let number = self
            .connection
            .prepare_cached(
                "INSERT INTO meta (name, value) VALUES ('numbers', '1') \
                 ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING CAST(value AS INTEGER)",
            )?
            .query_row([], |row| row.get(0))?;
        Ok(number)
    }

    /// Makes these the positions of a file, and none where it has none.
    fn hold_positions(
        &self,
        before: Option<FactRow>,
        number: Option<i64>,
        positions: &Positions,
    ) -> Result<Option<FactRow>, GraphError> {
        let data = positions.encode()?;
        let digest = identity::number(&identity::digest_bytes(&data));
        if let Some(row) = before {
            if row.digest == digest && !positions.is_empty() {
                return Ok(before);
            }
            self.close(row)?;
        }
        let Some(id) = number.filter(|_| !positions.is_empty()) else { return Ok(None) };
        let (since, until) = self.stretch();
        self.connection
            .prepare_cached("INSERT INTO position (file, since, until, data) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![id, since, until, data])?;
        let row = self.connection.last_insert_rowid();
        Ok(Some(FactRow { table: Table::Position, row, id, digest, since: self.moment, slot: None }))
    }

    /// The moments at which that holds which is opened.
    fn stretch(&self) -> (i64, i64) {
        match self.frontier {
            Frontier::Newest => (self.since, OPEN),
            Frontier::Oldest => (FIRST, self.moment + 1),
        }
    }

    fn open(&self, fact: &Fact, place: Option<i64>) -> Result<i64, GraphError> {
        self.insert(fact, place, self.stretch())
    }

    fn insert(&self, fact: &Fact, place: Option<i64>, (since, until): (i64, i64)) -> Result<i64, GraphError> {
        match fact {
            Fact::Node { id, props, .. } => {
                self.connection
                    .prepare_cached(
                        "INSERT INTO node (id, props, place, since, until) VALUES (?1, ?2, ?3, ?4, ?5)",
                    )?
                    .execute(params![id, props, place, since, until])?;
            }
            Fact::Edge { id, kind, source, target, props, .. } => {
                self.connection
                    .prepare_cached(
                        "INSERT INTO edge (id, type, source, target, props, place, since, until) \
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    )?
                    .execute(params![id, kind, source, target, props, place, since, until])?;
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
        let table = row.table.name();
        let (sql, moment) = match self.frontier {
            Frontier::Newest => (format!("UPDATE {table} SET until = ?2 WHERE row_id = ?1"), self.moment),
            Frontier::Oldest => (format!("UPDATE {table} SET since = ?2 WHERE row_id = ?1"), self.moment + 1),
        };
        self.connection.prepare_cached(&sql)?.execute([row.row, moment])?;
        Ok(())
    }
}

pub(super) fn delete(connection: &Connection, row: FactRow) -> Result<(), GraphError> {
    let sql = format!("DELETE FROM {} WHERE row_id = ?1", row.table.name());
    connection.prepare_cached(&sql)?.execute([row.row])?;
    Ok(())
}

/// The label of a node that never existed would never be found, and kept forever.
pub(super) fn forget_label(connection: &Connection, row: FactRow) -> Result<(), GraphError> {
    if row.table == Table::Node {
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
pub(super) fn rekey(
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
