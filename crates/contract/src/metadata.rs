//! What the registry knows of a tool, read from its syntax tree.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DeclaredTypes, RelativePath};

/// One tool. Equal sources at equal paths give equal metadata, on every machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolMetadata {
    pub path: RelativePath,
    /// The file's name without its extension.
    pub name: String,
    /// The JSDoc of the default export, or of the file; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// As TypeScript: `(args: { n: number }) => number`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
    /// JSON Schema of the arguments; `true` when nothing is known of them.
    pub parameters: Value,
    /// JSON Schema of the result; `true` when nothing is known of it.
    pub result: Value,
    /// What its types say, where they can be read: only this may refuse a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<DeclaredTypes>,
    /// Module specifiers, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// Exported names, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<String>,
    /// Names the source declares, in their order, without repetitions and bounded: words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identifiers: Vec<String>,
    /// SHA-256 of the source's bytes.
    pub hash: String,
    /// Why the source could not be read as TypeScript; the rest is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
