//! Rust: `use` declarations, taken apart into one import for each module.

use tree_sitter::Node;

use super::reader::{Reader, Scope};
use super::rust_paths::{flat, is_include};
use super::{ImportKind, Name};

/// Groups within groups; a file with deeper ones is marked.
pub(super) const MAX_GROUPS: usize = 16;

pub(super) fn declaration(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) {
    let Some(argument) = node.child_by_field_name("argument") else { return };
    let mut cursor = node.walk();
    let public = node.named_children(&mut cursor).any(|child| child.kind() == "visibility_modifier");
    let mut leaves = Vec::new();
    collect(reader, argument, "", 0, &mut leaves);
    let kind = if public { ImportKind::ReExport } else { ImportKind::Bind };
    // Names of one module make one import.
    let mut modules: Vec<(String, Vec<Name>)> = Vec::new();
    for (path, here) in leaves {
        let (module, there) = match path.rsplit_once("::") {
            // The module itself: `super` does not name an item in it.
            Some((_, "super")) | None => ("", path.as_str()),
            Some(split) => split,
        };
        // What includes files under another name would not be seen where it is used.
        if matches!(module, "std" | "core") && is_include(there) && here != there {
            reader.computed_import(&format!("{path} as {here}"), node);
        }
        let name = Name::new(there, here);
        match modules.iter_mut().find(|(known, _)| known == module) {
            Some((_, names)) => names.push(name),
            None => modules.push((module.to_owned(), vec![name])),
        }
    }
    for (module, names) in modules {
        if module.is_empty() {
            // `use serde;` binds a crate.
            for name in names {
                reader.scoped_import(kind, name.there, Vec::new(), Some(name.here), node, scope);
            }
        } else {
            reader.scoped_import(kind, module, names, None, node, scope);
        }
    }
}

/// Full paths of what the tree names, with their names here. `*` stays as the last part.
fn collect(
    reader: &Reader<'_>,
    node: Node<'_>,
    prefix: &str,
    depth: usize,
    leaves: &mut Vec<(String, String)>,
) {
    if depth > MAX_GROUPS {
        return reader.cut();
    }
    let full = |node: Node<'_>| {
        let text = flat(reader, node).unwrap_or_default();
        match text.trim_start_matches("::") {
            text if prefix.is_empty() => text.to_owned(),
            "self" => prefix.to_owned(),
            text => format!("{prefix}::{text}"),
        }
    };
    match node.kind() {
        "use_as_clause" => {
            let path = node.child_by_field_name("path").map(full).unwrap_or_default();
            leaves.push((path, reader.field(node, "alias").unwrap_or_default()));
        }
        "use_list" => {
            let mut cursor = node.walk();
            for child in node.named_children(&mut cursor) {
                collect(reader, child, prefix, depth + 1, leaves);
            }
        }
        "scoped_use_list" => {
            let path = node.child_by_field_name("path").map_or_else(|| prefix.to_owned(), full);
            if let Some(list) = node.child_by_field_name("list") {
                collect(reader, list, &path, depth + 1, leaves);
            }
        }
        "use_wildcard" => {
            let mut cursor = node.walk();
            let path = node.named_children(&mut cursor).find(|child| !child.is_extra());
            leaves.push((format!("{}::*", path.map_or_else(|| prefix.to_owned(), full)), String::new()));
        }
        // `use a::b::{self}` binds `b`.
        "self" if !prefix.is_empty() => {
            let last = prefix.rsplit("::").next().unwrap_or(prefix);
            leaves.push((prefix.to_owned(), last.to_owned()));
        }
        "identifier" | "scoped_identifier" | "crate" | "super" | "self" | "metavariable" => {
            let path = full(node);
            let last = path.rsplit("::").next().unwrap_or(&path).to_owned();
            leaves.push((path, last));
        }
        _ => {}
    }
}
