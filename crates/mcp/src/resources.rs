//! Resources: tool sources, the index, own calls and chronicles. Each is read by a router call.

use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use tgp_contract::{Code, PROJECT_CHRONICLE, ToolError};
use tgp_text::{head, truncate};

use crate::answer::ANSWER_RESOURCE;
use crate::client::Caller;
use crate::handler::protocol_error;
use crate::options::tool_name;
use crate::tools::indexed_tools;

const INDEX: &str = "tgp://meta.json";
const AUDIT: &str = "tgp://audit";
const SOURCE: &str = "tgp://source/";
const CHRONICLE: &str = "tgp://chronicle/";
/// Tools in one page of the list.
const PAGE: usize = 100;
/// Characters of a description.
const MAX_DESCRIPTION: usize = 200;
/// Calls in the resource of own calls.
const AUDIT_ENTRIES: usize = 50;

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: String, name: &str, description: &str| {
        ResourceTemplate::new(uri, name).with_description(description)
    };
    vec![
        template(
            format!("{SOURCE}{{+path}}"),
            "source",
            "A file of the tool repository, such as tools/math/fib.ts",
        ),
        template(
            format!("{CHRONICLE}{{+path}}"),
            "chronicle",
            "What was done to a file of the project, and why",
        ),
        template(format!("{ANSWER_RESOURCE}{{id}}"), "answer", "A long answer of this connection"),
    ]
}

/// The resources of a connection, a page at a time: those that are always there, then one for each forged tool.
pub(crate) async fn list(caller: &Caller, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let start: usize = match cursor.map(str::parse) {
        None => 0,
        Some(Ok(start)) => start,
        Some(Err(_)) => return Err(ErrorData::invalid_params("invalid cursor", None)),
    };
    let tools = indexed_tools(caller).await.map_err(protocol_error)?;
    let mut resources = if start == 0 { fixed() } else { Vec::new() };
    resources.extend(tools.iter().skip(start).take(PAGE).map(source));
    let mut listed = ListResourcesResult::with_all_items(resources);
    let next = start.saturating_add(PAGE);
    listed.next_cursor = (next < tools.len()).then(|| next.to_string());
    Ok(listed)
}

fn fixed() -> Vec<Resource> {
    let project = format!("{CHRONICLE}{PROJECT_CHRONICLE}");
    vec![
        Resource::new(INDEX, "meta.json")
            .with_description("The index of the forged tools: signatures and schemas")
            .with_mime_type("application/json"),
        Resource::new(AUDIT, "audit")
            .with_description("The last calls of this connection and how they ended")
            .with_mime_type("application/json"),
        Resource::new(project, "chronicle")
            .with_description("The chronicle of the project: decisions and events")
            .with_mime_type("application/json"),
    ]
}

fn source(tool: &Value) -> Resource {
    let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
    Resource::new(format!("{SOURCE}{}", text("path")), tool_name(text("path")))
        .with_description(truncate(text("description"), MAX_DESCRIPTION))
        .with_mime_type("text/typescript")
}

/// Reads a resource.
///
/// # Errors
/// `ENOTFOUND` for an unknown resource, or what the router answers.
pub(crate) async fn read(caller: &Caller, uri: &str) -> Result<ReadResourceResult, ToolError> {
    let (text, kind) = if uri == INDEX {
        (caller.ask("read_file", json!({ "path": "meta.json" })).await?, "application/json")
    } else if uri == AUDIT {
        (caller.ask("audit_tail", json!({ "last": AUDIT_ENTRIES })).await?, "application/json")
    } else if let Some(path) = uri.strip_prefix(SOURCE) {
        (caller.ask("read_file", json!({ "path": path })).await?, "text/typescript")
    } else if let Some(path) = uri.strip_prefix(CHRONICLE) {
        (caller.ask("chronicle_read", json!({ "path": path })).await?, "application/json")
    } else if let Some(id) = uri.strip_prefix(ANSWER_RESOURCE) {
        (Value::String(caller.client.answers.whole(id)?.as_ref().to_owned()), "application/json")
    } else {
        let message = format!("unknown resource `{}`", head(uri, 200));
        return Err(ToolError::new(Code::NotFound, message).help("`resources/list` names the resources"));
    };
    let text = match text {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(kind)]))
}
