//! A graph in memory that a program states fact by fact: for tests, and for those who judge plans without a repository.

use rusqlite::{Connection, params};
use serde_json::Value;
use tgp_contract::{Code, GraphQuery, GraphRows, SnapshotInfo, ToolError};

use super::hidden::Hidden;
use crate::cypher;
use crate::tables::schema::{INDEXES, OPEN, SCHEMA};

/// The moments in which a fact holds: from the first up to, and without, the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionRange {
    pub since: i64,
    pub until: i64,
}

impl RevisionRange {
    /// Always.
    pub const ALWAYS: Self = Self { since: 0, until: OPEN };

    #[must_use]
    pub fn new(since: i64, until: i64) -> Self {
        Self { since, until }
    }
}

/// What one answer of [`TestGraph`] may cost; what is not given is as in a store.
#[derive(Clone, Debug, Default)]
pub struct FactLimits {
    pub rows: Option<usize>,
    pub bytes: Option<usize>,
    pub time: Option<std::time::Duration>,
    pub hops: Option<u32>,
}

/// A graph in memory.
pub struct TestGraph {
    connection: Connection,
    next: i64,
    /// The moment that questions see.
    at: i64,
    moments: Vec<(String, i64)>,
    limits: cypher::QueryLimits,
}

impl TestGraph {
    /// An empty graph.
    ///
    /// # Errors
    /// `ESQL` when there is no memory for it.
    pub fn new() -> Result<Self, ToolError> {
        let mut connection = Connection::open_in_memory().map_err(|error| broken(&error))?;
        connection.execute_batch(SCHEMA).map_err(|error| broken(&error))?;
        connection.execute_batch(INDEXES).map_err(|error| broken(&error))?;
        cypher::prepare(&mut connection)?;
        Ok(Self { connection, next: 0, at: 0, moments: Vec::new(), limits: cypher::QueryLimits::default() })
    }

    /// Sets the moment that questions see.
    pub fn see(&mut self, moment: i64) {
        self.at = moment;
    }

    /// Gives a moment a name, for `exists_at` and for the commit of a question.
    pub fn name(&mut self, revision: &str, moment: i64) {
        self.moments.retain(|(known, _)| known != revision);
        self.moments.push((revision.to_owned(), moment));
    }

    /// Changes what an answer may cost.
    pub fn limit(&mut self, limits: &FactLimits) {
        let usual = cypher::QueryLimits::default();
        self.limits = cypher::QueryLimits {
            rows: limits.rows.unwrap_or(usual.rows),
            bytes: limits.bytes.unwrap_or(usual.bytes),
            time: limits.time.unwrap_or(usual.time),
            hops: limits.hops.unwrap_or(usual.hops),
            ..usual
        };
    }

    /// A node that is always there. Gives its id.
    ///
    /// # Errors
    /// `EVALIDATION` when `props` is not an object.
    pub fn node(&mut self, labels: &[&str], props: &Value) -> Result<i64, ToolError> {
        self.next += 1;
        let id = self.next;
        self.node_during(id, labels, props, RevisionRange::ALWAYS)?;
        Ok(id)
    }

    /// A stretch of a node whose id the caller knows.
    ///
    /// # Errors
    /// As [`TestGraph::node`].
    pub fn node_during(
        &mut self,
        id: i64,
        labels: &[&str],
        props: &Value,
        stretch: RevisionRange,
    ) -> Result<(), ToolError> {
        self.put_node(id, labels, props, stretch, 0)
    }

    /// What is known of a node that was renamed away.
    ///
    /// # Errors
    /// As [`TestGraph::node`].
    pub fn ghost(&mut self, id: i64, labels: &[&str], props: &Value) -> Result<(), ToolError> {
        self.put_node(id, labels, props, RevisionRange::ALWAYS, 1)
    }

    fn put_node(
        &mut self,
        id: i64,
        labels: &[&str],
        props: &Value,
        stretch: RevisionRange,
        ghost: i64,
    ) -> Result<(), ToolError> {
        self.next = self.next.max(id);
        let props = written(props)?;
        let insert = || -> rusqlite::Result<()> {
            let mut node = self.connection.prepare_cached(
                "INSERT INTO node (id, props, since, until, ghost) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            node.execute(params![id, props, stretch.since, stretch.until, ghost])?;
            let mut label =
                self.connection.prepare_cached("INSERT OR IGNORE INTO label (name, node) VALUES (?1, ?2)")?;
            for name in labels {
                label.execute(params![name, id])?;
            }
            Ok(())
        };
        insert().map_err(|error| broken(&error))
    }

    /// A relationship that is always there. Gives its id.
    ///
    /// # Errors
    /// As [`TestGraph::node`].
    pub fn relationship(&mut self, from: i64, kind: &str, to: i64, props: &Value) -> Result<i64, ToolError> {
        self.next += 1;
        let id = self.next;
        self.relationship_during(id, (from, kind, to), props, RevisionRange::ALWAYS)?;
        Ok(id)
    }

    /// A stretch of a relationship whose id the caller knows.
    ///
    /// # Errors
    /// As [`TestGraph::node`].
    pub fn relationship_during(
        &mut self,
        id: i64,
        (from, kind, to): (i64, &str, i64),
        props: &Value,
        stretch: RevisionRange,
    ) -> Result<(), ToolError> {
        self.next = self.next.max(id);
        let props = written(props)?;
        let insert = || -> rusqlite::Result<()> {
            let mut edge = self.connection.prepare_cached(
                "INSERT INTO edge (id, type, source, target, props, since, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            edge.execute(params![id, kind, from, to, props, stretch.since, stretch.until])?;
            Ok(())
        };
        insert().map_err(|error| broken(&error))
    }

    /// Answers a question, at the moment that its commit names or else at the one that was set by [`TestGraph::see`].
    ///
    /// # Errors
    /// As `Graph::query`.
    pub fn query(&self, question: &GraphQuery) -> Result<GraphRows, ToolError> {
        let moments = |revision: &str| self.moment(revision);
        let at = question.commit.as_deref().map_or(Ok(self.at), moments)?;
        let hidden = Hidden::of(&self.connection, &question.visible, None)?;
        let hidden_at =
            hidden.as_ref().map(|hidden| move |moment: i64| hidden.at(moment).map_err(ToolError::from));
        let hidden = hidden_at.as_ref().map(|at| at as &cypher::HiddenAt<'_>);
        let view = cypher::View { at, moments: &moments, hidden };
        let table = cypher::answer(&self.connection, question, &view, &self.limits)?;
        let reference = question.commit.clone().unwrap_or_default();
        Ok(GraphRows {
            columns: table.columns,
            rows: table.rows,
            truncated: table.truncated,
            standing: SnapshotInfo { commit: reference.clone(), reference, ..SnapshotInfo::default() },
        })
    }

    fn moment(&self, revision: &str) -> Result<i64, ToolError> {
        let found = self.moments.iter().find(|(known, _)| known == revision).map(|(_, moment)| *moment);
        found.ok_or_else(|| ToolError::new(Code::NotFound, format!("there is no revision `{revision}`")))
    }
}

fn written(props: &Value) -> Result<String, ToolError> {
    if !props.is_object() {
        return Err(ToolError::new(Code::Validation, "the properties of a fact are an object"));
    }
    Ok(props.to_string())
}

fn broken(error: &rusqlite::Error) -> ToolError {
    ToolError::new(Code::Sql, format!("a fact could not be stated: {error}"))
}
