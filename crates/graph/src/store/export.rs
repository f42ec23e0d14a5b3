//! Everything that is visible at a commit, in one piece.

use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::{Map, Value};
use tgp_contract::{SnapshotInfo, ToolError};

use super::graph_store::{GraphStore, Inner};
use super::revisions;
use crate::cypher;
use crate::tables::failure::GraphError;
use crate::tables::positions;
use crate::tables::schema::RENAME;

/// A node with its labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExportNode {
    pub id: i64,
    pub labels: Vec<String>,
    pub properties: Map<String, Value>,
}

/// A relationship and the ids of its ends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExportRelationship {
    pub id: i64,
    #[serde(rename = "type")]
    pub kind: String,
    pub from: i64,
    pub to: i64,
    pub properties: Map<String, Value>,
}

/// The graph at one commit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Export {
    #[serde(flatten)]
    pub standing: SnapshotInfo,
    pub nodes: Vec<ExportNode>,
    pub relationships: Vec<ExportRelationship>,
    /// Whether there is more than was asked for.
    pub truncated: bool,
}

impl GraphStore {
    /// All nodes and relationships at a commit, each in the order of their ids; at most `rows` of both together.
    ///
    /// # Errors
    /// `ENOTFOUND` for a commit that was not ingested.
    pub async fn export(&self, commit: Option<&str>, rows: usize) -> Result<Export, ToolError> {
        let commit = commit.map(str::to_owned);
        self.with(move |inner| inner.export(commit.as_deref(), rows)).await
    }
}

/// A file that is gone is shown where a rename leads to it.
const NODES: &str = "
SELECT n.id, n.props, (SELECT json_group_array(name) FROM label WHERE node = n.id), n.place, {position}
FROM node AS n
WHERE n.since <= ?1 AND n.until > ?1 AND (n.ghost = 0 OR (
    NOT EXISTS (
        SELECT 1 FROM node AS v WHERE v.id = n.id AND v.ghost = 0 AND v.since <= ?1 AND v.until > ?1
    ) AND (
        EXISTS (SELECT 1 FROM edge AS e WHERE e.source = n.id AND e.type = ?3 AND e.since <= ?1 AND e.until > ?1) OR
        EXISTS (SELECT 1 FROM edge AS e WHERE e.target = n.id AND e.type = ?3 AND e.since <= ?1 AND e.until > ?1)
    )
))
ORDER BY n.id LIMIT ?2";

/// In the order of their ids; their positions are looked up when they are, for they are large.
const RELATIONSHIPS: &str = "
SELECT e.id, e.type, e.source, e.target, e.props, e.place, {position} FROM (
SELECT e.row_id FROM edge AS e
WHERE e.since <= ?1 AND e.until > ?1 AND (e.type = ?3 OR (
    EXISTS (SELECT 1 FROM node AS n WHERE n.id = e.source AND n.ghost = 0 AND n.since <= ?1 AND n.until > ?1) AND
    EXISTS (SELECT 1 FROM node AS n WHERE n.id = e.target AND n.ghost = 0 AND n.since <= ?1 AND n.until > ?1)
))
ORDER BY e.id LIMIT ?2) AS s CROSS JOIN edge AS e ON e.row_id = s.row_id";

/// One of the two statements, with where the positions of the alias `row` are.
fn with_positions(sql: &str, row: &str) -> String {
    let position = cypher::position(&positions::file_of(&format!("{row}.place")), "?1");
    sql.replace("{position}", &position)
}

/// One more than asked for shows whether there are more.
fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX - 1) + 1
}

fn nodes(connection: &Connection, moment: i64, rows: usize) -> Result<Vec<ExportNode>, GraphError> {
    let mut statement = connection.prepare_cached(&with_positions(NODES, "n"))?;
    let found = statement.query_map(params![moment, limit(rows), RENAME], |row| {
        let labels: String = row.get(2)?;
        Ok(ExportNode {
            id: row.get(0)?,
            labels: serde_json::from_str(&labels).unwrap_or_default(),
            properties: cypher::properties(row, 1, 3)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn relationships(
    connection: &Connection,
    moment: i64,
    rows: usize,
) -> Result<Vec<ExportRelationship>, GraphError> {
    let mut statement = connection.prepare_cached(&with_positions(RELATIONSHIPS, "e"))?;
    let found = statement.query_map(params![moment, limit(rows), RENAME], |row| {
        Ok(ExportRelationship {
            id: row.get(0)?,
            kind: row.get(1)?,
            from: row.get(2)?,
            to: row.get(3)?,
            properties: cypher::properties(row, 4, 5)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

impl Inner {
    fn export(&self, commit: Option<&str>, rows: usize) -> Result<Export, GraphError> {
        self.catch_up(commit)?;
        self.repository(commit, |repo| {
            self.reader(|connection| {
                let moment = revisions::find(connection, repo, commit)?;
                let mut nodes = nodes(connection, moment.number, rows)?;
                let mut truncated = nodes.len() > rows;
                nodes.truncate(rows);
                let rest = rows - nodes.len();
                let mut relationships = relationships(connection, moment.number, rest)?;
                positions::forget();
                truncated |= relationships.len() > rest;
                relationships.truncate(rest);
                Ok(Export { standing: moment.standing, nodes, relationships, truncated })
            })
        })
    }
}
