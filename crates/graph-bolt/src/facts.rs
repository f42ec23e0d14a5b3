//! What a server has to be sent: the rows of the embedded store that are new, or that have ended, since some moment.
//!
//! On a server a relationship joins two rows, where in the store it joins two ids. So it is cut into pieces, one for
//! each pair of rows that hold while it does: a piece holds exactly when it and both its ends are visible. An end that
//! was renamed away is a row that always holds and has such pieces only. What moves in its file is another row as well,
//! since its lines are properties on a server.

use std::collections::{BTreeMap, HashMap};

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tgp_contract::canonical;

use tgp_graph::mirroring::GraphError;
use tgp_graph::mirroring::{OPEN, RENAME, pieces};

/// Nodes that change without a commit; they are sent completely each time.
pub(super) const TOOL: &str = "Tool";

/// Which rows are wanted: those of moments after `after`, up to and with `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) after: i64,
    pub(super) last: i64,
}

impl Span {
    /// `until` as others see it: the work tree's moment comes after the last commit, and is not copied.
    fn end(self, until: i64) -> i64 {
        if until > self.last { OPEN } else { until }
    }

    fn is_new(self, since: i64) -> bool {
        since > self.after && since <= self.last
    }

    fn has_ended(self, since: i64, until: i64) -> bool {
        since <= self.after && until > self.after && until <= self.last
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodeRow {
    pub(super) label: String,
    pub(super) key: String,
    pub(super) id: i64,
    pub(super) properties: Map<String, Value>,
    pub(super) since: i64,
    pub(super) until: i64,
    pub(super) ghost: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct EdgeRow {
    pub(super) kind: String,
    pub(super) key: String,
    pub(super) id: i64,
    pub(super) from: End,
    pub(super) to: End,
    pub(super) properties: Map<String, Value>,
    pub(super) since: i64,
    pub(super) until: i64,
}

/// The row that a piece of a relationship ends at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) label: String,
    pub(super) key: String,
    pub(super) id: i64,
}

/// A row that is on the server and holds no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// The label of a node, or the type of a relationship.
    pub(super) kind: String,
    pub(super) key: String,
    /// The row that a relationship begins at, by which it is found.
    pub(super) from: Option<End>,
    pub(super) until: i64,
}

/// The moments of the store that are commits, oldest first.
pub(super) fn moments(connection: &Connection) -> Result<Vec<(i64, String)>, GraphError> {
    let sql = "SELECT number, commit_id FROM moment WHERE commit_id IS NOT NULL ORDER BY number";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What distinguishes two stores: the same commits in the same order.
pub(super) fn digest<'a>(moments: impl Iterator<Item = &'a (i64, String)>) -> String {
    let mut hasher = Sha256::new();
    for (number, commit) in moments {
        hasher.update(format!("{number} {commit}\n"));
    }
    canonical::hex(&hasher.finalize())
}

pub(super) fn labels(connection: &Connection) -> Result<Vec<String>, GraphError> {
    let mut statement = connection.prepare("SELECT DISTINCT name FROM label ORDER BY name")?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Calls `each` for the nodes that a server does not have: new ones, all tools and all files that were renamed away.
pub(super) fn nodes(
    connection: &Connection,
    span: Span,
    mut each: impl FnMut(NodeRow) -> Result<(), GraphError>,
) -> Result<(), GraphError> {
    let sql = "SELECT (SELECT min(name) FROM label WHERE node = n.id) AS label, n.id, n.props, n.since, n.until, n.ghost, \
               n.at FROM seen_node AS n WHERE n.since <= ?2 AND (n.since > ?1 OR n.ghost = 1 OR label = ?3)";
    let mut statement = connection.prepare(&format!("{} {sql}", pieces()))?;
    let mut rows = statement.query(params![span.after, span.last, TOOL])?;
    while let Some(row) = rows.next()? {
        let (id, since, ghost) = (row.get(1)?, row.get(3)?, row.get(5)?);
        each(NodeRow {
            label: row.get(0)?,
            key: node_key(id, since, ghost),
            id,
            properties: object(row, 2, 6)?,
            since,
            until: span.end(row.get(4)?),
            ghost,
        })?;
    }
    Ok(())
}

pub(super) fn ended_nodes(
    connection: &Connection,
    span: Span,
    mut each: impl FnMut(Ended) -> Result<(), GraphError>,
) -> Result<(), GraphError> {
    let sql = "SELECT (SELECT min(name) FROM label WHERE node = n.id), n.id, n.since, n.until FROM seen_node AS n \
               WHERE n.ghost = 0 AND n.since <= ?1 AND n.until > ?1 AND n.until <= ?2";
    let mut statement = connection.prepare(&format!("{} {sql}", pieces()))?;
    let mut rows = statement.query(params![span.after, span.last])?;
    while let Some(row) = rows.next()? {
        let key = node_key(row.get(1)?, row.get(2)?, false);
        each(Ended { kind: row.get(0)?, key, from: None, until: row.get(3)? })?;
    }
    Ok(())
}

/// The pieces of all relationships but renames that touch the span.
const PIECES: &str = "
SELECT e.id, e.type, e.source, e.target, e.props,
       max(e.since, a.since, b.since), min(e.until, a.until, b.until), a.since, b.since,
       (SELECT min(name) FROM label WHERE node = e.source), (SELECT min(name) FROM label WHERE node = e.target),
       e.at
FROM seen_edge AS e
JOIN seen_node AS a ON a.id = e.source AND a.ghost = 0 AND a.since < e.until AND a.until > e.since
JOIN seen_node AS b ON b.id = e.target AND b.ghost = 0 AND b.since < e.until AND b.until > e.since
WHERE e.type <> ?3 AND e.until > ?1 AND a.until > ?1 AND b.until > ?1
  AND max(e.since, a.since, b.since) <= ?2
  AND max(e.since, a.since, b.since) < min(e.until, a.until, b.until)";

/// Calls `each` with the pieces that are new, and `ended` with those that the server has and that hold no longer.
pub(super) fn edges(
    connection: &Connection,
    span: Span,
    mut each: impl FnMut(EdgeRow) -> Result<(), GraphError>,
    mut ended: impl FnMut(Ended) -> Result<(), GraphError>,
) -> Result<(), GraphError> {
    let mut statement = connection.prepare(&format!("{} {PIECES}", pieces()))?;
    let mut rows = statement.query(params![span.after, span.last, RENAME])?;
    while let Some(row) = rows.next()? {
        let (id, since, until): (i64, i64, i64) = (row.get(0)?, row.get(5)?, row.get(6)?);
        let end = |id: usize, since: usize, label: usize| -> Result<End, rusqlite::Error> {
            let id = row.get(id)?;
            Ok(End { label: row.get(label)?, key: node_key(id, row.get(since)?, false), id })
        };
        let (from, kind): (End, String) = (end(2, 7, 9)?, row.get(1)?);
        if span.is_new(since) {
            let properties = object(row, 4, 11)?;
            let (to, key) = (end(3, 8, 10)?, edge_key(id, since));
            each(EdgeRow { kind, key, id, from, to, properties, since, until: span.end(until) })?;
        } else if span.has_ended(since, until) {
            ended(Ended { kind, key: edge_key(id, since), from: Some(from), until })?;
        }
    }
    Ok(())
}

/// All pieces of all renames; there are few, and what they end at can change afterwards.
pub(super) fn renames(connection: &Connection, span: Span) -> Result<Vec<EdgeRow>, GraphError> {
    let sql =
        "SELECT id, source, target, props, since, until, NULL FROM edge WHERE type = ?1 AND since <= ?2";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params![RENAME, span.last])?;
    let mut files = Files { connection, known: HashMap::new() };
    let mut pieces = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, source, target): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (since, until): (i64, i64) = (row.get(4)?, span.end(row.get(5)?));
        let properties = object(row, 3, 6)?;
        let mut borders: Vec<i64> = vec![since];
        for file in [source, target] {
            let stretches = files.renamed(file)?.stretches;
            borders.extend(stretches.iter().flat_map(|(from, to)| [*from, span.end(*to)]));
        }
        borders.retain(|border| (since..until).contains(border) && *border <= span.last);
        borders.sort_unstable();
        borders.dedup();
        for (index, start) in borders.iter().enumerate() {
            let end = borders.get(index + 1).copied().unwrap_or(until);
            let (Some(from), Some(to)) = (files.end(source, *start)?, files.end(target, *start)?) else {
                continue;
            };
            let (kind, key) = (RENAME.to_owned(), edge_key(id, *start));
            pieces.push(EdgeRow {
                kind,
                key,
                id,
                from,
                to,
                properties: properties.clone(),
                since: *start,
                until: end,
            });
        }
    }
    Ok(pieces)
}

