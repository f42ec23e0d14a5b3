//! Names in TypeScript and JavaScript.

use tree_sitter::Node;

use super::{Grammar, Reader, Role, Scope, TypeName, Word, everywhere, plain_type};

pub(super) const GRAMMAR: Grammar =
    Grammar { is_frame, word, declare, seen_from: everywhere, hides_functions: true };

fn is_frame(kind: &str) -> bool {
    matches!(
        kind,
        "function_declaration"
            | "generator_function_declaration"
            | "function_expression"
            | "generator_function"
            | "arrow_function"
            | "method_definition"
            | "function_signature"
            | "method_signature"
            | "abstract_method_signature"
            | "call_signature"
            | "construct_signature"
            | "function_type"
            | "constructor_type"
            | "class_declaration"
            | "abstract_class_declaration"
            | "class"
            | "interface_declaration"
            | "type_alias_declaration"
            | "mapped_type_clause"
            | "conditional_type"
            | "catch_clause"
    )
}

fn word(kind: &str, role: Role<'_>) -> Option<Word> {
    let pair = role.pair();
    Some(match kind {
        "identifier" => match pair {
            // A function is a symbol and can be found.
            ("variable_declarator", "name") if is_function(role) => Word::Nothing,
            (
                "variable_declarator"
                | "class_declaration"
                | "class"
                | "enum_declaration"
                | "function_expression",
                "name",
            )
            | ("required_parameter" | "optional_parameter", "pattern")
            | ("formal_parameters" | "array_pattern" | "rest_pattern", _)
            | ("arrow_function" | "catch_clause", "parameter")
            | ("for_in_statement" | "assignment_pattern" | "object_assignment_pattern", "left")
            | ("pair_pattern", "value") => Word::Binding,
            ("call_expression", "function")
            | ("new_expression", "constructor")
            | ("export_specifier" | "import_specifier" | "namespace_export" | "namespace_import", _)
            | (_, "name") => Word::Nothing,
            _ => Word::Use,
        },
        "shorthand_property_identifier" => Word::Use,
        "shorthand_property_identifier_pattern" => Word::Binding,
        "type_identifier" => match pair {
            ("type_parameter" | "mapped_type_clause", "name") | ("infer_type", _) => Word::Binding,
            ("nested_type_identifier" | "type_alias_declaration", "name") => Word::Nothing,
            (
                "class_declaration" | "abstract_class_declaration" | "class" | "interface_declaration",
                "name",
            ) => Word::Binding,
            _ => Word::Use,
        },
        "nested_type_identifier" => Word::Use,
        "member_expression" | "nested_identifier" => match pair {
            ("call_expression", "function") | ("new_expression", "constructor") => Word::Nothing,
            ("jsx_opening_element" | "jsx_self_closing_element" | "jsx_closing_element", "name") => {
                Word::Nothing
            }
            _ => Word::Use,
        },
        _ => return None,
    })
}

fn is_function(role: Role<'_>) -> bool {
    let value = role.parent.and_then(|declarator| declarator.child_by_field_name("value"));
    value.is_some_and(|value| {
        matches!(value.kind(), "arrow_function" | "function_expression" | "generator_function")
    })
}

fn declare<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) {
    match reader.kind(node) {
        "required_parameter" | "optional_parameter" => {
            let of = declared(reader, node);
            if has_modifier(node)
                && let Some(name) = reader.field(node, "pattern")
            {
                reader.declare_field(&name, of.clone(), scope);
            }
            reader.declare(node, "pattern", of, scope);
        }
        "variable_declarator" => {
            let of = declared(reader, node).or_else(|| created(reader, node));
            reader.declare(node, "name", of, scope);
        }
        "public_field_definition" | "property_signature" => {
            let of = declared(reader, node).or_else(|| created(reader, node));
            if let Some(name) = reader.field(node, "name") {
                reader.declare_field(&name, of, scope);
            }
        }
        "field_definition" => {
            let of = created(reader, node);
            if let Some(name) = reader.field(node, "property") {
                reader.declare_field(&name, of, scope);
            }
        }
        "assignment_expression" => {
            let Some(target) = node.child_by_field_name("left") else { return };
            let is_own = target.kind() == "member_expression"
                && target.child_by_field_name("object").is_some_and(|object| object.kind() == "this");
            let of = node.child_by_field_name("right").and_then(|value| creation(reader, value));
            if is_own && let Some(name) = reader.field(target, "property") {
                reader.declare_field(&name, of, scope);
            }
        }
        _ => {}
    }
}

/// A parameter of a constructor that is a field as well.
fn has_modifier(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).any(|child| matches!(child.kind(), "accessibility_modifier" | "readonly"))
}

fn declared(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    let annotation = node.child_by_field_name("type")?;
    type_of(reader, annotation.named_child(0)?)
}

fn type_of(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    match node.kind() {
        "type_identifier" | "nested_type_identifier" => plain_type(&reader.text(node)),
        "generic_type" => plain_type(&reader.field(node, "name")?),
        "readonly_type" | "parenthesized_type" => type_of(reader, node.named_child(0)?),
        "array_type" | "tuple_type" => Some("Array".to_owned()),
        "predefined_type" => {
            let text = reader.text(node);
            (!matches!(text.as_str(), "any" | "unknown" | "object")).then_some(text)
        }
        // `A | undefined` is `A` where something is called on it.
        "union_type" => {
            let mut cursor = node.walk();
            let mut parts = node
                .named_children(&mut cursor)
                .filter(|part| !matches!(reader.text(*part).as_str(), "undefined" | "null"));
            let only = parts.next()?;
            if parts.next().is_some() { None } else { type_of(reader, only) }
        }
        _ => None,
    }
}

fn created(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    creation(reader, node.child_by_field_name("value")?)
}

fn creation(reader: &Reader<'_>, value: Node<'_>) -> TypeName {
    match value.kind() {
        "new_expression" => plain_type(&reader.field(value, "constructor")?),
        "as_expression" | "satisfies_expression" => type_of(reader, value.named_child(1)?),
        "string" | "template_string" => Some("string".to_owned()),
        "array" => Some("Array".to_owned()),
        "regex" => Some("RegExp".to_owned()),
        _ => None,
    }
}
