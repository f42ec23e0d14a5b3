//! What is read from one file, for those who test the reader.

use std::sync::Arc;

use super::blobs::{Content, read_all};
use super::language::Language;

/// What one file defines and imports, whatever is around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSummary {
    /// The specifiers of its imports, by line.
    pub imports: Vec<String>,
    /// The qualified names of its symbols.
    pub symbols: Vec<String>,
    /// The names that it calls.
    pub calls: Vec<String>,
    /// Whether it has a syntax error.
    pub broken: bool,
    /// Whether it may hold more than was read of it.
    pub unparsed: bool,
}

impl SourceSummary {
    /// Reads a file as the graph reads it, on a thread with the same stack.
    pub fn read(path: &str, content: &[u8]) -> Self {
        let contents = [(Language::of(path), Content::Bytes(Arc::from(content)))];
        let parse = read_all(&contents).pop().unwrap_or_default();
        Self {
            imports: parse.imports.into_iter().map(|import| import.specifier).collect(),
            symbols: parse.symbols.into_iter().map(|symbol| symbol.qualified).collect(),
            calls: parse.calls.into_iter().map(|call| call.name).collect(),
            broken: parse.broken,
            unparsed: parse.unparsed,
        }
    }
}
