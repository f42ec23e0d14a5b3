//! Names in Java.

use tree_sitter::Node;

use super::{Grammar, Reader, Role, Scope, TypeName, Word, everywhere, plain_type};

pub(super) const GRAMMAR: Grammar =
    Grammar { is_frame, word, declare, seen_from: everywhere, hides_functions: false };

fn is_frame(kind: &str) -> bool {
    matches!(
        kind,
        "method_declaration"
            | "constructor_declaration"
            | "lambda_expression"
            | "class_declaration"
            | "interface_declaration"
            | "record_declaration"
            | "static_initializer"
    )
}

fn word(kind: &str, role: Role<'_>) -> Option<Word> {
    let pair = role.pair();
    Some(match kind {
        "identifier" => match pair {
            (
                "formal_parameter"
                | "catch_formal_parameter"
                | "variable_declarator"
                | "enhanced_for_statement"
                | "resource"
                | "instanceof_expression",
                "name",
            )
            | ("lambda_expression", "parameters")
            | ("inferred_parameters", _) => Word::Binding,
            ("annotation" | "marker_annotation", "name") => Word::Use,
            ("field_access", "field") | (_, "name") => Word::Nothing,
            ("scoped_identifier", _) => Word::Nothing,
            _ => Word::Use,
        },
        "type_identifier" => match pair {
            ("type_parameter", _) => Word::Binding,
            ("object_creation_expression", "type") | ("scoped_type_identifier", _) | (_, "name") => {
                Word::Nothing
            }
            _ => Word::Use,
        },
        "scoped_type_identifier" => match pair {
            ("object_creation_expression", "type") => Word::Nothing,
            _ => Word::Use,
        },
        "field_access" => match pair {
            ("method_invocation", "object") => Word::Nothing,
            _ => Word::Use,
        },
        _ => return None,
    })
}

fn declare<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) {
    match reader.kind(node) {
        "formal_parameter" | "enhanced_for_statement" | "resource" => {
            let of = declared(reader, node);
            reader.declare(node, "name", of, scope);
        }
        "local_variable_declaration" | "field_declaration" => {
            let of = declared(reader, node).or_else(|| created(reader, node));
            let mut cursor = node.walk();
            let declarators: Vec<Node<'t>> = node.children_by_field_name("declarator", &mut cursor).collect();
            for declarator in declarators {
                if node.kind() == "local_variable_declaration" {
                    reader.declare(declarator, "name", of.clone(), scope);
                } else if let Some(name) = reader.field(declarator, "name") {
                    reader.declare_field(&name, of.clone(), scope);
                }
            }
        }
        _ => {}
    }
}

fn declared(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    let of = node.child_by_field_name("type")?;
    let text = reader.text(of);
    match of.kind() {
        "type_identifier" | "scoped_type_identifier" | "generic_type" => {
            plain_type(&text).filter(|name| name != "var")
        }
        _ => None,
    }
}

/// `var x = new Name()`.
fn created(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    let value = node.child_by_field_name("declarator")?.child_by_field_name("value")?;
    if value.kind() != "object_creation_expression" {
        return None;
    }
    plain_type(&reader.field(value, "type")?)
}
