//! Every public type at the top level of a module says what it is.

use std::path::Path;

use anyhow::Result;
use syn::{Attribute, Item, Visibility};

use super::allow_list::AllowList;
use crate::sources::SourceFile;

const ALLOWED: &str = "xtask/undocumented-types.txt";

pub(super) fn check(root: &Path, files: &[SourceFile], problems: &mut Vec<String>) -> Result<()> {
    let mut allowed = AllowList::read(root, ALLOWED)?;
    for SourceFile { path, syntax, .. } in files {
        // A program has no interface for other crates.
        let is_program = path
            .split_once("/src/")
            .is_some_and(|(package, _)| !root.join(package).join("src/lib.rs").is_file());
        if is_program {
            continue;
        }
        for Undocumented { line, kind, name } in undocumented(syntax) {
            if !allowed.allows(&format!("{path}: {name}")) {
                problems.push(format!("{path}:{line} has no doc comment on `pub {kind} {name}`"));
            }
        }
    }
    allowed.report_unused(problems);
    Ok(())
}

/// A public type without a doc comment.
#[derive(Debug, PartialEq, Eq)]
struct Undocumented {
    line: usize,
    kind: &'static str,
    name: String,
}

/// The undocumented types at the top level of a file. A type that only the crate sees is not part of its
/// interface.
fn undocumented(file: &syn::File) -> Vec<Undocumented> {
    let types = file.items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(("struct", &item.vis, &item.attrs, &item.ident)),
        Item::Enum(item) => Some(("enum", &item.vis, &item.attrs, &item.ident)),
        Item::Trait(item) => Some(("trait", &item.vis, &item.attrs, &item.ident)),
        Item::Type(item) => Some(("type", &item.vis, &item.attrs, &item.ident)),
        _ => None,
    });
    types
        .filter(|(_, visibility, attributes, _)| {
            matches!(visibility, Visibility::Public(_)) && !is_documented(attributes)
        })
        .map(|(kind, _, _, name)| Undocumented {
            line: name.span().start().line,
            kind,
            name: name.to_string(),
        })
        .collect()
}

/// Whether one of the doc comments has a word in it.
fn is_documented(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_empty = attribute.meta.require_name_value().is_ok_and(|comment| {
            matches!(&comment.value, syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })
                if text.value().trim().is_empty())
        });
        attribute.path().is_ident("doc") && !is_empty
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_types_without_words_are_found() {
        let source = "
/// A point.
pub struct Point;
#[derive(Clone)]
pub struct Line;
///
pub enum Shape { Round }
pub(crate) trait Draw {}
pub trait Print {}
type Private = u8;
pub type Number = u8;
fn inner() { pub struct Hidden; }
";
        let found: Vec<_> = undocumented(&syn::parse_file(source).unwrap())
            .into_iter()
            .map(|found| (found.line, found.kind, found.name))
            .collect();
        let expected =
            [(5, "struct", "Line"), (7, "enum", "Shape"), (9, "trait", "Print"), (11, "type", "Number")];
        assert_eq!(found, expected.map(|(line, kind, name)| (line, kind, name.to_owned())));
    }
}
