//! A labelled set: tools, questions, and which tool answers which question.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tgp_contract::{Code, RelativePath, ToolError, ToolMetadata, canonical};

/// Largest set that is read: thousands of questions.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Tools and questions with their answers. The file's other fields (about, licence) are for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelledSet {
    pub tools: Vec<LabelledTool>,
    pub queries: Vec<LabelledQuery>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelledTool {
    pub id: String,
    pub path: String,
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub signature: String,
    #[serde(default)]
    pub params: Vec<String>,
    #[serde(default)]
    pub identifiers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelledQuery {
    pub query: String,
    /// How the question was made; only for reports.
    pub kind: String,
    /// Ids of the tools that do the job; none when it must be forged.
    #[serde(rename = "match")]
    pub answers: Vec<String>,
}

impl LabelledSet {
    /// The set that the built-in coefficients were fitted on. An external embedder is fitted on the same.
    ///
    /// # Errors
    /// `EINTERNAL` when the binary is damaged.
    pub fn calibration() -> Result<Self, ToolError> {
        Self::parse(include_bytes!("../../fixtures/reuse_dev.json"))
            .map_err(|error| ToolError::new(Code::Internal, error.message))
    }

    /// # Errors
    /// `EVALIDATION` when the bytes are not such a set.
    pub fn parse(bytes: &[u8]) -> Result<Self, ToolError> {
        let wrong = |why: String| ToolError::new(Code::Validation, format!("not a labelled set: {why}"));
        if bytes.len() > MAX_BYTES {
            return Err(wrong(format!("larger than {MAX_BYTES} bytes")));
        }
        let set: Self = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
        let known: std::collections::HashSet<&str> = set.tools.iter().map(|tool| tool.id.as_str()).collect();
        match set.queries.iter().flat_map(|query| &query.answers).find(|id| !known.contains(id.as_str())) {
            Some(id) => Err(wrong(format!("no tool has the id `{id}`"))),
            None => Ok(set),
        }
    }

    /// The tools as the registry knows them.
    ///
    /// # Errors
    /// `ESECURITY` or `EVALIDATION` when a path is none.
    pub fn metadata(&self) -> Result<Vec<ToolMetadata>, ToolError> {
        self.tools.iter().map(LabelledTool::metadata).collect()
    }

    /// Whether the tool at `path` answers `query`.
    #[must_use]
    pub fn answers(&self, query: &LabelledQuery, path: &RelativePath) -> bool {
        self.tools.iter().any(|tool| tool.path == path.as_str() && query.answers.contains(&tool.id))
    }
}

impl LabelledTool {
    fn metadata(&self) -> Result<ToolMetadata, ToolError> {
        let properties: Map<String, Value> =
            self.params.iter().map(|name| (name.clone(), json!(true))).collect();
        Ok(ToolMetadata {
            declared: None,
            path: RelativePath::new(&self.path)?,
            name: self.name.clone(),
            description: self.description.clone(),
            signature: self.signature.clone(),
            parameters: json!({ "type": "object", "properties": properties }),
            result: json!(true),
            imports: Vec::new(),
            exports: Vec::new(),
            identifiers: self.identifiers.clone(),
            hash: canonical::sha256_hex(self.id.as_bytes()),
            problem: None,
        })
    }
}