/// The rows of files that were renamed.
struct Files<'a> {
    connection: &'a Connection,
    known: HashMap<i64, Renamed>,
}

#[derive(Clone, Debug, Default)]
struct Renamed {
    /// When it is visible.
    stretches: Vec<(i64, i64)>,
    /// Whether it is known as one that is gone.
    ghost: bool,
}

impl Files<'_> {
    fn renamed(&mut self, id: i64) -> Result<Renamed, GraphError> {
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        let sql = "SELECT since, until FROM node WHERE id = ?1 AND ghost = 0 ORDER BY since";
        let stretches = list(self.connection, sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let sql = "SELECT 1 FROM node WHERE id = ?1 AND ghost = 1";
        let ghost = one::<i64>(self.connection, sql, [id])?.is_some();
        let renamed = Renamed { stretches, ghost };
        self.known.insert(id, renamed.clone());
        Ok(renamed)
    }

    /// The row that represents a file at a moment.
    fn end(&mut self, id: i64, moment: i64) -> Result<Option<End>, GraphError> {
        let Renamed { stretches, ghost } = self.renamed(id)?;
        let visible = stretches.iter().find(|(since, until)| (*since..*until).contains(&moment));
        let key = match visible {
            Some((since, _)) => node_key(id, *since, false),
            None if ghost => node_key(id, 0, true),
            None => return Ok(None),
        };
        let sql = "SELECT min(name) FROM label WHERE node = ?1";
        Ok(one(self.connection, sql, [id])?.map(|label| End { label, key, id }))
    }
}

