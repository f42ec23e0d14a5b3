//! Selected tools as MCP tools of their own, for hosts that should see nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use tgp_contract::{Code, ToolError, ToolResult, canonical};
use tgp_text::truncate;

use super::describe::find;
use super::indexed_tools;
use super::run::run_tool;
use crate::client::{Caller, Effects};
use crate::options::is_forged;

/// Hosts shorten or refuse longer names.
const MAX_NAME: usize = 40;
/// Characters of a hash that keep two shortened names apart.
const HASH_CHARS: usize = 6;
/// Characters of a description.
const MAX_DESCRIPTION: usize = 600;

/// A tool that was selected with `--only`.
#[derive(Debug)]
pub(crate) struct DirectTool {
    name: String,
    /// The tool as `run` takes it.
    tool: String,
    description: String,
    schema: JsonObject,
    is_read_only: bool,
    /// A forged tool whose argument is not an object takes it as the field `args`.
    is_wrapped: bool,
}

impl DirectTool {
    /// The selected tools. Forged ones are looked up in the index when the connection begins; one that is forged later is
    /// found when the list is asked for again.
    ///
    /// # Errors
    /// `ENOTFOUND` for a kernel tool that does not exist, `EVALIDATION` for two tools whose names are the same to a host.
    pub(crate) async fn selected(caller: &Caller, only: &[String]) -> Result<Vec<Arc<Self>>, ToolError> {
        let index = match only.iter().any(|name| is_forged(name)) {
            true => indexed_tools(caller).await?,
            false => Vec::new(),
        };
        let mut selected: BTreeMap<String, Arc<Self>> = BTreeMap::new();
        for tool in only {
            let direct = match (is_forged(tool), find(&index, tool)) {
                (true, Ok(known)) => Self::forged(known),
                // It may be forged yet, and must not take the others away.
                (true, Err(error)) if error.code == Code::NotFound => continue,
                (true, Err(error)) => return Err(error),
                (false, _) => Self::kernel(caller, tool)?,
            };
            if let Some(other) = selected.insert(direct.name.clone(), Arc::new(direct)) {
                let message = format!("`{tool}` and `{}` are the same name to a host", other.tool);
                return Err(
                    ToolError::new(Code::Validation, message).help("select one of them with `--only`")
                );
            }
        }
        Ok(selected.into_values().collect())
    }

    fn forged(known: &Value) -> Self {
        let text = |name: &str| known.get(name).and_then(Value::as_str).unwrap_or_default();
        let parameters = known.get("parameters").and_then(Value::as_object);
        let is_object = |schema: &&JsonObject| schema.get("type").is_some_and(|kind| kind == "object");
        let (schema, is_wrapped) = match parameters.filter(is_object) {
            Some(schema) => (schema.clone(), false),
            None => {
                let any = known.get("parameters").cloned().unwrap_or(Value::Bool(true));
                let schema = json!({ "type": "object", "properties": { "args": any } });
                (schema.as_object().cloned().unwrap_or_default(), true)
            }
        };
        let path = text("path");
        let description = match text("description") {
            "" => text("signature"),
            description => description,
        };
        Self {
            name: host_name(crate::options::tool_name(path)),
            tool: path.to_owned(),
            description: truncate(description, MAX_DESCRIPTION).into_owned(),
            schema,
            is_read_only: false,
            is_wrapped,
        }
    }

    fn kernel(caller: &Caller, tool: &str) -> Result<Self, ToolError> {
        let kernel = &caller.shared().kernel;
        let definition = kernel.definitions().find(|definition| definition.name.as_str() == tool);
        let definition = definition.ok_or_else(|| {
            ToolError::new(Code::NotFound, format!("unknown tool `{tool}`"))
                .help("`tgp tools` lists the kernel tools")
        })?;
        Ok(Self {
            name: host_name(tool),
            tool: tool.to_owned(),
            description: truncate(&definition.description, MAX_DESCRIPTION).into_owned(),
            schema: definition.input_schema.as_object().cloned().unwrap_or_default(),
            is_read_only: definition.effect.as_str() == "read",
            is_wrapped: false,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn definition(&self) -> Tool {
        Tool::new(self.name.clone(), self.description.clone(), self.schema.clone())
            .with_annotations(ToolAnnotations::new().read_only(self.is_read_only))
    }

    pub(super) async fn call(&self, caller: &Caller, arguments: Option<JsonObject>) -> ToolResult {
        let mut arguments = arguments.unwrap_or_default();
        let args = match self.is_wrapped {
            true => arguments.remove("args").unwrap_or_default(),
            false => Value::Object(arguments),
        };
        run_tool(caller, &self.tool, args, None, Effects::Real).await
    }
}

/// A name that every host accepts: `[a-z][a-z0-9_]*`, at most 40 characters.
fn host_name(name: &str) -> String {
    let mut host: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' })
        .collect();
    if !host.starts_with(|first: char| first.is_ascii_lowercase()) {
        host.insert(0, 't');
    }
    if host.len() > MAX_NAME {
        let hash = canonical::sha256_hex(name.as_bytes());
        let kept = MAX_NAME - HASH_CHARS - 1;
        host = format!("{}_{}", tgp_text::head(&host, kept), tgp_text::head(&hash, HASH_CHARS));
    }
    host
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME, host_name};

    #[test]
    fn every_host_accepts_the_names() {
        let long = format!("reports/{}", "monthly-".repeat(10));
        for name in ["math/fib", "exec_sql", "7zip", "Ünïcode/Täst", "a.b-c", &long, ""] {
            let host = host_name(name);
            assert!(host.len() <= MAX_NAME, "{host}");
            assert!(host.starts_with(|first: char| first.is_ascii_lowercase()), "{host}");
            let is_plain =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
            assert!(host.chars().all(is_plain), "{host}");
        }
        assert_eq!(host_name("math/fib"), "math_fib");
        assert_ne!(host_name(&long), host_name(&format!("{long}x")));
    }
}
