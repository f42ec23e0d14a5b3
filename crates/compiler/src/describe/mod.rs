//! What the registry must know of a tool, read from its syntax tree.
//!
//! Nothing is run and no type is checked: what the source says of itself is taken at its word, and what it does not
//! say stays unknown (`true` as a schema, `any` in a signature).
//!
//! | file | reads |
//! | --- | --- |
//! | `entry` | which function, or which script, is the tool |
//! | `doc` | comments and their tags |
//! | `declarations` | the types, functions and constants at the top of the file |
//! | `schema/` | types to JSON Schema |
//! | `declared/` | the types that a call is checked against |
//! | `arguments` | the schema of the arguments: types, patterns, tags, reads |
//! | `reads` | what a body reads of its arguments |
//! | `values` | literals, and expressions without their wrappers |
//! | `outcome` | the schema of the result |
//! | `signature` | the tool as one line of TypeScript |
//! | `zod` | schemas of the package `zod` |
//! | `words` | imports, exports and the names to find a tool by |

mod arguments;
mod declarations;
mod declared;
mod doc;
mod entry;
mod outcome;
mod reads;
mod schema;
mod signature;
mod values;
mod words;
mod zod;

pub(crate) use values::number as json_number;

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxc::allocator::Allocator;
use oxc::ast::ast::Program;
use oxc::parser::ParseOptions;
use oxc::semantic::{Scoping, SemanticBuilder};
use oxc::span::SourceType;
use serde_json::Value;
use tgp_contract::{DeclaredTypes, RelativePath, ToolMetadata, canonical};

use self::declarations::Declarations;
use self::doc::{Doc, Docs};
use self::entry::Tool;
use crate::parse::parse;
use crate::transpile::runaway;
use crate::{SourceRole, Unit, compile};

/// The longest description; a list of search results shows several.
const MAX_DESCRIPTION: usize = 1_000;

/// The longest explanation of why a source could not be read.
const MAX_PROBLEM: usize = 300;

/// A larger schema is worth less to its reader than the source; with it all metadata stays below 64 KiB.
const MAX_SCHEMA_BYTES: usize = 12 * 1024;

/// One parsed source and what every reader asks of it.
struct Source<'a> {
    allocator: &'a Allocator,
    program: &'a Program<'a>,
    scoping: Scoping,
    docs: Docs<'a>,
    declarations: Declarations<'a>,
}

/// Reads the metadata of one tool. It never fails: what cannot be parsed has a `problem` instead.
///
/// Like [`compile`] it recurses on the tree of a source that others wrote, so it belongs into a worker with a large
/// stack.
#[must_use]
pub fn describe(path: &RelativePath, source: &str) -> ToolMetadata {
    let file = path.name().unwrap_or_default();
    let blank = ToolMetadata {
        path: path.clone(),
        name: file.rsplit_once('.').map_or(file, |(name, _)| name).to_owned(),
        description: String::new(),
        signature: String::new(),
        parameters: Value::Bool(true),
        result: Value::Bool(true),
        declared: None,
        imports: Vec::new(),
        exports: Vec::new(),
        identifiers: Vec::new(),
        hash: canonical::sha256_hex(source.as_bytes()),
        problem: None,
    };
    let unit = Unit { id: path.as_str().to_owned(), source: source.to_owned(), role: SourceRole::Tool };
    // One source that makes the reader fail must not keep the others out of the registry.
    let described = || {
        read(&unit, |source| source.metadata(file, blank.clone())).map_err(|failure| failure.explained(&unit))
    };
    let read = catch_unwind(AssertUnwindSafe(described))
        .unwrap_or_else(|_| Err("the compiler failed on this source".to_owned()));
    read.unwrap_or_else(|problem| ToolMetadata {
        problem: Some(doc::one_line(&problem, MAX_PROBLEM)),
        ..blank
    })
}

