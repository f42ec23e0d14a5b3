//! TypeScript and JavaScript: imports and exports, in the forms of modules and of `require`.

use tree_sitter::Node;

use super::javascript_loads::required;
use super::javascript_strings::text;
use super::reader::{Next, Reader, Scope};
use super::{ImportKind, Kind, Name};

pub(super) fn import(reader: &mut Reader<'_>, node: Node<'_>) {
    let first = reader.out.imports.len();
    read_import(reader, node);
    if is_of_types(node) {
        reader.of_types(first);
    }
}

/// `import type ..`, `export type .. from`, or one all of whose names are types.
fn is_of_types(node: Node<'_>) -> bool {
    let has_mark = |node: Node<'_>| {
        let mut cursor = node.walk();
        node.children(&mut cursor).any(|child| child.kind() == "type")
    };
    if has_mark(node) {
        return true;
    }
    // Where names are taken one by one, and each of them is marked.
    let (mut names, mut others) = (Vec::new(), false);
    let mut open = vec![node];
    while let Some(part) = open.pop() {
        match part.kind() {
            "import_specifier" | "export_specifier" => names.push(part),
            "import_statement" | "import_clause" | "named_imports" | "export_statement" | "export_clause" => {
                let mut cursor = part.walk();
                open.extend(part.named_children(&mut cursor));
            }
            "identifier" | "namespace_import" | "namespace_export" => others = true,
            _ => {}
        }
    }
    !others && !names.is_empty() && names.into_iter().all(has_mark)
}

fn read_import(reader: &mut Reader<'_>, node: Node<'_>) {
    let Some(source) = node.child_by_field_name("source") else {
        import_equals(reader, node);
        return;
    };
    let mut names = Vec::new();
    let mut module = None;
    let mut cursor = node.walk();
    for clause in node.named_children(&mut cursor).filter(|child| child.kind() == "import_clause") {
        let mut inner = clause.walk();
        for part in clause.named_children(&mut inner) {
            match part.kind() {
                "identifier" => names.push(Name::new("default", reader.text(part))),
                "namespace_import" => {
                    module = part.named_child(0).map(|name| reader.text(name));
                    names.extend(module.iter().map(|name| Name::new("*", name.as_str())));
                }
                "named_imports" => names.extend(specifiers(reader, part)),
                _ => {}
            }
        }
    }
    let specifier = text(reader, source);
    reader.import(ImportKind::Bind, specifier, names, module, node);
}

/// `import name = require("x")`.
fn import_equals(reader: &mut Reader<'_>, node: Node<'_>) {
    let mut cursor = node.walk();
    for clause in node.named_children(&mut cursor).filter(|child| child.kind() == "import_require_clause") {
        let Some(source) = clause.child_by_field_name("source") else { continue };
        let module = clause.named_child(0).map(|name| reader.text(name));
        let specifier = text(reader, source);
        reader.import(ImportKind::Bind, specifier, Vec::new(), module, node);
    }
}

/// `{a, b as c}` of an import or an export: the name there, the name here.
fn specifiers(reader: &Reader<'_>, clause: Node<'_>) -> Vec<Name> {
    let mut cursor = clause.walk();
    clause
        .named_children(&mut cursor)
        .filter(|part| matches!(part.kind(), "import_specifier" | "export_specifier"))
        .filter_map(|part| {
            let there = part.child_by_field_name("name").map(|name| reader.unquoted(name))?;
            let here = part.child_by_field_name("alias").map(|alias| reader.unquoted(alias));
            Some(Name { here: here.unwrap_or_else(|| there.clone()), there })
        })
        .collect()
}

