//! Python: definitions, imports and calls.

use tree_sitter::Node;

use super::python_loads as loads;
pub(super) use super::python_loads::{finish, prepare};
use super::python_values::constant;
use super::reader::{Next, Reader, Scope};
use super::{ImportKind, Kind, Name};

/// The list of the names that a module gives to others.
const PUBLIC_LIST: &str = "__all__";

pub(super) fn node<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    let kind = reader.kind(node);
    loads::note(reader, node, kind);
    match kind {
        "class_definition" if scope.function.is_none() => {
            let name = reader.field(node, "name").unwrap_or_default();
            let symbol = reader.symbol(Kind::Class, &name, node, scope, is_public(&name));
            heritage(reader, node, symbol);
            Next::Descend(reader.inside(symbol, &name, scope, true))
        }
        "function_definition" if scope.function.is_some() => {
            let name = reader.field(node, "name").unwrap_or_default();
            Next::Descend(reader.inner_function(&name, node, scope))
        }
        "function_definition" => {
            let name = reader.field(node, "name").unwrap_or_default();
            let kind = if scope.members { Kind::Method } else { Kind::Function };
            let symbol = reader.symbol(kind, &name, node, scope, is_public(&name));
            Next::Descend(scope.body(symbol))
        }
        "assignment" if scope.is_top() => {
            if let Some(left) = node.child_by_field_name("left").filter(|left| left.kind() == "identifier") {
                define_variable(reader, left, node, scope);
                if reader.text(left) == PUBLIC_LIST {
                    public_list(reader, node);
                }
            }
            Next::Descend(scope.clone())
        }
        "augmented_assignment" if scope.is_top() => {
            if reader.field(node, "left").is_some_and(|left| left == PUBLIC_LIST) {
                public_list(reader, node);
            }
            Next::Descend(scope.clone())
        }
        "if_statement" => {
            let condition = reader.field(node, "condition").unwrap_or_default();
            let of_types = matches!(condition.as_str(), "TYPE_CHECKING" | "typing.TYPE_CHECKING");
            let is_all = node.child_by_field_name("alternative").is_none();
            Next::Descend(if of_types && is_all { scope.of_types() } else { scope.clone() })
        }
        "import_statement" | "import_from_statement" => {
            let first = reader.out.imports.len();
            if node.kind() == "import_statement" {
                import(reader, node);
            } else {
                import_from(reader, node);
            }
            if scope.types {
                reader.of_types(first);
            }
            Next::Stop
        }
        "call" => {
            if let Some(target) = node.child_by_field_name("function") {
                loads::call(reader, target, node);
                if reader.field(target, "object").is_some_and(|object| object == PUBLIC_LIST) {
                    computed_list(reader);
                }
                callee(reader, target, node, scope);
            }
            Next::Descend(scope.clone())
        }
        _ => Next::Descend(scope.clone()),
    }
}

/// The names that a module gives to others, where it lists all of them as texts. With anything else in it the list is
/// unknown, as if it were not there.
fn public_list(reader: &mut Reader<'_>, node: Node<'_>) {
    let list = node.child_by_field_name("right").filter(|right| matches!(right.kind(), "list" | "tuple"));
    let names = list.and_then(|list| {
        let mut cursor = list.walk();
        let items = list.named_children(&mut cursor).filter(|item| item.kind() != "comment");
        items.map(|item| constant(reader, item)).collect::<Option<Vec<String>>>()
    });
    if node.kind() == "assignment" {
        reader.out.exports.clear();
    }
    match names {
        Some(names) if !reader.has_computed_list => {
            reader.out.exports.extend(names.into_iter().map(|name| (name.clone(), name)));
        }
        _ => computed_list(reader),
    }
}

fn computed_list(reader: &mut Reader<'_>) {
    reader.has_computed_list = true;
    reader.out.exports.clear();
}

/// The classes that a class is made of.
fn heritage(reader: &mut Reader<'_>, node: Node<'_>, symbol: Option<u32>) {
    let Some(list) = node.child_by_field_name("superclasses") else { return };
    let mut cursor = list.walk();
    for base in list.named_children(&mut cursor) {
        // `Generic[T]` is `Generic`.
        let named = if base.kind() == "subscript" { base.child_by_field_name("value") } else { Some(base) };
        let Some(named) = named.filter(|named| matches!(named.kind(), "identifier" | "attribute")) else {
            continue;
        };
        let name = reader.text(named);
        if !name.contains('(') {
            reader.heritage(symbol, &name, false);
        }
    }
}

