//! TypeScript and JavaScript: definitions and calls.

use tree_sitter::Node;

use super::Kind;
use super::javascript_loads as loads;
use super::javascript_modules as modules;
use super::reader::{Next, Reader, Scope};

pub(super) fn node<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    match reader.kind(node) {
        "import_statement" => {
            modules::import(reader, node);
            Next::Stop
        }
        "export_statement" => modules::export(reader, node, scope),
        "function_declaration" | "generator_function_declaration" | "function_signature" => {
            define_function(reader, node, scope)
        }
        "class_declaration" | "abstract_class_declaration" => define_type(reader, node, scope, Kind::Class),
        "interface_declaration" => define_type(reader, node, scope, Kind::Interface),
        "enum_declaration" => define_type(reader, node, scope, Kind::Enum),
        "internal_module" | "module" if node.child_by_field_name("name").is_some() => {
            let name = node.child_by_field_name("name").map(|name| reader.unquoted(name)).unwrap_or_default();
            let symbol = reader.symbol(Kind::Module, &name, node, scope, scope.exported);
            Next::Descend(reader.inside(symbol, &name, scope, false))
        }
        "type_alias_declaration" => {
            let mut symbol = None;
            if scope.is_top() {
                let name = reader.field(node, "name").unwrap_or_default();
                symbol = reader.symbol(Kind::Type, &name, node, scope, scope.exported);
            }
            // A type can be taken from another file: `typeof import("x")`.
            Next::Descend(scope.hidden().definition(symbol))
        }
        "method_definition" | "method_signature" | "abstract_method_signature" if scope.members => {
            define_method(reader, node, scope, "name")
        }
        "public_field_definition" | "field_definition" if scope.members => define_field(reader, node, scope),
        "lexical_declaration" | "variable_declaration" => {
            if scope.is_top() {
                define_variables(reader, node, scope)
            } else {
                modules::require(reader, node);
                define_inner(reader, node, scope)
            }
        }
        "assignment_expression" => {
            modules::assign(reader, node, scope);
            Next::Descend(scope.clone())
        }
        "call_expression" => call(reader, node, scope),
        "comment" => {
            modules::reference(reader, node);
            Next::Stop
        }
        "new_expression" => {
            loads::creation(reader, node);
            if let Some(target) = node.child_by_field_name("constructor") {
                callee(reader, target, node, scope);
            }
            Next::Descend(scope.clone())
        }
        "jsx_opening_element" | "jsx_self_closing_element" => {
            // A component is a function that is called by the frame; elements in small letters are the browser's.
            if let Some(target) = node.child_by_field_name("name") {
                let component = reader.text(target).starts_with(|first: char| first.is_uppercase());
                if component {
                    callee(reader, target, node, scope);
                }
            }
            Next::Descend(scope.clone())
        }
        "arrow_function" | "function_expression" | "generator_function" | "method_definition" => {
            let is_part = scope.is_top() && modules::is_called_at_once(node);
            Next::Descend(if is_part { scope.hidden() } else { scope.nested() })
        }
        // `export` holds for the declaration right below it alone.
        "ambient_declaration" | "expression_statement" => Next::Descend(scope.clone()),
        _ if scope.exported => Next::Descend(scope.hidden()),
        _ => Next::Descend(scope.clone()),
    }
}

fn define_function(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) -> Next {
    let name = reader.field(node, "name").unwrap_or_default();
    if !scope.is_top() {
        return Next::Descend(reader.inner_function(&name, node, scope));
    }
    let symbol = reader.symbol(Kind::Function, &name, node, scope, scope.exported);
    Next::Descend(scope.body(symbol))
}

fn define_type(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope, kind: Kind) -> Next {
    if !scope.is_top() {
        return Next::Descend(scope.clone());
    }
    let name = reader.field(node, "name").unwrap_or_default();
    let symbol = reader.symbol(kind, &name, node, scope, scope.exported);
    heritage(reader, node, symbol);
    Next::Descend(reader.inside(symbol, &name, scope, true))
}

/// What a class or an interface extends and implements.
fn heritage(reader: &mut Reader<'_>, node: Node<'_>, symbol: Option<u32>) {
    let mut open = vec![(node, false)];
    while let Some((part, implements)) = open.pop() {
        let mut cursor = part.walk();
        for child in part.named_children(&mut cursor) {
            match child.kind() {
                "class_heritage" | "extends_clause" | "extends_type_clause" => open.push((child, false)),
                "implements_clause" => open.push((child, true)),
                "identifier"
                | "type_identifier"
                | "member_expression"
                | "nested_type_identifier"
                | "generic_type"
                    if part.id() != node.id() =>
                {
                    let name = reader.text(child);
                    if !name.contains('(') {
                        reader.heritage(symbol, &name, implements);
                    }
                }
                _ => {}
            }
        }
    }
}

