//! `meta.json`: the metadata of every tool, sorted and stable. It is derived data: what is damaged is rebuilt.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{Code, RelativePath, ToolError, ToolMetadata, canonical};

/// The format that is written, and the only one that is read: another one is rebuilt from the files.
const FORMAT: u64 = 1;
/// Largest file that is parsed: a hundred thousand tools with long schemas.
const MAX_BYTES: usize = 256 * 1024 * 1024;
/// What the compiler takes as a module that can run.
const EXTENSIONS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];
const FOOTER: &str = "]}";

/// Why a `meta.json` cannot be used. It is then rebuilt from the files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("its frame is not that of a list of tools")]
    Frame,
    #[error("it has format {0}; this version reads format {FORMAT}")]
    Format(u64),
    #[error("its content does not match its checksum")]
    Checksum,
    #[error("line {line} is not a tool: {reason}")]
    Line { line: usize, reason: String },
    #[error("`{0}` is not a path of a tool")]
    NotATool(String),
    #[error("`{0}` is listed twice or out of order")]
    Order(String),
}

impl From<IndexError> for ToolError {
    fn from(damaged: IndexError) -> Self {
        ToolError::new(Code::Integrity, format!("`meta.json` cannot be used: {damaged}"))
            .help("it is derived data: remove it, and it is rebuilt from the tools")
    }
}

/// Whether a file is a tool: a module below `tools/` that is neither hidden, nor a test, nor only types.
#[must_use]
pub fn is_tool(path: &RelativePath) -> bool {
    let mut parts = path.parts();
    if parts.next() != Some("tools") || path.parts().any(|part| part.starts_with('.')) {
        return false;
    }
    let Some((stem, extension)) = path.name().and_then(|name| name.rsplit_once('.')) else { return false };
    let is_other = [".d", ".test", ".spec"].iter().any(|ending| stem.ends_with(ending));
    parts.next().is_some() && !stem.is_empty() && EXTENSIONS.contains(&extension) && !is_other
}

/// The tools by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index(BTreeMap<RelativePath, ToolMetadata>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u64,
    sha256: String,
}

impl Index {
    /// Sorts `tools`. Of two with one path the later stays; what is not a tool by its path is left out.
    pub fn from_tools(tools: impl IntoIterator<Item = ToolMetadata>) -> Self {
        let tools = tools.into_iter().filter(|tool| is_tool(&tool.path));
        Self(tools.map(|tool| (tool.path.clone(), tool)).collect())
    }

    /// The tools in the order of their paths.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &ToolMetadata> {
        self.0.values()
    }

    #[must_use]
    pub fn get(&self, path: &RelativePath) -> Option<&ToolMetadata> {
        self.0.get(path)
    }

    /// Adds or replaces a tool, as [`Index::from_tools`] would.
    pub fn insert(&mut self, tool: ToolMetadata) {
        if is_tool(&tool.path) {
            self.0.insert(tool.path.clone(), tool);
        }
    }

    pub fn remove(&mut self, path: &RelativePath) -> Option<ToolMetadata> {
        self.0.remove(path)
    }

    /// The bytes of `meta.json`: a header, one tool a line. Equal tools give equal bytes, in whatever order they came.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let lines: Vec<String> =
            self.tools().filter_map(|tool| serde_json::to_value(tool).ok()).map(line).collect();
        let body = lines.join(",\n");
        let header = format!(
            "{{\"format\":{FORMAT},\"sha256\":\"{}\",\"tools\":[",
            canonical::sha256_hex(body.as_bytes())
        );
        let separator = if body.is_empty() { "" } else { "\n" };
        format!("{header}\n{body}{separator}{FOOTER}\n").into_bytes()
    }

    /// Reads what [`Index::to_bytes`] wrote, and nothing else.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, IndexError> {
        if bytes.len() > MAX_BYTES {
            return Err(IndexError::TooLarge);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| IndexError::NotText)?;
        let (first, rest) = text.split_once('\n').ok_or(IndexError::Frame)?;
        let header = header(first)?;
        let body =
            rest.strip_suffix('\n').and_then(|rest| rest.strip_suffix(FOOTER)).ok_or(IndexError::Frame)?;
        let body = if body.is_empty() { body } else { body.strip_suffix('\n').ok_or(IndexError::Frame)? };
        if canonical::sha256_hex(body.as_bytes()) != header.sha256 {
            return Err(IndexError::Checksum);
        }
        let mut tools: BTreeMap<RelativePath, ToolMetadata> = BTreeMap::new();
        let mut lines = body.split('\n').filter(|line| !line.is_empty()).enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let line =
                if lines.peek().is_some() { line.strip_suffix(',').ok_or(IndexError::Frame)? } else { line };
            // The header is line 1.
            let tool: ToolMetadata = serde_json::from_str(line)
                .map_err(|error| IndexError::Line { line: number + 2, reason: error.to_string() })?;
            if !is_tool(&tool.path) {
                return Err(IndexError::NotATool(tool.path.to_string()));
            }
            if tools.last_key_value().is_some_and(|(last, _)| *last >= tool.path) {
                return Err(IndexError::Order(tool.path.to_string()));
            }
            tools.insert(tool.path.clone(), tool);
        }
        Ok(Self(tools))
    }
}

fn header(line: &str) -> Result<Header, IndexError> {
    let opened = line.strip_suffix(",\"tools\":[").ok_or(IndexError::Frame)?;
    let value: Value = serde_json::from_str(&format!("{opened}}}")).map_err(|_| IndexError::Frame)?;
    match value.get("format").and_then(Value::as_u64) {
        Some(FORMAT) => serde_json::from_value(value).map_err(|_| IndexError::Frame),
        Some(other) => Err(IndexError::Format(other)),
        None => Err(IndexError::Frame),
    }
}

/// One tool as text with the keys of its schemas sorted; line breaks inside strings are escaped by JSON itself.
fn line(value: Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Object(fields) => {
            let ordered: BTreeMap<String, Value> = fields.into_iter().collect();
            Value::Object(ordered.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        other => other,
    }
}
