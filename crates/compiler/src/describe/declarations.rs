//! The types, functions and constants at the top of a source, and the types its comments define.

use std::collections::BTreeMap;

use oxc::allocator::Allocator;
use oxc::ast::ast::{
    Declaration, Program, Statement, TSEnumDeclaration, TSInterfaceDeclaration, TSType,
    TSTypeParameterDeclaration, VariableDeclarator,
};
use oxc::parser::Parser;
use oxc::span::{GetSpan, SourceType};

use super::doc::{Doc, Docs, ParameterTag};
use super::entry::Callable;
use crate::transpile::runaway;
use crate::{SourceRole, Unit};

/// A longer type in a comment is not read: it costs a parser of its own.
const MAX_TYPE_BYTES: usize = 2_000;

/// How many types in comments are parsed for one source.
const MAX_TYPEDEFS: usize = 32;

/// Something that a type can refer to by name.
#[derive(Clone, Copy)]
pub(super) enum TypeDeclaration<'a> {
    Alias {
        value: &'a TSType<'a>,
        parameters: Option<&'a TSTypeParameterDeclaration<'a>>,
        /// It stands in a comment, so its places are none of the source's.
        foreign: bool,
    },
    Interface(&'a TSInterfaceDeclaration<'a>),
    Enum(&'a TSEnumDeclaration<'a>),
}

/// A function declared by name.
pub(super) struct FunctionDeclaration<'a> {
    pub(super) callable: Callable<'a>,
    /// The statements that declare it, overloads included.
    pub(super) places: Vec<u32>,
}

/// What stands at the top of a source, by name.
#[derive(Default)]
pub(super) struct Declarations<'a> {
    types: BTreeMap<&'a str, Vec<TypeDeclaration<'a>>>,
    functions: BTreeMap<&'a str, FunctionDeclaration<'a>>,
    variables: BTreeMap<&'a str, (&'a VariableDeclarator<'a>, u32)>,
}

impl<'a> Declarations<'a> {
    pub(super) fn new(program: &'a Program<'a>, docs: &Docs<'a>, allocator: &'a Allocator) -> Self {
        let mut declarations = Self::default();
        for statement in &program.body {
            let start = statement.span().start;
            match statement {
                Statement::ExportDeclaration(export) => declarations.add(&export.declaration, start),
                Statement::ExportDefaultDeclaration(export) => {
                    use oxc::ast::ast::ExportDefaultDeclarationKind as Kind;
                    match &export.declaration {
                        Kind::FunctionDeclaration(function) => {
                            declarations.add_function(Callable::Function(function), start);
                        }
                        Kind::TSInterfaceDeclaration(interface) => {
                            declarations.add_type(&interface.id.name, TypeDeclaration::Interface(interface));
                        }
                        _ => {}
                    }
                }
                statement => {
                    if let Some(declaration) = statement.as_declaration() {
                        declarations.add(declaration, start);
                    }
                }
            }
        }
        declarations.add_typedefs(docs, allocator);
        declarations
    }

    /// All declarations of a type; interfaces may have several.
    pub(super) fn types(&self, name: &str) -> &[TypeDeclaration<'a>] {
        self.types.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn function(&self, name: &str) -> Option<&FunctionDeclaration<'a>> {
        self.functions.get(name)
    }

    /// A variable with the place of its statement.
    pub(super) fn variable(&self, name: &str) -> Option<(&'a VariableDeclarator<'a>, u32)> {
        self.variables.get(name).copied()
    }

    fn add(&mut self, declaration: &'a Declaration<'a>, start: u32) {
        match declaration {
            Declaration::TSTypeAliasDeclaration(alias) => {
                let parameters = alias.type_parameters.as_deref();
                let value = &alias.type_annotation;
                self.add_type(&alias.id.name, TypeDeclaration::Alias { value, parameters, foreign: false });
            }
            Declaration::TSInterfaceDeclaration(interface) => {
                self.add_type(&interface.id.name, TypeDeclaration::Interface(interface));
            }
            Declaration::TSEnumDeclaration(enumeration) => {
                self.add_type(&enumeration.id.name, TypeDeclaration::Enum(enumeration));
            }
            Declaration::FunctionDeclaration(function) => {
                self.add_function(Callable::Function(function), start);
            }
            Declaration::VariableDeclaration(variables) => {
                for declarator in &variables.declarations {
                    if let Some(name) = declarator.id.get_identifier_name() {
                        self.variables.entry(name.as_str()).or_insert((declarator, start));
                    }
                }
            }
            _ => {}
        }
    }