fn list<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, GraphError> {
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_map(params, read)?.collect::<Result<_, _>>()?)
}

fn one<T: FromSql>(connection: &Connection, sql: &str, params: impl Params) -> Result<Option<T>, GraphError> {
    Ok(connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?)
}

/// The properties in one column, and the position in another.
fn object(row: &Row<'_>, props: usize, at: usize) -> Result<Map<String, Value>, rusqlite::Error> {
    let mut object: Map<String, Value> =
        serde_json::from_str(row.get_ref(props)?.as_str()?).unwrap_or_default();
    if let Some(position) = row.get_ref(at)?.as_str_or_null()? {
        object.extend(serde_json::from_str::<Map<String, Value>>(position).unwrap_or_default());
    }
    Ok(object)
}

fn node_key(id: i64, since: i64, ghost: bool) -> String {
    if ghost { format!("{id}:ghost") } else { format!("{id}:{since}") }
}

/// Pieces of one relationship follow each other in time, so that one of them is known by its beginning.
fn edge_key(id: i64, since: i64) -> String {
    format!("{id}:{since}")
}

/// Rows of one kind, collected until there are enough for a batch.
#[derive(Debug)]
pub(super) struct Batches<K, T> {
    size: usize,
    waiting: BTreeMap<K, Vec<T>>,
}

impl<K: Ord + Clone, T> Batches<K, T> {
    pub(super) fn new(size: usize) -> Self {
        Self { size, waiting: BTreeMap::new() }
    }

    /// Adds a row; gives a batch when there is a whole one.
    pub(super) fn add(&mut self, kind: K, row: T) -> Option<(K, Vec<T>)> {
        let waiting = self.waiting.entry(kind.clone()).or_default();
        waiting.push(row);
        (waiting.len() >= self.size).then(|| (kind, std::mem::take(waiting)))
    }

    pub(super) fn rest(self) -> impl Iterator<Item = (K, Vec<T>)> {
        self.waiting.into_iter().filter(|(_, rows)| !rows.is_empty())
    }
}