pub(super) fn export<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    let mut cursor = node.walk();
    let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
    let clause = children.iter().find(|child| child.kind() == "export_clause");
    if let Some(source) = node.child_by_field_name("source") {
        let specifier = text(reader, source);
        let namespace = children.iter().find(|child| child.kind() == "namespace_export");
        let names = match (clause, namespace) {
            (Some(clause), _) => specifiers(reader, *clause),
            (None, Some(namespace)) => {
                let name = namespace.named_child(0).map(|name| reader.unquoted(name)).unwrap_or_default();
                vec![Name::new("*", name)]
            }
            (None, None) => vec![Name::new("*", "")],
        };
        let first = reader.out.imports.len();
        reader.import(ImportKind::ReExport, specifier, names, None, node);
        if is_of_types(node) {
            reader.of_types(first);
        }
        return Next::Stop;
    }
    if let Some(clause) = clause {
        for name in specifiers(reader, *clause) {
            reader.out.exports.push((name.here, name.there));
        }
        return Next::Stop;
    }
    if children.iter().any(|child| child.kind() == "default") {
        export_default(reader, node, scope)
    } else {
        Next::Descend(scope.exported())
    }
}

/// `export default` of a declaration, of a name, or of a value that gets the name `default`.
fn export_default<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    if let Some(declaration) = node.child_by_field_name("declaration")
        && let Some(name) = reader.field(declaration, "name")
    {
        reader.out.exports.push(("default".to_owned(), name));
        return Next::Descend(scope.exported());
    }
    let Some(value) = node.child_by_field_name("value").or_else(|| node.child_by_field_name("declaration"))
    else {
        return Next::Descend(scope.clone());
    };
    let kind = match value.kind() {
        "identifier" => {
            let name = reader.text(value);
            reader.out.exports.push(("default".to_owned(), name));
            return Next::Stop;
        }
        "arrow_function" | "function_expression" | "generator_function" | "function_declaration" => {
            Kind::Function
        }
        "class" | "class_declaration" => Kind::Class,
        _ => return Next::Descend(scope.clone()),
    };
    if let Some(name) = reader.field(value, "name") {
        let symbol = reader.symbol(kind, &name, value, scope, true);
        reader.out.exports.push(("default".to_owned(), name.clone()));
        return Next::Descend(default_body(reader, kind, symbol, &name, scope));
    }
    let symbol = reader.symbol(kind, "default", value, scope, true);
    Next::Descend(default_body(reader, kind, symbol, "default", scope))
}

/// Whether a function is called where it is written, so that its body is part of what is around it.
pub(super) fn is_called_at_once(node: Node<'_>) -> bool {
    let mut inner = node;
    let mut outer = node.parent();
    while let Some(parent) = outer.filter(|parent| parent.kind() == "parenthesized_expression") {
        (inner, outer) = (parent, parent.parent());
    }
    outer.is_some_and(|call| {
        call.kind() == "call_expression" && call.child_by_field_name("function") == Some(inner)
    })
}

/// The names that a pattern binds: `{ a, b: c, ...d }`, `[e, f = 1]`.
pub(super) fn bound<'t>(pattern: Node<'t>) -> Vec<Node<'t>> {
    let mut names = Vec::new();
    let mut open = vec![pattern];
    while let Some(part) = open.pop() {
        match part.kind() {
            "identifier" | "shorthand_property_identifier_pattern" => names.push(part),
            "pair_pattern" => open.extend(part.child_by_field_name("value")),
            "assignment_pattern" | "object_assignment_pattern" => {
                open.extend(part.child_by_field_name("left"));
            }
            "object_pattern" | "array_pattern" | "rest_pattern" => {
                let mut cursor = part.walk();
                open.extend(part.named_children(&mut cursor));
            }
            _ => {}
        }
    }
    names.sort_by_key(Node::start_byte);
    names
}

fn default_body(reader: &Reader<'_>, kind: Kind, symbol: Option<u32>, name: &str, scope: &Scope) -> Scope {
    if kind == Kind::Class { reader.inside(symbol, name, scope, true) } else { scope.body(symbol) }
}

