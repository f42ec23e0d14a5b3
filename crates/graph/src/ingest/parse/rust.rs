//! Rust: definitions and calls.

use tree_sitter::Node;

use super::reader::{Next, Reader, Scope};
use super::rust_paths::{self, PathAttributes};
use super::rust_use;
use super::{ImportKind, Kind};

pub(super) fn node<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    match reader.kind(node) {
        "use_declaration" => {
            rust_use::declaration(reader, node, scope);
            Next::Stop
        }
        "extern_crate_declaration" => {
            if let Some(name) = reader.field(node, "name") {
                let here = reader.field(node, "alias").unwrap_or_else(|| name.clone());
                let name = if name == "self" { "crate".to_owned() } else { name };
                reader.import(ImportKind::Bind, name, Vec::new(), Some(here), node);
            }
            Next::Stop
        }
        "mod_item" => define_module(reader, node, scope),
        "struct_item" | "union_item" => define(reader, node, scope, Kind::Struct),
        "enum_item" => define(reader, node, scope, Kind::Enum),
        "type_item" => define(reader, node, scope, Kind::Type),
        "const_item" => define(reader, node, scope, Kind::Const),
        "static_item" => define(reader, node, scope, Kind::Variable),
        "trait_item" if scope.function.is_none() => {
            let name = reader.field(node, "name").unwrap_or_default();
            let exported = is_public(reader, node);
            let symbol = reader.symbol(Kind::Trait, &name, node, scope, exported);
            if let Some(bounds) = node.child_by_field_name("bounds") {
                let mut cursor = bounds.walk();
                for bound in bounds.named_children(&mut cursor).filter(|bound| is_type(*bound)) {
                    let name = reader.text(bound);
                    reader.heritage(symbol, &name, false);
                }
            }
            Next::Descend(reader.inside(symbol, &name, scope, true))
        }
        "impl_item" if scope.function.is_none() => {
            let name = node.child_by_field_name("type").map(|owner| type_name(reader, owner));
            let name = name.unwrap_or_default();
            implements(reader, node, &name, scope);
            Next::Descend(reader.inside(None, &name, scope, true))
        }
        "function_item" | "function_signature_item" => define_function(reader, node, scope),
        "macro_definition" if scope.is_top() => {
            let name = reader.field(node, "name").unwrap_or_default();
            reader.symbol(Kind::Function, &name, node, scope, false);
            rust_paths::defined(reader, &name, node, scope);
            let mut cursor = node.walk();
            for rule in node.named_children(&mut cursor) {
                if let Some(body) = rule.child_by_field_name("right") {
                    rust_paths::tokens(reader, body, scope, false);
                }
            }
            Next::Stop
        }
        "call_expression" => {
            if let Some(target) = node.child_by_field_name("function") {
                callee(reader, target, node, scope);
            }
            Next::Descend(scope.clone())
        }
        "macro_invocation" => {
            include(reader, node, scope);
            if let Some(target) = node.child_by_field_name("macro") {
                rust_paths::called(reader, target, scope);
                callee(reader, target, node, scope);
            }
            Next::Descend(scope.clone())
        }
        "token_tree" => {
            if !scope.is_read {
                rust_paths::tokens(reader, node, scope, false);
            }
            calls_in_tokens(reader, node, scope);
            Next::Descend(scope.read(true))
        }
        "attribute" => {
            if let Some(arguments) = node.child_by_field_name("arguments") {
                rust_paths::tokens(reader, arguments, scope, true);
                let mut cursor = node.walk();
                let path = node.named_children(&mut cursor).find(|child| child.kind() == "scoped_identifier");
                if let Some(path) = path {
                    rust_paths::path(reader, path, scope);
                }
                return Next::Descend(scope.read(true));
            }
            Next::Descend(scope.clone())
        }
        "scoped_identifier" | "scoped_type_identifier" => {
            if !scope.is_read {
                rust_paths::path(reader, node, scope);
            }
            Next::Descend(scope.read(true))
        }
        "type_arguments" | "bracketed_type" => Next::Descend(scope.read(false)),
        // It names a module that is around anyway.
        "visibility_modifier" => Next::Stop,
        _ => Next::Descend(scope.clone()),
    }
}

fn is_type(node: Node<'_>) -> bool {
    matches!(node.kind(), "type_identifier" | "scoped_type_identifier" | "generic_type")
}

/// `impl Trait for Type`, where the type is defined above in the same file.
fn implements(reader: &mut Reader<'_>, node: Node<'_>, owner: &str, scope: &Scope) {
    let Some(bound) = node.child_by_field_name("trait").filter(|bound| is_type(*bound)) else { return };
    let qualified =
        if scope.prefix.is_empty() { owner.to_owned() } else { format!("{}::{owner}", scope.prefix) };
    let mut symbols = reader.out.symbols.iter();
    let symbol = symbols.position(|symbol| {
        symbol.qualified == qualified && matches!(symbol.kind, Kind::Struct | Kind::Enum | Kind::Type)
    });
    let name = reader.text(bound);
    reader.heritage(symbol.and_then(|symbol| u32::try_from(symbol).ok()), &name, true);
}

/// Only `pub` alone gives something to other crates; what `pub(crate)` and similar forms name stays in the
/// crate.
fn is_public(reader: &Reader<'_>, node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .any(|child| child.kind() == "visibility_modifier" && reader.text(child) == "pub")
}

/// What a public trait has is as public as itself, without being said so.
fn is_public_member(reader: &Reader<'_>, node: Node<'_>) -> bool {
    let owner = node.parent().and_then(|list| list.parent()).filter(|owner| owner.kind() == "trait_item");
    owner.is_some_and(|owner| is_public(reader, owner))
}

