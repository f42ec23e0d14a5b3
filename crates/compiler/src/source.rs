//! What the compiler is given, and what it says when it cannot go on.

use serde::{Deserialize, Serialize};
use tgp_contract::{Code, Finding, Severity, ToolError};

/// Larger sources are refused before they are parsed.
pub const MAX_SOURCE_BYTES: usize = 256 * 1024;

/// What a source is for. It decides which shapes are allowed, what is linted, and how much debug information stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceRole {
    /// A forged tool: TypeScript, all four shapes.
    Tool,
    /// `tgp.config.ts`: a module with a default export that may read `process.env.NAME`.
    Config,
    /// A file of an allow-listed package or of the built-in library: JavaScript or TypeScript, never linted.
    Library,
}

/// One source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// The module's id: a path below the tool root (`tools/math/fib.ts`), `npm:zod/index.js`, or `tgp:std`.
    pub id: String,
    pub source: String,
    pub role: SourceRole,
}

/// A source that does not compile: at least one finding of the rule `syntax`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{} does not compile", .findings.first().map_or("source", |finding| finding.place.file.as_str()))]
pub struct CompileError {
    pub findings: Vec<Finding>,
}

impl From<CompileError> for ToolError {
    fn from(error: CompileError) -> Self {
        let Some(first) = error.findings.iter().find(|finding| finding.severity == Severity::Error) else {
            return ToolError::new(Code::Compile, error.to_string());
        };
        let mut tool_error = ToolError::new(Code::Compile, format!("{}: {}", first.place, first.message))
            .place(&first.place)
            .help(first.fix.clone());
        if let Ok(findings) = serde_json::to_value(&error.findings) {
            tool_error = tool_error.detail("findings", findings);
        }
        tool_error
    }
}
