//! The servers that a configuration file of a host names.

use std::collections::BTreeMap;

use jsonc_parser::{JsonValue, ParseOptions, parse_to_value};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item};

use super::{EditError, Format, Host};

/// A server as a host starts or reaches it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignServer {
    pub name: String,
    /// The program and its arguments; empty for a server over HTTP.
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub url: Option<String>,
    pub headers: BTreeMap<String, String>,
}

/// The servers in a configuration, by name. Entries that are neither a command nor an address are left out.
///
/// # Errors
/// When the text is not a configuration of the host.
pub fn servers(host: Host, text: &str) -> Result<Vec<ForeignServer>, EditError> {
    let document = match host.format() {
        Format::Jsonc => {
            let parsed = parse_to_value(text, &ParseOptions::default());
            let parsed = parsed.map_err(|error| EditError::Json(error.to_string()))?;
            parsed.map(from_json).unwrap_or_default()
        }
        Format::Toml => {
            let parsed: Result<DocumentMut, _> = text.parse();
            let parsed = parsed.map_err(|error| EditError::Toml(error.message().to_owned()))?;
            from_toml(parsed.as_item())
        }
    };
    let Some(found) = document.get(host.field()).and_then(Value::as_object) else { return Ok(Vec::new()) };
    let mut servers: Vec<ForeignServer> =
        found.iter().filter_map(|(name, entry)| server(name, entry)).collect();
    // The order of a file is not kept by its parser.
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(servers)
}

fn server(name: &str, entry: &Value) -> Option<ForeignServer> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    let texts = |field: &str| -> BTreeMap<String, String> {
        let fields = entry.get(field).and_then(Value::as_object).into_iter().flatten();
        fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    };
    let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let arguments = arguments.filter_map(Value::as_str).map(str::to_owned);
    let command: Vec<String> = match text("command") {
        Some(program) => std::iter::once(program).chain(arguments).collect(),
        None => Vec::new(),
    };
    let url = text("url").or_else(|| text("httpUrl")).filter(|_| command.is_empty());
    let is_known = !command.is_empty() || url.is_some();
    is_known.then(|| ForeignServer {
        name: name.to_owned(),
        command,
        env: texts("env"),
        url,
        headers: texts("headers").into_iter().chain(texts("http_headers")).collect(),
    })
}

fn from_json(value: JsonValue<'_>) -> Value {
    match value {
        JsonValue::String(text) => text.into_owned().into(),
        JsonValue::Number(text) => serde_json::from_str(text).unwrap_or_default(),
        JsonValue::Boolean(is) => is.into(),
        JsonValue::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name.into_owned(), from_json(value)))
            .collect::<Map<_, _>>()
            .into(),
        JsonValue::Array(items) => items.into_iter().map(from_json).collect(),
        JsonValue::Null => Value::Null,
    }
}

fn from_toml(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table
            .iter()
            .map(|(name, item)| (name.to_owned(), from_toml(item)))
            .collect::<Map<_, _>>()
            .into();
    }
    if let Some(list) = item.as_array() {
        return list.iter().filter_map(|one| one.as_str().map(Value::from)).collect();
    }
    item.as_str().map(Value::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Host;
    use super::{ForeignServer, servers};

    #[test]
    fn servers_are_read_from_the_files_of_every_host() {
        let github = || ForeignServer {
            name: "github".to_owned(),
            command: ["npx", "-y", "server-github"].map(str::to_owned).to_vec(),
            env: BTreeMap::from([("TOKEN".to_owned(), "${GITHUB_TOKEN}".to_owned())]),
            ..ForeignServer::default()
        };
        let linear = |field: &str| ForeignServer {
            name: "linear".to_owned(),
            url: Some("https://mcp.example.com/mcp".to_owned()),
            headers: match field {
                "" => BTreeMap::new(),
                field => BTreeMap::from([(field.to_owned(), "x".to_owned())]),
            },
            ..ForeignServer::default()
        };
        let json = |field: &str| {
            format!(
                "// servers\n{{ \"{field}\": {{ \"github\": {{ \"command\": \"npx\", \"args\": [\"-y\", \"server-github\"], \
                 \"env\": {{ \"TOKEN\": \"${{GITHUB_TOKEN}}\" }} }}, \"linear\": {{ \"url\": \
                 \"https://mcp.example.com/mcp\", \"headers\": {{ \"A\": \"x\" }} }}, \"odd\": 7, }} }}"
            )
        };
        for (host, field) in
            [(Host::ClaudeCode, "mcpServers"), (Host::VsCode, "servers"), (Host::Zed, "context_servers")]
        {
            assert_eq!(servers(host, &json(field)).unwrap(), [github(), linear("A")], "{}", host.id());
        }
        let toml = "[mcp_servers.github]\ncommand = \"npx\"\nargs = [\"-y\", \"server-github\"]\n\
                    [mcp_servers.github.env]\nTOKEN = \"${GITHUB_TOKEN}\"\n\
                    [mcp_servers.linear]\nurl = \"https://mcp.example.com/mcp\"\n";
        assert_eq!(servers(Host::Codex, toml).unwrap(), [github(), linear("")]);
        assert_eq!(servers(Host::Cursor, "{}").unwrap(), []);
        assert!(servers(Host::Cursor, "{").is_err() && servers(Host::Codex, "[").is_err());
    }
}
