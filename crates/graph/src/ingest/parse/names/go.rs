//! Names in Go.

use tree_sitter::Node;

use super::{Grammar, Reader, Role, Scope, TypeName, Word, plain_type};

pub(super) const GRAMMAR: Grammar = Grammar { is_frame, word, declare, seen_from, hides_functions: true };

fn is_frame(kind: &str) -> bool {
    matches!(
        kind,
        "function_declaration"
            | "method_declaration"
            | "func_literal"
            | "method_elem"
            | "method_spec"
            | "type_spec"
            | "function_type"
    )
}

fn word(kind: &str, role: Role<'_>) -> Option<Word> {
    let pair = role.pair();
    Some(match kind {
        "identifier" => match pair {
            (
                "parameter_declaration"
                | "variadic_parameter_declaration"
                | "type_parameter_declaration"
                | "var_spec"
                | "const_spec",
                "name",
            ) => Word::Binding,
            ("call_expression", "function") | ("literal_element", "key") | (_, "name" | "package") => {
                Word::Nothing
            }
            _ => Word::Use,
        },
        "type_identifier" => match pair {
            ("qualified_type" | "type_spec" | "type_alias", "name") => Word::Nothing,
            _ => Word::Use,
        },
        "qualified_type" => Word::Use,
        "selector_expression" => match pair {
            ("call_expression", "function") => Word::Nothing,
            _ => Word::Use,
        },
        _ => return None,
    })
}

fn declare<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) {
    match reader.kind(node) {
        "parameter_declaration" | "var_spec" => {
            let from = if node.kind() == "var_spec" { node.end_byte() } else { 0 };
            let of = node.child_by_field_name("type").and_then(|of| type_of(reader, of));
            let mut cursor = node.walk();
            let names: Vec<Node<'t>> = node.children_by_field_name("name", &mut cursor).collect();
            for name in names {
                if let Some(name) = reader.written(name) {
                    reader.names.bind(scope.frame, name, from, of.clone());
                }
            }
        }
        "field_declaration" => {
            let of = node.child_by_field_name("type").and_then(|of| type_of(reader, of));
            let mut cursor = node.walk();
            let names: Vec<Node<'t>> = node.children_by_field_name("name", &mut cursor).collect();
            for name in names {
                let name = reader.text(name);
                reader.declare_field(&name, of.clone(), scope);
            }
        }
        "short_var_declaration" | "range_clause" => {
            let Some(left) = node.child_by_field_name("left") else { return };
            let right = node.child_by_field_name("right");
            let is_one = node.kind() == "short_var_declaration" && left.named_child_count() == 1;
            let value = right.filter(|_| is_one).and_then(|right| right.named_child(0));
            let of = value.and_then(|value| creation(reader, value));
            let mut cursor = left.walk();
            let names: Vec<Node<'t>> = left.named_children(&mut cursor).collect();
            for name in names.into_iter().filter(|name| name.kind() == "identifier") {
                if let Some(text) = reader.written(name) {
                    reader.names.bind(scope.frame, text, node.end_byte(), of.clone());
                }
            }
        }
        _ => {}
    }
}

/// `x := x()` calls another `x`.
fn seen_from(name: Node<'_>) -> usize {
    let spec = name.parent().filter(|parent| matches!(parent.kind(), "var_spec" | "const_spec"));
    spec.map_or(0, |spec| spec.end_byte())
}

fn type_of(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    match node.kind() {
        "type_identifier" | "qualified_type" => plain_type(&reader.text(node)),
        "pointer_type" | "parenthesized_type" => type_of(reader, node.named_child(0)?),
        "generic_type" => plain_type(&reader.field(node, "type")?),
        _ => None,
    }
}

fn creation(reader: &Reader<'_>, value: Node<'_>) -> TypeName {
    match value.kind() {
        "composite_literal" => type_of(reader, value.child_by_field_name("type")?),
        "unary_expression" => creation(reader, value.child_by_field_name("operand")?),
        _ => None,
    }
}
