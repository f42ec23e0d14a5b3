//! Tools on what is known of the project: the code graph and the chronicle.

mod chronicle_append;
mod chronicle_read;
mod graph_ingest;
mod graph_query;

use std::sync::Arc;

use serde_json::Value;
use tgp_contract::{
    Access, CHRONICLE_SUFFIX, Chronicle, ChronicleEvent, ChronicleLayout, Code, Graph, RelativePath, Root,
    Target, ToolError, Visibility, chronicle_of, is_in_chronicle_tree,
};

pub use chronicle_append::ChronicleAppendResult;
pub use chronicle_read::ChroniclePage;
pub use graph_ingest::GraphIngestResult;
pub use graph_query::GraphQueryResult;

use tgp_router::{DynTool, typed};

/// The tools on the graph and on the chronicle.
///
/// # Errors
/// Never in practice: the names are constants.
pub fn knowledge_tools(
    graph: &Arc<dyn Graph>,
    chronicle: &Arc<dyn Chronicle>,
) -> Result<Vec<Arc<dyn DynTool>>, ToolError> {
    Ok(vec![
        typed(graph_query::GraphQueryTool(Arc::clone(graph)))?,
        typed(graph_ingest::GraphIngest(Arc::clone(graph)))?,
        typed(chronicle_append::ChronicleAppend(Arc::clone(chronicle)))?,
        typed(chronicle_read::ChronicleRead(Arc::clone(chronicle)))?,
    ])
}

/// The chronicle that an argument names, by its own name or by the file it is about.
fn chronicle_file(path: &str, access: Access) -> Result<Vec<Target>, ToolError> {
    Ok(vec![Target::File { root: Root::Project, path: chronicle_path(path)?, access }])
}

/// `src/a.ts.sage`, for itself, for `src/a.ts` and for its file in the tree.
///
/// # Errors
/// When it is not a path below the project.
pub fn chronicle_path(text: &str) -> Result<RelativePath, ToolError> {
    let path = RelativePath::new(text)?;
    // A name that ends so is always that of a chronicle, whatever files there are: otherwise a file that an agent makes
    // would decide what is read and written. The chronicle of `curve.sage` is `curve.sage.sage`.
    if is_in_chronicle_tree(&path) {
        return Ok(ChronicleLayout::Tree.name_of(&path).unwrap_or(path));
    }
    if path.as_str().ends_with(CHRONICLE_SUFFIX) {
        return Ok(path);
    }
    Ok(chronicle_of(&path)?)
}

/// Refuses work on the chronicle of a file that the caller may not see. The answer depends on the path alone: whether
/// there is such a file, or such an event, does not follow from it.
///
/// # Errors
/// `EPERMISSION`.
pub fn refuse_hidden(visible: &Visibility, path: &RelativePath) -> Result<(), ToolError> {
    if visible.shows(Root::Project, path) {
        return Ok(());
    }
    let message = format!("`{path}` belongs to a file that this call may not read");
    Err(ToolError::new(Code::Permission, message).help("a rule or a token hides it; people change the rules"))
}

/// Names of fields whose texts are paths of files, in events of every kind.
const PATH_FIELDS: [&str; 4] = ["filePath", "path", "file", "from"];

/// Whether an event names only files that may be seen.
fn shows_event(visible: &Visibility, event: &ChronicleEvent) -> bool {
    let own = event.file_path.as_deref().is_none_or(|path| visible.shows_named(path));
    own && event.fields.iter().all(|(name, value)| shows_value(visible, name, value))
}

fn shows_value(visible: &Visibility, name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => !PATH_FIELDS.contains(&name) || visible.shows_named(text),
        Value::Array(items) => items.iter().all(|item| shows_value(visible, name, item)),
        Value::Object(fields) => fields.iter().all(|(name, value)| shows_value(visible, name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}
