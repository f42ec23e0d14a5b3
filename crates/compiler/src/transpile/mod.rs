//! One TypeScript source to one JavaScript module that the engine can run.

use serde::{Deserialize, Serialize};
use tgp_contract::Place;

use crate::{CompileError, Unit};

/// How the engine must load the emitted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleFormat {
    /// An ES module.
    Module,
    /// A sloppy script whose value is `function (exports, require, module, __filename, __dirname) {…}`.
    CommonJs,
}

/// The four ways a tool may be written, and the one way it cannot be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolShape {
    /// A module with a default export.
    DefaultExport,
    /// A script with a top-level `return`.
    ReturnScript,
    /// A script whose last expression is the result.
    ExpressionScript,
    /// `module.exports = …`.
    CommonJs,
    /// A module that exports names but no default: it can be imported, not executed.
    NamedExportsOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// `import`, `export … from`.
    Import,
    /// `require('…')`, `import x = require('…')`.
    Require,
    /// `import('…')` of a constant.
    DynamicImport,
}

/// One module another one asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleRequest {
    pub specifier: String,
    pub kind: RequestKind,
    pub place: Place,
}

/// A compiled source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compiled {
    pub id: String,
    pub format: ModuleFormat,
    pub shape: ToolShape,
    /// JavaScript for the engine.
    pub code: String,
    pub map: SourceMap,
    /// What it asks for, types excluded, each specifier and kind once, in order of appearance.
    pub requests: Vec<ModuleRequest>,
    /// The names it exports, as far as the source shows them; `default` included.
    pub exports: Vec<String>,
    /// The names read from `process.env` (only for [`crate::Role::Config`]).
    pub environment: Vec<String>,
}

/// From emitted places back to places in the TypeScript.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMap {
    json: String,
}

impl SourceMap {
    /// The TypeScript line and column (from 1) of an emitted line and column (from 1).
    #[must_use]
    pub fn original(&self, _line: u32, _column: u32) -> Option<(u32, u32)> {
        None
    }
}

/// Compiles one source.
///
/// # Errors
/// When the source is too large, too deeply nested, or not valid TypeScript.
pub fn compile(unit: &Unit) -> Result<Compiled, CompileError> {
    let _ = unit;
    Err(CompileError { findings: Vec::new() })
}
