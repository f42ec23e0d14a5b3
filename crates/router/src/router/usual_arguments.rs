//! Arguments as models write them from habit, brought into the form that a tool knows.

use std::path::Path;

use serde_json::Value;
use tgp_contract::{ToolCall, ToolDefinition};

use crate::Workspace;

/// Names that models write from habit, and those of earlier releases, with the name that a tool may have instead.
const ARGUMENT_ALIASES: [(&str, &str); 2] = [("file_path", "path"), ("despite", "override_similar")];

/// The call with the arguments that the tool knows, before it is judged or recorded: other names for them, and for a
/// tool of the project's files a path that is absolute and in the project.
pub(super) fn with_usual_arguments(
    mut call: ToolCall,
    definition: &ToolDefinition,
    workspace: &Workspace,
) -> ToolCall {
    let properties = definition.input_schema.get("properties");
    let knows = |name: &str| properties.is_some_and(|known| known.get(name).is_some());
    let Some(arguments) = call.arguments.as_object_mut() else { return call };
    for (alias, name) in ARGUMENT_ALIASES {
        if knows(name)
            && !knows(alias)
            && !arguments.contains_key(name)
            && let Some(value) = arguments.remove(alias)
        {
            arguments.insert(name.to_owned(), value);
        }
    }
    if definition.name.as_str().starts_with("fs_")
        && let Some(path) = arguments.get("path").and_then(Value::as_str)
        && let Ok(inside) = Path::new(path).strip_prefix(workspace.project_place())
        && let Some(inside) = inside.to_str()
    {
        // The project itself is the empty path.
        let inside = Value::from(inside);
        arguments.insert("path".to_owned(), inside);
    }
    call
}
