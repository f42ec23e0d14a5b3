//! Forged tools as nodes beside the code.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tgp_contract::{Code, ToolError};

use super::face::{GraphStore, Inner};
use super::failure::GraphError;
use super::identity::Identities;
use super::schema::OPEN;
use super::write::{Fact, Holding, Owner, Writer};
use crate::ingest::commits;

/// A registry with more tools is none.
const MAX_TOOLS: usize = 100_000;

/// A forged tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFact {
    pub path: String,
    pub name: String,
    pub description: String,
}

impl GraphStore {
    /// Makes these the tools that the graph knows, from the latest commit on. Earlier commits keep what they had.
    ///
    /// # Errors
    /// `EVALIDATION` when there are too many, and when the store cannot be written.
    pub async fn set_tools(&self, tools: Vec<ToolFact>) -> Result<(), ToolError> {
        self.with(move |inner| inner.set_tools(&tools)).await
    }
}

impl Inner {
    fn set_tools(&self, tools: &[ToolFact]) -> Result<(), GraphError> {
        if tools.len() > MAX_TOOLS {
            return Err(ToolError::new(Code::Validation, format!("more than {MAX_TOOLS} tools")).into());
        }
        self.writing().transact(|connection, _, _| {
            let mut seen = std::collections::HashSet::new();
            let tools = tools.iter().filter(|tool| seen.insert(tool.path.as_str()));
            let tools: Vec<(String, String)> = tools
                .map(|tool| {
                    let props =
                        json!({ "path": tool.path, "name": tool.name, "description": tool.description });
                    (tool.path.clone(), props.to_string())
                })
                .collect();
            hold(connection, commits::last(connection)?.number, &tools)
        })
    }
}

/// The tools at the last moment: their paths and properties.
pub(super) fn held(connection: &Connection) -> Result<Vec<(String, String)>, GraphError> {
    let mut statement = connection.prepare(
        "SELECT json_extract(n.props, '$.path'), n.props FROM label AS l JOIN node AS n ON n.id = l.node \
         WHERE l.name = 'Tool' AND n.until = ?1 AND n.ghost = 0 ORDER BY 1",
    )?;
    let rows = statement.query_map([OPEN], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Makes these the tools, from a moment on.
pub(super) fn hold(
    connection: &Connection,
    moment: i64,
    tools: &[(String, String)],
) -> Result<(), GraphError> {
    let mut ids = Identities::load(connection)?;
    let mut facts = Vec::new();
    for (path, props) in tools {
        let id = ids.claim(connection, "Tool", &[path])?;
        facts.push(Fact::Node { id, props: props.clone() });
    }
    let mut writer = Writer { connection, moment, draft: false, ids: &mut ids };
    writer.set(Owner::Tools, "", Holding { facts, ..Holding::default() })?;
    Ok(())
}