/// A function that is the value of a variable in the body of another one.
fn define_inner<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    let mut cursor = node.walk();
    let declarators: Vec<Node<'t>> =
        node.named_children(&mut cursor).filter(|child| child.kind() == "variable_declarator").collect();
    let [declarator] = declarators.as_slice() else { return Next::Descend(scope.clone()) };
    let is_function = declarator.child_by_field_name("value").is_some_and(|value| {
        matches!(value.kind(), "arrow_function" | "function_expression" | "generator_function")
    });
    match declarator.child_by_field_name("name").filter(|name| is_function && name.kind() == "identifier") {
        Some(name) => {
            let name = reader.text(name);
            Next::Descend(reader.inner_function(&name, *declarator, scope))
        }
        None => Next::Descend(scope.clone()),
    }
}

fn define_method(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope, field: &str) -> Next {
    let name = reader.field(node, field).unwrap_or_default();
    let hidden = name.starts_with('#') || has_modifier(reader, node, "private");
    let symbol = reader.symbol(Kind::Method, &name, node, scope, !hidden);
    Next::Descend(scope.body(symbol))
}

/// A field that holds a function is a method to those who call it.
fn define_field(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) -> Next {
    let is_function = node
        .child_by_field_name("value")
        .is_some_and(|value| matches!(value.kind(), "arrow_function" | "function_expression"));
    if is_function {
        let field = if node.kind() == "field_definition" { "property" } else { "name" };
        return define_method(reader, node, scope, field);
    }
    Next::Descend(scope.body(scope.container))
}

fn has_modifier(reader: &Reader<'_>, node: Node<'_>, modifier: &str) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .any(|child| child.kind() == "accessibility_modifier" && reader.text(child) == modifier)
}

fn define_variables<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    let constant = reader.field(node, "kind").is_some_and(|kind| kind == "const");
    modules::require(reader, node);
    let mut cursor = node.walk();
    let declarators: Vec<Node<'t>> =
        node.named_children(&mut cursor).filter(|child| child.kind() == "variable_declarator").collect();
    let mut last = None;
    for declarator in &declarators {
        let value = declarator.child_by_field_name("value");
        let Some(target) = declarator.child_by_field_name("name") else { continue };
        if value.is_some_and(|value| loads::required(reader, value).is_some()) {
            continue;
        }
        if target.kind() != "identifier" {
            let kind = if constant { Kind::Const } else { Kind::Variable };
            for name in modules::bound(target) {
                let text = reader.text(name);
                reader.symbol(kind, &text, name, scope, scope.exported);
            }
            continue;
        }
        let name = reader.text(target);
        let kind = match value.map(|value| value.kind()) {
            Some("arrow_function" | "function_expression" | "generator_function") => Kind::Function,
            Some("class") => Kind::Class,
            _ if constant => Kind::Const,
            _ => Kind::Variable,
        };
        last = reader.symbol(kind, &name, *declarator, scope, scope.exported);
    }
    // With one name, what is called in its value is called by it.
    Next::Descend(scope.body(if declarators.len() == 1 { last } else { None }))
}

fn call<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    if let Some(target) = node.child_by_field_name("function") {
        if target.kind() == "import" {
            loads::load_module(reader, node);
        } else if !modules::is_declared(reader, node) && !loads::call(reader, node) {
            callee(reader, target, node, scope);
        }
    }
    Next::Descend(scope.clone())
}

fn callee(reader: &mut Reader<'_>, target: Node<'_>, node: Node<'_>, scope: &Scope) {
    match target.kind() {
        "identifier" => {
            let name = reader.text(target);
            reader.call(name, None, node, scope);
        }
        "super" => reader.call("constructor".to_owned(), Some("super".to_owned()), node, scope),
        "member_expression" | "nested_identifier" | "jsx_member_expression" => {
            let name = reader.field(target, "property").unwrap_or_default();
            let object = target.child_by_field_name("object");
            // What a text or a list can do is not in the tree.
            if object.is_some_and(|object| {
                matches!(object.kind(), "string" | "template_string" | "array" | "regex" | "number")
            }) {
                return;
            }
            let receiver = object.map(|object| receiver(reader, object));
            reader.call(name, Some(receiver.unwrap_or_default()), node, scope);
        }
        _ => {}
    }
}

/// A chain of calls has no name; an empty receiver is some value.
fn receiver(reader: &Reader<'_>, object: Node<'_>) -> String {
    match object.kind() {
        "identifier" | "this" | "super" | "member_expression" | "nested_identifier" => {
            let text = reader.text(object);
            if text.contains('(') { String::new() } else { text }
        }
        _ => String::new(),
    }
}
