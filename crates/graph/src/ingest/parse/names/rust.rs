//! Names in Rust.

use tree_sitter::Node;

use super::{Grammar, Reader, Role, Scope, TypeName, Word, plain_type};

pub(super) const GRAMMAR: Grammar = Grammar { is_frame, word, declare, seen_from, hides_functions: true };

/// What a value of a type is used through.
const POINTERS: [&str; 4] = ["Box", "Rc", "Arc", "Pin"];

fn is_frame(kind: &str) -> bool {
    matches!(
        kind,
        "function_item"
            | "function_signature_item"
            | "closure_expression"
            | "match_arm"
            | "if_expression"
            | "while_expression"
            | "for_expression"
            | "block"
            | "impl_item"
            | "struct_item"
            | "enum_item"
            | "trait_item"
            | "type_item"
    )
}

fn word(kind: &str, role: Role<'_>) -> Option<Word> {
    let pair = role.pair();
    Some(match kind {
        "identifier" => match pair {
            ("parameter" | "let_declaration" | "for_expression" | "let_condition", "pattern")
            | ("closure_parameters" | "captured_pattern" | "mut_pattern" | "ref_pattern", _)
            | ("const_parameter", "name") => Word::Binding,
            // In a pattern a constant is a use, and constants are in capitals.
            ("match_pattern" | "tuple_pattern" | "slice_pattern" | "or_pattern" | "reference_pattern", _) => {
                Word::Pattern
            }
            ("tuple_struct_pattern", "") | ("field_pattern", "pattern") => Word::Pattern,
            ("call_expression" | "generic_function", "function")
            | ("macro_invocation", "macro")
            | (
                "scoped_identifier"
                | "scoped_type_identifier"
                | "token_tree"
                | "attribute"
                | "visibility_modifier"
                | "lifetime"
                | "label",
                _,
            )
            | (_, "name") => Word::Nothing,
            _ => Word::Use,
        },
        "shorthand_field_identifier" => match pair.0 {
            "field_pattern" => Word::Binding,
            _ => Word::Use,
        },
        "type_identifier" => match pair {
            ("type_parameters" | "constrained_type_parameter" | "optional_type_parameter", _)
            | ("type_parameter", "name") => match pair.1 {
                "bounds" => Word::Use,
                _ => Word::Binding,
            },
            ("scoped_type_identifier", _) => Word::Nothing,
            ("struct_expression", "name") => Word::Use,
            (_, "name") => Word::Nothing,
            _ => Word::Use,
        },
        "scoped_identifier" => match pair {
            ("call_expression" | "generic_function", "function")
            | ("macro_invocation", "macro")
            | ("scoped_identifier" | "scoped_type_identifier" | "use_declaration", _) => Word::Nothing,
            _ => Word::Use,
        },
        "scoped_type_identifier" => match pair {
            ("scoped_identifier", _) => Word::Nothing,
            _ => Word::Use,
        },
        _ => return None,
    })
}

/// Patterns within patterns that are looked at.
const MAX_PATTERNS: usize = 16;

/// What `let`, `if let` and `for` bind is not seen in the value that it is bound to.
fn seen_from(name: Node<'_>) -> usize {
    let mut node = name;
    for _ in 0..MAX_PATTERNS {
        let Some(parent) = node.parent() else { return 0 };
        match parent.kind() {
            "let_declaration" | "let_condition" => return parent.end_byte(),
            "for_expression" => {
                return parent.child_by_field_name("value").map_or(0, |value| value.end_byte());
            }
            kind if kind.ends_with("_pattern") || kind == "match_pattern" => node = parent,
            _ => return 0,
        }
    }
    0
}

fn declare<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) {
    match reader.kind(node) {
        "parameter" => {
            let of = declared(reader, node);
            bind(reader, node, of, scope);
        }
        "let_declaration" => {
            let of = declared(reader, node)
                .or_else(|| node.child_by_field_name("value").and_then(|value| creation(reader, value)));
            bind(reader, node, of, scope);
        }
        "field_declaration" => {
            let of = declared(reader, node);
            if let Some(name) = reader.field(node, "name") {
                reader.declare_field(&name, of, scope);
            }
        }
        // What a path begins with, and a constant or a type in the arguments of a macro.
        "scoped_identifier" | "scoped_type_identifier" => {
            if let Some(path) = node.child_by_field_name("path").filter(|path| path.kind() == "identifier")
                && let Some(text) = reader.written(path)
            {
                reader.use_name(path, text, scope);
            }
        }
        "token_tree" => {
            let mut cursor = node.walk();
            let words: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
            for word in words.into_iter().filter(|word| word.kind() == "identifier") {
                if let Some(text) = reader.written(word)
                    && text.starts_with(char::is_uppercase)
                {
                    reader.use_name(word, text, scope);
                }
            }
        }
        _ => {}
    }
}

fn bind<'t>(reader: &mut Reader<'t>, node: Node<'t>, of: TypeName, scope: &Scope) {
    let pattern = node.child_by_field_name("pattern");
    let name = match pattern.map(|pattern| pattern.kind()) {
        Some("mut_pattern") => {
            pattern.and_then(|pattern| pattern.named_child(1).or_else(|| pattern.named_child(0)))
        }
        _ => pattern,
    };
    if let Some(name) = name.filter(|name| name.kind() == "identifier").and_then(|name| reader.written(name))
    {
        let from = if node.kind() == "let_declaration" { node.end_byte() } else { 0 };
        reader.names.bind(scope.frame, name, from, of);
    }
}

fn declared(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    type_of(reader, node.child_by_field_name("type")?)
}

fn type_of(reader: &Reader<'_>, node: Node<'_>) -> TypeName {
    match node.kind() {
        "type_identifier" | "scoped_type_identifier" | "primitive_type" => plain_type(&reader.text(node)),
        "reference_type" => type_of(reader, node.child_by_field_name("type")?),
        "generic_type" => {
            let name = plain_type(&reader.field(node, "type")?)?;
            if !POINTERS.contains(&name.as_str()) {
                return Some(name);
            }
            type_of(reader, node.child_by_field_name("type_arguments")?.named_child(0)?)
        }
        "dynamic_type" => type_of(reader, node.child_by_field_name("trait")?),
        _ => None,
    }
}

/// `Type::new(...)`, `Type { ... }` and `&Type { ... }` make a `Type`.
fn creation(reader: &Reader<'_>, value: Node<'_>) -> TypeName {
    match value.kind() {
        "reference_expression" => creation(reader, value.child_by_field_name("value")?),
        "struct_expression" => plain_type(&reader.field(value, "name")?),
        "string_literal" => Some("str".to_owned()),
        "call_expression" => {
            let function = value.child_by_field_name("function")?;
            let name = reader.field(function, "name")?;
            let owner = plain_type(&reader.field(function, "path")?)?;
            let is_type = owner.rsplit("::").next().is_some_and(|last| last.starts_with(char::is_uppercase));
            let makes = name == "new" || name.starts_with("new_") || name == "default";
            (is_type && makes).then_some(owner)
        }
        _ => None,
    }
}