/// `/// <reference path="x" />`: a path from the directory of the file, with or without a dot before it.
pub(super) fn reference(reader: &mut Reader<'_>, comment: Node<'_>) {
    let content = reader.text(comment);
    let Some(content) = content.strip_prefix("///").map(str::trim_start) else { return };
    // Letters of ASCII alone are changed, so that every place stays where it is.
    let lower = content.to_ascii_lowercase();
    if !lower.starts_with("<reference") {
        return;
    }
    let Some(after) = lower.find("path").and_then(|at| content.get(at + "path".len()..)) else { return };
    let Some(after) = after.trim_start().strip_prefix('=').map(str::trim_start) else { return };
    let Some(quote) = after.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { return };
    let Some(path) = after.split(quote).nth(1) else { return };
    let is_relative = path.starts_with("./") || path.starts_with("../") || path.starts_with('/');
    let specifier = if is_relative { path.to_owned() } else { format!("./{path}") };
    reader.import(ImportKind::Bind, specifier, Vec::new(), None, comment);
}

/// `const {a, b: c} = require("x")` and `const x = require("x")`.
pub(super) fn require(reader: &mut Reader<'_>, declaration: Node<'_>) {
    let mut cursor = declaration.walk();
    for declarator in declaration.named_children(&mut cursor) {
        let Some(value) = declarator.child_by_field_name("value") else { continue };
        let Some(specifier) = required(reader, value) else { continue };
        let Some(target) = declarator.child_by_field_name("name") else { continue };
        if target.kind() == "identifier" {
            let module = Some(reader.text(target));
            reader.import(ImportKind::Bind, specifier, Vec::new(), module, value);
            continue;
        }
        let mut names = Vec::new();
        let mut inner = target.walk();
        for part in target.named_children(&mut inner) {
            match part.kind() {
                "shorthand_property_identifier_pattern" => {
                    let name = reader.text(part);
                    names.push(Name::new(name.clone(), name));
                }
                "pair_pattern" => {
                    let (key, value) = (reader.field(part, "key"), reader.field(part, "value"));
                    names.push(Name::new(key.unwrap_or_default(), value.unwrap_or_default()));
                }
                _ => {}
            }
        }
        reader.import(ImportKind::Bind, specifier, names, None, value);
    }
}

/// Whether a call is a `require("x")` that a declaration has taken.
pub(super) fn is_declared(reader: &Reader<'_>, node: Node<'_>) -> bool {
    let taken = node.parent().is_some_and(|parent| {
        parent.kind() == "variable_declarator"
            && parent
                .child_by_field_name("name")
                .is_some_and(|name| matches!(name.kind(), "identifier" | "object_pattern"))
    });
    taken && required(reader, node).is_some()
}

/// `exports.a = b`, `module.exports = b`, `module.exports = {a, b: c}` and `module.exports.a = b`.
pub(super) fn assign(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
    else {
        return;
    };
    if left.kind() != "member_expression" || !scope.is_top() {
        return;
    }
    let target = reader.text(left);
    if target == "module.exports" {
        if right.kind() == "identifier" {
            let name = reader.text(right);
            reader.out.exports.push(("default".to_owned(), name));
        }
        if right.kind() == "object" {
            let mut cursor = right.walk();
            for part in right.named_children(&mut cursor) {
                match part.kind() {
                    "shorthand_property_identifier" => {
                        let name = reader.text(part);
                        reader.out.exports.push((name.clone(), name));
                    }
                    "pair" => {
                        if let (Some(key), Some(value)) =
                            (reader.field(part, "key"), reader.field(part, "value"))
                        {
                            reader.out.exports.push((key, value));
                        }
                    }
                    _ => {}
                }
            }
        }
        return;
    }
    let Some(name) = target.strip_prefix("module.exports.").or_else(|| target.strip_prefix("exports."))
    else {
        return;
    };
    let name = name.to_owned();
    match right.kind() {
        "identifier" => {
            let ours = reader.text(right);
            reader.out.exports.push((name, ours));
        }
        "arrow_function" | "function_expression" => {
            reader.symbol(Kind::Function, &name, node, scope, true);
        }
        _ => {}
    }
}