/// The types that a tool declares; nothing is declared by what cannot be parsed.
pub(crate) fn declared_types(unit: &Unit) -> DeclaredTypes {
    read(unit, declared::declared).unwrap_or_default()
}

/// Why a source cannot be read.
enum ReadFailure {
    Runaway(String),
    /// What the parser says, if anything.
    Unparsed(Option<String>),
}

impl ReadFailure {
    fn explained(self, unit: &Unit) -> String {
        match self {
            Self::Runaway(message) => message,
            Self::Unparsed(message) => {
                problem(unit).or(message).unwrap_or_else(|| "the source is not TypeScript".to_owned())
            }
        }
    }
}

fn read<T>(unit: &Unit, reader: impl FnOnce(&Source<'_>) -> T) -> Result<T, ReadFailure> {
    if let Some(finding) = runaway(unit) {
        return Err(ReadFailure::Runaway(finding.message));
    }
    let text = unit.source.strip_prefix('\u{feff}').unwrap_or(&unit.source);
    let allocator = Allocator::default();
    let is_jsx = unit.id.ends_with(".tsx") || unit.id.ends_with(".jsx");
    let source_type = if is_jsx { SourceType::tsx() } else { SourceType::ts() };
    let options = ParseOptions {
        allow_return_outside_function: true,
        // Parentheses are part of a type as it is written.
        preserve_parens: true,
        ..ParseOptions::default()
    };
    let parsed = parse(&allocator, text, source_type, options);
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        let message = parsed.diagnostics.iter().next().map(|diagnostic| diagnostic.message.to_string());
        return Err(ReadFailure::Unparsed(message));
    }
    let program: &Program<'_> = allocator.alloc(parsed.program);
    let scoping = SemanticBuilder::new().build(program).semantic.into_scoping();
    let docs = Docs::new(program);
    let declarations = Declarations::new(program, &docs, &allocator);
    Ok(reader(&Source { allocator: &allocator, program, scoping, docs, declarations }))
}

/// Reports what is wrong with a source, in our own words.
fn problem(unit: &Unit) -> Option<String> {
    let error = compile(unit).err()?;
    let finding = error.findings.first()?;
    Some(format!("{}:{}: {}", finding.place.line, finding.place.column, finding.message))
}

impl<'a> Source<'a> {
    fn metadata(&self, file: &str, blank: ToolMetadata) -> ToolMetadata {
        let tool = Tool::find(self);
        let mut docs: Vec<Doc> = tool.places.iter().filter_map(|start| self.docs.of(*start)).collect();
        docs.extend(self.docs.head());
        let description = docs.iter().map(|doc| doc.words(MAX_DESCRIPTION)).find(|text| !text.is_empty());
        let arguments = arguments::arguments(self, &tool, &docs);
        let outcome = outcome::outcome(self, &tool, &docs);
        let words = words::words(self, &arguments.schema);
        ToolMetadata {
            description: description
                .unwrap_or_else(|| doc::one_line(&self.docs.opening(file), MAX_DESCRIPTION)),
            signature: signature::signature(self, &tool, &arguments, &outcome),
            parameters: bounded(arguments.schema),
            result: bounded(outcome.schema),
            declared: Some(declared::declared(self)).filter(is_worth_keeping),
            imports: words.imports,
            exports: words.exports,
            identifiers: words.identifiers,
            ..blank
        }
    }

    fn text(&self, span: oxc::span::Span) -> &'a str {
        self.program.source_text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

/// A schema of reasonable size, or `true`.
fn bounded(schema: Value) -> Value {
    if schema.to_string().len() > MAX_SCHEMA_BYTES { Value::Bool(true) } else { schema }
}

/// Types that say something and are of reasonable size: all metadata is kept in one file.
fn is_worth_keeping(types: &DeclaredTypes) -> bool {
    let bytes = serde_json::to_string(types).map_or(usize::MAX, |text| text.len());
    !types.is_empty() && bytes <= MAX_SCHEMA_BYTES
}
