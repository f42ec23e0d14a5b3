//! What the store holds, in numbers.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, params};
use serde::Serialize;
use tgp_contract::{SnapshotInfo, ToolError};

use super::graph_store::{GraphStore, Inner};
use super::query::count_files;
use super::revisions;
use crate::tables::connect::meta;
use crate::tables::failure::GraphError;
use crate::tables::schema::RENAME;

/// Counts of what is visible at one commit, and of the store as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    #[serde(flatten)]
    pub standing: SnapshotInfo,
    /// Nodes by label.
    pub nodes: BTreeMap<String, u64>,
    /// Relationships by type.
    pub relationships: BTreeMap<String, u64>,
    /// Files in which the parser met an error.
    pub broken: u64,
    /// Files that are left out because their path is not UTF-8, or because they cannot be opened.
    pub skipped: u64,
    /// Commits that were ingested.
    pub commits: u64,
    /// Whether the store has a draft of the work tree.
    pub has_draft: bool,
    /// Whether older commits were left out because the history is deeper than the cap.
    pub cut: bool,
    /// Blobs that were ever parsed.
    pub blobs: u64,
    /// Bytes of the store on the disk, without what is not yet written back.
    pub bytes: u64,
}

impl GraphStore {
    /// Counts what is visible at a commit; at the last one where none is named.
    ///
    /// # Errors
    /// `ENOTFOUND` for a commit that was not ingested.
    pub async fn stats(&self, commit: Option<&str>) -> Result<Stats, ToolError> {
        let commit = commit.map(str::to_owned);
        self.with(move |inner| inner.stats(commit.as_deref())).await
    }
}

impl Inner {
    /// Bytes on the disk: of the store, and of the log with what is not in it yet.
    fn bytes(&self) -> u64 {
        let mut log = self.options.file.clone().into_os_string();
        log.push("-wal");
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        length(&self.options.file) + length(Path::new(&log))
    }

    fn stats(&self, commit: Option<&str>) -> Result<Stats, GraphError> {
        self.catch_up(commit)?;
        self.repository(commit, |repo| {
            self.reader(|connection| {
                let moment = revisions::find(connection, repo, commit)?;
                let (_, broken) = count_files(connection, moment.number)?;
                let skipped = match (repo, git2::Oid::from_str(&moment.standing.commit)) {
                    _ if moment.standing.draft => moment.standing.left_out.count,
                    // A commit that git has dropped since cannot be asked any more.
                    (Some(repo), Ok(id)) => repo.skipped(id).unwrap_or_default(),
                    _ => 0,
                };
                let number = |sql: &str| -> Result<u64, GraphError> {
                    let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
                    Ok(u64::try_from(count).unwrap_or_default())
                };
                Ok(Stats {
                    standing: moment.standing,
                    nodes: labels(connection, moment.number)?,
                    relationships: types(connection, moment.number)?,
                    broken,
                    skipped,
                    commits: number("SELECT count(*) FROM moment WHERE commit_id IS NOT NULL")?,
                    has_draft: revisions::draft(connection)?.is_some(),
                    cut: meta(connection, "cut")?.is_some(),
                    blobs: number("SELECT count(*) FROM parse")?,
                    bytes: self.bytes(),
                })
            })
        })
    }
}

fn counts(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<BTreeMap<String, u64>, GraphError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(parameters, |row| {
        Ok((row.get::<_, String>(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default()))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn labels(connection: &Connection, moment: i64) -> Result<BTreeMap<String, u64>, GraphError> {
    let sql = "SELECT l.name, count(*) FROM label AS l JOIN node AS n ON n.id = l.node \
               WHERE n.ghost = 0 AND n.since <= ?1 AND n.until > ?1 GROUP BY l.name";
    counts(connection, sql, [moment])
}

/// A rename is seen though its ends are gone; every other relationship needs both.
fn types(connection: &Connection, moment: i64) -> Result<BTreeMap<String, u64>, GraphError> {
    let sql = "SELECT e.type, count(*) FROM edge AS e WHERE e.since <= ?1 AND e.until > ?1 AND (e.type = ?2 OR \
               (EXISTS (SELECT 1 FROM node AS n WHERE n.id = e.source AND n.ghost = 0 AND n.since <= ?1 AND n.until > ?1) AND \
               EXISTS (SELECT 1 FROM node AS n WHERE n.id = e.target AND n.ghost = 0 AND n.since <= ?1 AND n.until > ?1))) \
               GROUP BY e.type";
    counts(connection, sql, params![moment, RENAME])
}
