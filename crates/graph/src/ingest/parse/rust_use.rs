//! Rust: `use` declarations, taken apart into one import for each module.

use tree_sitter::Node;

use super::reader::{Reader, Scope};
use super::{ImportKind, Name};

/// Groups within groups; deeper ones are not read.
const MAX_GROUPS: usize = 16;

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
        let (module, there) = path.rsplit_once("::").unwrap_or(("", &path));
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
        return;
    }
    let full = |text: &str| {
        let text: String = text.split_whitespace().collect();
        let text = text.trim_start_matches("::");
        if prefix.is_empty() { text.to_owned() } else { format!("{prefix}::{text}") }
    };
    match node.kind() {
        "use_as_clause" => {
            let path = full(&reader.field(node, "path").unwrap_or_default());
            leaves.push((path, reader.field(node, "alias").unwrap_or_default()));
        }
        "use_list" => {
            let mut cursor = node.walk();
            for child in node.named_children(&mut cursor) {
                collect(reader, child, prefix, depth + 1, leaves);
            }
        }
        "scoped_use_list" => {
            let path =
                reader.field(node, "path").map(|path| full(&path)).unwrap_or_else(|| prefix.to_owned());
            if let Some(list) = node.child_by_field_name("list") {
                collect(reader, list, &path, depth + 1, leaves);
            }
        }
        "use_wildcard" => {
            let path = node.named_child(0).map(|path| full(&reader.text(path)));
            leaves.push((format!("{}::*", path.unwrap_or_else(|| prefix.to_owned())), String::new()));
        }
        // `use a::b::{self}` binds `b`.
        "self" if !prefix.is_empty() => {
            let last = prefix.rsplit("::").next().unwrap_or(prefix);
            leaves.push((prefix.to_owned(), last.to_owned()));
        }
        "identifier" | "scoped_identifier" | "crate" | "super" | "self" | "metavariable" => {
            let path = full(&reader.text(node));
            let last = path.rsplit("::").next().unwrap_or(&path).to_owned();
            leaves.push((path, last));
        }
        _ => {}
    }
}