    fn add_type(&mut self, name: &'a str, declaration: TypeDeclaration<'a>) {
        self.types.entry(name).or_default().push(declaration);
    }

    fn add_function(&mut self, callable: Callable<'a>, start: u32) {
        let Some(name) = callable.name() else { return };
        let declared = self
            .functions
            .entry(name)
            .or_insert_with(|| FunctionDeclaration { callable, places: Vec::new() });
        declared.places.push(start);
        // Overloads have no body; the implementation comes last.
        if callable.has_body() {
            declared.callable = callable;
        }
    }

    fn add_typedefs(&mut self, docs: &Docs<'a>, allocator: &'a Allocator) {
        let mut count = 0;
        for doc in docs.all() {
            let Some((name, text)) = typedef(&doc) else { continue };
            if count >= MAX_TYPEDEFS {
                return;
            }
            count += 1;
            let name = allocator.alloc_str(&name);
            if let Some(value) = parse_type(allocator, &text)
                && !self.types.contains_key(name)
            {
                self.add_type(name, TypeDeclaration::Alias { value, parameters: None, foreign: true });
            }
        }
    }
}

/// The name of a `@typedef`, and its type as TypeScript.
fn typedef(doc: &Doc) -> Option<(String, String)> {
    let tag = doc.tags.iter().find(|tag| tag.name == "typedef")?;
    let name = tag.text.split_whitespace().next()?.to_owned();
    let properties: Vec<ParameterTag> = doc
        .tags
        .iter()
        .filter(|tag| matches!(tag.name.as_str(), "property" | "prop"))
        .filter_map(ParameterTag::parse)
        .collect();
    if properties.is_empty() {
        return Some((name, tag.kind.clone()?));
    }
    let mut text = String::from("{");
    for property in properties.iter().filter(|property| property.path.len() == 1) {
        let mark = if property.is_optional { "?" } else { "" };
        let kind = property.kind.as_deref().map_or_else(|| "unknown".to_owned(), typescript);
        text.push_str(&format!(" {}{mark}: {kind};", property.path.concat()));
    }
    text.push_str(" }");
    Some((name, text))
}

/// A type in the notation of comments, as TypeScript writes it.
fn typescript(text: &str) -> String {
    let text = text.trim().trim_end_matches('=').trim_start_matches("...").trim_start_matches('!');
    let (text, nullable) = match text.strip_prefix('?') {
        Some(rest) => (rest, " | null"),
        None => (text, ""),
    };
    let text = text.replace(".<", "<");
    if text.is_empty() || text == "*" { "unknown".to_owned() } else { format!("{text}{nullable}") }
}

/// Parses a type that stands in a comment.
pub(super) fn parse_type<'a>(allocator: &'a Allocator, text: &str) -> Option<&'a TSType<'a>> {
    if text.len() > MAX_TYPE_BYTES {
        return None;
    }
    let source = format!("type Type = {};", typescript(text));
    // The caps were only held against the code, and this is a comment.
    let unit = Unit { id: "type.ts".to_owned(), source, role: SourceRole::Tool };
    if runaway(&unit).is_some() {
        return None;
    }
    let parsed = Parser::new(allocator, allocator.alloc_str(&unit.source), SourceType::ts()).parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return None;
    }
    let program: &'a Program<'a> = allocator.alloc(parsed.program);
    match program.body.as_slice() {
        [Statement::TSTypeAliasDeclaration(alias)] => Some(&alias.type_annotation),
        _ => None,
    }
}