fn is_public(name: &str) -> bool {
    !name.starts_with('_') || (name.starts_with("__") && name.ends_with("__"))
}

/// A name that is set again is still one variable.
fn define_variable(reader: &mut Reader<'_>, target: Node<'_>, node: Node<'_>, scope: &Scope) {
    let name = reader.text(target);
    let constant = name.chars().all(|character| character.is_uppercase() || !character.is_alphabetic());
    let kind = if constant { Kind::Const } else { Kind::Variable };
    if !reader.out.symbols.iter().any(|symbol| symbol.kind == kind && symbol.qualified == name) {
        reader.symbol(kind, &name, node, scope, is_public(&name));
    }
}

/// An identifier as Python compares it.
pub(super) fn identifier(reader: &Reader<'_>, node: Node<'_>) -> String {
    tgp_text::compatible(&reader.text(node)).into_owned()
}

/// `a.b` and `..a.b` without the spaces, comments and line ends that may be between the parts.
fn dotted(reader: &Reader<'_>, node: Node<'_>) -> String {
    let mut cursor = node.walk();
    let parts = node.named_children(&mut cursor).map(|part| match part.kind() {
        "identifier" => identifier(reader, part),
        "import_prefix" => reader.text(part).matches('.').collect(),
        "dotted_name" => dotted(reader, part),
        _ => String::new(),
    });
    let separator = if node.kind() == "dotted_name" { "." } else { "" };
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    Reader::kept(&parts.join(separator))
}

/// What `import a.b, c.d as e` names, and under which names.
pub(super) fn imported<'t>(reader: &Reader<'_>, node: Node<'t>) -> Vec<(Name, Node<'t>)> {
    let mut cursor = node.walk();
    let parts = node.children_by_field_name("name", &mut cursor).filter(Node::is_named);
    let named = parts.map(|part| {
        let there = dotted(reader, part.child_by_field_name("name").unwrap_or(part));
        let alias = part.child_by_field_name("alias").map(|alias| identifier(reader, alias));
        (Name::new(there.clone(), alias.unwrap_or(there)), part)
    });
    named.collect()
}

/// `import a.b`, `import a.b as c`.
fn import(reader: &mut Reader<'_>, node: Node<'_>) {
    for (name, part) in imported(reader, node) {
        reader.import(ImportKind::Bind, name.there, Vec::new(), Some(name.here), part);
    }
}

/// `a.b` of `from a.b import c`.
pub(super) fn module_of(reader: &Reader<'_>, node: Node<'_>) -> Option<String> {
    node.child_by_field_name("module_name").map(|module| dotted(reader, module))
}

/// `from a.b import c as d, e`, `from . import f`, `from g import *`.
fn import_from(reader: &mut Reader<'_>, node: Node<'_>) {
    let Some(specifier) = module_of(reader, node) else { return };
    let mut names: Vec<Name> = imported(reader, node).into_iter().map(|(name, _)| name).collect();
    let mut cursor = node.walk();
    if node.named_children(&mut cursor).any(|part| part.kind() == "wildcard_import") {
        names.push(Name::new("*", ""));
    }
    reader.import(ImportKind::Bind, specifier, names, None, node);
}

fn is_super(reader: &Reader<'_>, call: Node<'_>) -> bool {
    reader.field(call, "function").is_some_and(|function| function == "super")
}

fn callee(reader: &mut Reader<'_>, target: Node<'_>, node: Node<'_>, scope: &Scope) {
    match target.kind() {
        "identifier" => {
            let name = reader.text(target);
            reader.call(name, None, node, scope);
        }
        "attribute" => {
            let name = reader.field(target, "attribute").unwrap_or_default();
            let object = target.child_by_field_name("object");
            let receiver = match object.map(|object| object.kind()) {
                // What a text or a list can do is not in the tree.
                Some("string" | "concatenated_string" | "list" | "dictionary" | "set" | "tuple") => return,
                Some("identifier" | "attribute") => reader.field(target, "object").unwrap_or_default(),
                Some("call") if object.is_some_and(|object| is_super(reader, object)) => "super".to_owned(),
                _ => String::new(),
            };
            let receiver = if receiver.contains('(') { String::new() } else { receiver };
            reader.call(name, Some(receiver), node, scope);
        }
        _ => {}
    }
}