fn define(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope, kind: Kind) -> Next {
    let mut symbol = None;
    // Associated types and constants belong to their type, and what is inside a function to its body.
    if scope.is_top() {
        let name = reader.field(node, "name").unwrap_or_default();
        if name != "_" {
            let exported = is_public(reader, node);
            symbol = reader.symbol(kind, &name, node, scope, exported);
        }
    }
    Next::Descend(scope.definition(symbol))
}

fn define_module(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) -> Next {
    let name = reader.field(node, "name").unwrap_or_default().trim_start_matches("r#").to_owned();
    let attributes = PathAttributes::of(reader, node);
    if node.child_by_field_name("body").is_none() {
        attributes.declare(reader, &name, node, scope);
        return Next::Stop;
    }
    let place = match (attributes.directory(), &scope.place) {
        (Some(path), Some(place)) => Some(format!("{place}/{path}")),
        (Some(path), None) => {
            if !scope.module.is_empty() {
                reader.computed_import(&format!("#[path = \"{path}\"] mod {name}"), node);
            }
            Some(path.to_owned())
        }
        (None, Some(place)) => Some(format!("{place}/{name}")),
        (None, None) => None,
    };
    let within = scope.in_module(&name, place);
    if scope.function.is_some() {
        return Next::Descend(within);
    }
    let exported = is_public(reader, node);
    let symbol = reader.symbol(Kind::Module, &name, node, scope, exported);
    Next::Descend(reader.inside(symbol, &name, &within, false))
}

/// `include!("name.rs")` and its kin: a file that is part of this one.
fn include(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) {
    let name = reader.field(node, "macro").unwrap_or_default();
    let last = name.rsplit("::").next().unwrap_or_default().trim().trim_start_matches("r#");
    if !rust_paths::is_include(last) {
        return;
    }
    let mut cursor = node.walk();
    let Some(tokens) = node.named_children(&mut cursor).find(|child| child.kind() == "token_tree") else {
        return;
    };
    let mut cursor = tokens.walk();
    let mut parts = tokens.named_children(&mut cursor).filter(|part| !part.is_extra());
    let path = parts.next().and_then(|first| rust_paths::literal(reader, first));
    match path.filter(|_| parts.next().is_none()) {
        Some(path) => rust_paths::included(reader, path, node, scope),
        None => {
            let written = reader.text(tokens);
            reader.computed_import(&written, node);
        }
    }
}

/// `Vec<T>`, `&T` and `a::T` are known by `Vec` and `T`.
fn type_name(reader: &Reader<'_>, node: Node<'_>) -> String {
    match node.kind() {
        "generic_type" => {
            node.child_by_field_name("type").map(|inner| type_name(reader, inner)).unwrap_or_default()
        }
        "scoped_type_identifier" => reader.field(node, "name").unwrap_or_default(),
        "reference_type" => {
            node.child_by_field_name("type").map(|inner| type_name(reader, inner)).unwrap_or_default()
        }
        _ => reader.text(node),
    }
}

fn define_function(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) -> Next {
    let name = reader.field(node, "name").unwrap_or_default();
    if scope.function.is_some() {
        return Next::Descend(reader.inner_function(&name, node, scope));
    }
    let kind = if scope.members { Kind::Method } else { Kind::Function };
    let exported = is_public(reader, node) || is_public_member(reader, node);
    let symbol = reader.symbol(kind, &name, node, scope, exported);
    Next::Descend(scope.body(symbol))
}

fn callee(reader: &mut Reader<'_>, target: Node<'_>, node: Node<'_>, scope: &Scope) {
    match target.kind() {
        "identifier" => {
            let name = reader.text(target);
            reader.call(name, None, node, scope);
        }
        "scoped_identifier" => {
            let name = reader.field(target, "name").unwrap_or_default();
            let receiver = reader.field(target, "path").unwrap_or_default();
            let receiver = receiver.split('<').next().unwrap_or_default().trim_end_matches("::").to_owned();
            reader.call(name, Some(receiver), node, scope);
        }
        "generic_function" => {
            if let Some(inner) = target.child_by_field_name("function") {
                callee(reader, inner, node, scope);
            }
        }
        "field_expression" => {
            let name = reader.field(target, "field").unwrap_or_default();
            let value = target.child_by_field_name("value");
            let receiver = match value.map(|value| value.kind()) {
                Some("self" | "identifier" | "field_expression") => {
                    reader.field(target, "value").unwrap_or_default()
                }
                _ => String::new(),
            };
            let receiver = if receiver.contains(['(', '[', '\n']) { String::new() } else { receiver };
            // A value's method, not a path: the dot distinguishes `self.run()` from `Self::run()`.
            reader.call(
                name,
                Some(if receiver.is_empty() { receiver } else { format!(".{receiver}") }),
                node,
                scope,
            );
        }
        _ => {}
    }
}

/// The arguments of a macro are not parsed yet: a name right before a parenthesis is taken for a call.
fn calls_in_tokens<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) {
    let mut cursor = node.walk();
    let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
    for (index, pair) in children.windows(2).enumerate() {
        let [name, arguments] = pair else { continue };
        let before = index.checked_sub(1).and_then(|before| children.get(before)).map(Node::kind);
        if name.kind() != "identifier" || arguments.kind() != "token_tree" {
            continue;
        }
        if !reader.text(*arguments).starts_with('(') {
            continue;
        }
        let text = reader.text(*name);
        let receiver = match before {
            Some(".") => Some(String::new()),
            Some("::") => {
                let owner = index.checked_sub(2).and_then(|before| children.get(before));
                Some(owner.map(|owner| reader.text(*owner)).unwrap_or_default())
            }
            _ => None,
        };
        reader.call(text, receiver, *name, scope);
    }
}
