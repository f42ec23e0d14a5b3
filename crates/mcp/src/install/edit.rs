//! Changes of JSON and TOML that keep comments, order and format.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::ServerEntry;

/// Why a configuration cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("not valid JSON: {0}")]
    Json(String),
    #[error("not valid TOML: {0}")]
    Toml(String),
    #[error("`{0}` is not a table of servers")]
    NotATable(String),
}

/// The text that a host reads as an empty configuration.
const EMPTY_JSON: &str = "{}\n";

fn parse_json(text: &str) -> Result<CstRootNode, EditError> {
    let text = if text.trim().is_empty() { EMPTY_JSON } else { text };
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| EditError::Json(error.to_string()))
}

pub(super) fn jsonc_with(
    text: &str,
    field: &str,
    extra: Option<(&str, &str)>,
    entry: &ServerEntry,
) -> Result<String, EditError> {
    let root = parse_json(text)?;
    let wrong = |name: &str| EditError::NotATable(name.to_owned());
    let object = root.object_value_or_create().ok_or_else(|| wrong("the whole file"))?;
    let servers = object.object_value_or_create(field).ok_or_else(|| wrong(field))?;
    let string = |text: &str| CstInputValue::String(text.to_owned());
    let mut fields = Vec::new();
    if let Some((name, text)) = extra {
        fields.push((name.to_owned(), string(text)));
    }
    fields.push(("command".to_owned(), string(&entry.command)));
    let arguments = entry.arguments.iter().map(|argument| string(argument)).collect();
    fields.push(("args".to_owned(), CstInputValue::Array(arguments)));
    match servers.get(&entry.name) {
        Some(existing) => existing.set_value(CstInputValue::Object(fields)),
        None => {
            servers.append(&entry.name, CstInputValue::Object(fields));
        }
    }
    Ok(root.to_string())
}

pub(super) fn jsonc_without(text: &str, field: &str, name: &str) -> Result<Option<String>, EditError> {
    let root = parse_json(text)?;
    let Some(servers) = root.object_value().and_then(|object| object.object_value(field)) else {
        return Ok(None);
    };
    let Some(entry) = servers.get(name) else { return Ok(None) };
    entry.remove();
    Ok(Some(root.to_string()))
}

fn parse_toml(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error: toml_edit::TomlError| EditError::Toml(error.message().to_owned()))
}

pub(super) fn toml_with(text: &str, field: &str, entry: &ServerEntry) -> Result<String, EditError> {
    let mut document = parse_toml(text)?;
    let servers = document.entry(field).or_insert_with(|| {
        let mut table = Table::new();
        // `[mcp_servers.tgp]` says it all.
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or_else(|| EditError::NotATable(field.to_owned()))?;
    let arguments: Array = entry.arguments.iter().map(String::as_str).collect();
    // Fields that a person has added to the entry stay.
    if servers.get(&entry.name).and_then(Item::as_table_like).is_none() {
        servers.insert(&entry.name, Item::Table(Table::new()));
    }
    if let Some(table) = servers.get_mut(&entry.name).and_then(Item::as_table_like_mut) {
        table.insert("command", value(&entry.command));
        table.insert("args", value(arguments));
    }
    Ok(document.to_string())
}

pub(super) fn toml_without(text: &str, field: &str, name: &str) -> Result<Option<String>, EditError> {
    let mut document = parse_toml(text)?;
    let Some(servers) = document.get_mut(field).and_then(Item::as_table_like_mut) else { return Ok(None) };
    if servers.remove(name).is_none() {
        return Ok(None);
    }
    if servers.is_empty() {
        document.remove(field);
    }
    Ok(Some(document.to_string()))
}
