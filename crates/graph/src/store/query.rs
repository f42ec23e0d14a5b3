//! Questions: the moment they are about, and the answer.

use std::path::Path;

use rusqlite::{Connection, params};
use tgp_contract::{GraphQuery, GraphRows, Visibility};

use super::graph_store::Inner;
use super::hidden::{Hidden, HiddenCache};
use super::options::GraphOptions;
use super::progress;
use super::revisions::{self, Revision};
use crate::cypher;
use crate::ingest::repository::Repo;
use crate::tables::connect;
use crate::tables::failure::GraphError;

/// A connection that can answer questions and do nothing else.
pub(crate) fn reader(file: &Path) -> Result<Connection, GraphError> {
    let mut connection = connect::reader(file)?;
    cypher::prepare(&mut connection)?;
    Ok(connection)
}

/// Answers a question about a moment. Without a cache what is hidden is looked up again: for changes that are only
/// tried.
pub(crate) fn answer(
    connection: &Connection,
    repo: Option<&Repo>,
    question: &GraphQuery,
    moment: &Revision,
    limits: &cypher::QueryLimits,
    cache: Option<&HiddenCache>,
) -> Result<GraphRows, GraphError> {
    let moments = |name: &str| {
        let moment = revisions::find(connection, repo, Some(name)).map_err(tgp_contract::ToolError::from)?;
        Ok(moment.number)
    };
    let hidden = Hidden::of(connection, &question.visible, cache)?;
    let hidden_at = hidden
        .as_ref()
        .map(|hidden| move |moment: i64| hidden.at(moment).map_err(tgp_contract::ToolError::from));
    let hidden = hidden_at.as_ref().map(|at| at as &cypher::HiddenAt<'_>);
    let view = cypher::View { at: moment.number, moments: &moments, hidden };
    let cypher::Table { columns, rows, truncated } = cypher::answer(connection, question, &view, limits)?;
    Ok(GraphRows { columns, rows, truncated, standing: moment.standing.clone() })
}

/// Files at a moment, and how many of them are broken.
pub(crate) fn count_files(connection: &Connection, moment: i64) -> Result<(u64, u64), GraphError> {
    let mut statement = connection.prepare_cached(
        "SELECT count(*), total(json_extract(n.props, '$.broken')) FROM label AS l \
         JOIN node AS n ON n.id = l.node \
         WHERE l.name = 'File' AND n.ghost = 0 AND n.since <= ?1 AND n.until > ?1",
    )?;
    let (files, broken): (i64, f64) =
        statement.query_row(params![moment], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((u64::try_from(files).unwrap_or_default(), broken as u64))
}

impl Inner {
    pub(crate) fn query(&self, question: &GraphQuery) -> Result<GraphRows, GraphError> {
        self.repository(question.commit.as_deref(), |repo| {
            self.reader(|connection| {
                let moment = revisions::find(connection, repo, question.commit.as_deref())?;
                let mut rows =
                    answer(connection, repo, question, &moment, &self.limits(), Some(&self.hidden))?;
                rows.standing.unread = progress::unread(connection)?;
                Ok(rows)
            })
        })
    }

    /// Whether the graph has anything that may not be seen.
    pub(crate) fn hides(&self, visible: &Visibility) -> Result<bool, GraphError> {
        self.reader(|connection| Ok(Hidden::of(connection, visible, Some(&self.hidden))?.is_some()))
    }

    pub(crate) fn limits(&self) -> cypher::QueryLimits {
        let GraphOptions { max_rows, patience, .. } = self.options;
        cypher::QueryLimits {
            rows: max_rows,
            time: patience,
            vocabulary: true,
            ..cypher::QueryLimits::default()
        }
    }
}
