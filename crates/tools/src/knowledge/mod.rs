//! Tools on what is known of the project: the code graph and the chronicle.

mod chronicle_append;
mod chronicle_read;
mod graph_ingest;
mod graph_query;

use std::sync::Arc;

use serde_json::Value;
use tgp_contract::{Access, Chronicle, Graph, RelativePath, Root, Target, ToolError};

use crate::router::Tool;

/// The tools on the graph and on the chronicle.
///
/// # Errors
/// Never in practice: the names are constants.
pub fn knowledge_tools(
    graph: &Arc<dyn Graph>,
    chronicle: &Arc<dyn Chronicle>,
) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
    Ok(vec![
        Arc::new(graph_query::GraphQuery::new(Arc::clone(graph))?),
        Arc::new(graph_ingest::GraphIngest::new(Arc::clone(graph))?),
        Arc::new(chronicle_append::ChronicleAppend::new(Arc::clone(chronicle))?),
        Arc::new(chronicle_read::ChronicleRead::new(Arc::clone(chronicle))?),
    ])
}

/// The chronicle that the argument `path` names, by its own name or by the file it is about.
fn chronicle_file(arguments: &Value, access: Access) -> Result<Vec<Target>, ToolError> {
    let text = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
    Ok(vec![Target::File { root: Root::Project, path: chronicle_path(text)?, access }])
}

/// `src/a.ts.sage`, for itself and for `src/a.ts`.
///
/// # Errors
/// When it is no path below the project.
pub fn chronicle_path(text: &str) -> Result<RelativePath, ToolError> {
    let path = RelativePath::new(text)?;
    if path.as_str().ends_with(".sage") {
        return Ok(path);
    }
    Ok(RelativePath::new(&format!("{path}.sage"))?)
}
