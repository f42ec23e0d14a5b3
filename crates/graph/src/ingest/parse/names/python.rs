//! Names in Python.

use tree_sitter::Node;

use super::{Grammar, Reader, Role, Scope, TypeName, Word, everywhere, plain_type};

pub(super) const GRAMMAR: Grammar =
    Grammar { is_frame, word, declare, seen_from: everywhere, hides_functions: true };

fn is_frame(kind: &str) -> bool {
    matches!(
        kind,
        "function_definition"
            | "lambda"
            | "list_comprehension"
            | "set_comprehension"
            | "dictionary_comprehension"
            | "generator_expression"
    )
}

fn word(kind: &str, role: Role<'_>) -> Option<Word> {
    let pair = role.pair();
    Some(match kind {
        "identifier" => match pair {
            (
                "parameters"
                | "lambda_parameters"
                | "typed_parameter"
                | "list_splat_pattern"
                | "dictionary_splat_pattern"
                | "pattern_list"
                | "tuple_pattern"
                | "list_pattern"
                | "as_pattern_target",
                _,
            )
            | (
                "default_parameter" | "typed_default_parameter" | "named_expression" | "class_definition",
                "name",
            )
            | ("assignment" | "augmented_assignment" | "for_statement" | "for_in_clause", "left") => {
                Word::Binding
            }
            ("decorator", _) => Word::Decorator,
            ("call", "function")
            | ("attribute", "attribute")
            | ("global_statement" | "nonlocal_statement", _)
            | (_, "name") => Word::Nothing,
            _ => Word::Use,
        },
        "attribute" => match pair {
            ("decorator", _) => Word::Decorator,
            ("call", "function") => Word::Nothing,
            _ => Word::Use,
        },
        _ => return None,
    })
}

fn declare<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) {
    match reader.kind(node) {
        // The decorators of a definition without a symbol are uses where it is.
        "decorated_definition" => {
            for text in std::mem::take(&mut reader.names.decorators) {
                reader.use_name(node, text, scope);
            }
        }
        "global_statement" => {
            let mut cursor = node.walk();
            let names: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
            for name in names {
                if let Some(name) = reader.written(name) {
                    reader.names.take_from_file(scope.frame, name);
                }
            }
        }
        "typed_parameter" => {
            let of = declared(reader, node);
            let name = node.named_child(0).filter(|name| name.kind() == "identifier");
            if let Some(name) = name.and_then(|name| reader.written(name)) {
                reader.names.bind(scope.frame, name, 0, of);
            }
        }
        "typed_default_parameter" => {
            let of = declared(reader, node);
            reader.declare(node, "name", of, scope);
        }
        "assignment" => {
            let of = declared(reader, node)
                .or_else(|| node.child_by_field_name("right").and_then(|value| creation(reader, value)));
            let Some(target) = node.child_by_field_name("left") else { return };
            match target.kind() {
                "identifier" => {
                    if scope.members && scope.function.is_none() {
                        let name = reader.text(target);
                        reader.declare_field(&name, of, scope);
                    } else {
                        reader.declare(node, "left", of, scope);
                    }
                }
                "attribute" if reader.field(target, "object").is_some_and(|object| object == "self") => {
                    let name = reader.field(target, "attribute").unwrap_or_default();
                    reader.declare_field(&name, of, scope);
                }
                _ => {}
            }
        }
        _ => {}
    }
}

fn declared(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    let annotation = node.child_by_field_name("type")?;
    let inner = annotation.named_child(0)?;
    match inner.kind() {
        "identifier" | "attribute" => plain_type(&reader.text(inner)),
        "generic_type" | "subscript" => {
            let text = reader.text(inner);
            let name = plain_type(&text)?;
            // What is called is mostly the part that is not `None`, which is not known here.
            (!matches!(name.rsplit('.').next(), Some("Optional" | "Union" | "Annotated" | "Any")))
                .then_some(name)
        }
        "string" => plain_type(reader.text(inner).trim_matches(['"', '\''])),
        _ => None,
    }
}

/// `Name(...)` makes a `Name`, and so does `module.Name(...)`.
fn creation(reader: &Reader<'_>, value: Node<'_>) -> TypeName {
    match value.kind() {
        "call" => {
            let name = plain_type(&reader.field(value, "function")?)?;
            let last = name.rsplit('.').next().unwrap_or_default();
            last.trim_start_matches('_').starts_with(char::is_uppercase).then_some(name)
        }
        "string" | "concatenated_string" => Some("str".to_owned()),
        "list" | "list_comprehension" => Some("list".to_owned()),
        "dictionary" | "dictionary_comprehension" => Some("dict".to_owned()),
        "set" | "set_comprehension" => Some("set".to_owned()),
        _ => None,
    }
}
