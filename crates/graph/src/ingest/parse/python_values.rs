//! Python: what expressions are, as far as it is known before the code runs.

use std::borrow::Cow;

use tree_sitter::Node;

use super::OWN_DIRECTORY;
use super::constant::{MAX_PARTS, constant as text_of};
use super::python::identifier;
use super::reader::Reader;

/// The part of a dotted name that is only known when the code runs.
pub(super) const ANY: &str = "*";

/// The dotted name of what an expression means, beginning with a dot where its beginning is not known.
pub(super) fn meaning(reader: &Reader<'_>, expression: Node<'_>) -> Option<String> {
    let (mut parts, mut expression) = (Vec::new(), expression);
    for _ in 0..MAX_PARTS {
        let (part, object) = match expression.kind() {
            "identifier" => {
                let name = identifier(reader, expression);
                (reader.loaders.names.get(&name).cloned().or(Some(name)), None)
            }
            "attribute" => {
                let name = expression.child_by_field_name("attribute").map(|name| identifier(reader, name));
                (name, expression.child_by_field_name("object"))
            }
            // `vars(importlib)["import_module"]`, `__builtins__["__import__"]`
            "subscript" => {
                let key = expression.child_by_field_name("subscript").and_then(|key| constant(reader, key));
                (key.or(Some(ANY.to_owned())), expression.child_by_field_name("value"))
            }
            "parenthesized_expression" => (None, content(expression)),
            "named_expression" => (None, expression.child_by_field_name("value")),
            "call" => called(reader, expression),
            _ => (Some(String::new()), None),
        };
        parts.extend(part.filter(|part| part != "__dict__"));
        let Some(object) = object else {
            parts.reverse();
            let name = parts.join(".");
            return Some(
                name.strip_prefix("__builtins__.").map(|rest| format!("builtins.{rest}")).unwrap_or(name),
            );
        };
        expression = object;
    }
    None
}

/// What a call is as a part of a dotted name, and what it is a part of: `getattr(a, "b")` is `a.b`, `__import__("a")` is `a`.
fn called<'t>(reader: &Reader<'_>, call: Node<'t>) -> (Option<String>, Option<Node<'t>>) {
    let function = reader.field(call, "function").unwrap_or_default();
    let text = |place| argument(reader, call, place, &[]).and_then(|text| constant(reader, text));
    match function.rsplit('.').next() {
        Some("getattr") => (text(1).or(Some(ANY.to_owned())), argument(reader, call, 0, &[])),
        Some("vars") => (None, argument(reader, call, 0, &[])),
        Some("__import__" | "import_module") => (text(0).or(Some(String::new())), None),
        _ => (Some(String::new()), None),
    }
}

/// Returns the expression in parentheses.
fn content(node: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).find(|child| child.kind() != "comment")
}

/// The argument at a place, or with one of the names.
pub(super) fn argument<'t>(
    reader: &Reader<'_>,
    call: Node<'t>,
    place: usize,
    names: &[&str],
) -> Option<Node<'t>> {
    let arguments = call.child_by_field_name("arguments")?;
    let mut cursor = arguments.walk();
    let all: Vec<Node<'t>> =
        arguments.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect();
    let is_named = |child: &&Node<'t>| {
        child.kind() == "keyword_argument"
            && reader.field(**child, "name").is_some_and(|name| names.contains(&name.as_str()))
    };
    if let Some(named) = all.iter().find(is_named) {
        return named.child_by_field_name("value");
    }
    // What is unpacked may be any argument.
    let unpacked = all.iter().position(|child| matches!(child.kind(), "list_splat" | "dictionary_splat"));
    let place = unpacked.map_or(place, |unpacked| unpacked.min(place));
    all.get(place).copied().filter(|child| child.kind() != "keyword_argument")
}

/// The path that an expression is, where that is known before the code runs.
pub(super) fn path(reader: &Reader<'_>, expression: Node<'_>, depth: usize) -> Option<String> {
    if let Some(text) = constant(reader, expression) {
        return Some(text);
    }
    let depth = depth.checked_sub(1)?;
    let of = |node: Node<'_>| path(reader, node, depth);
    let field = |name: &str| expression.child_by_field_name(name);
    match expression.kind() {
        "identifier" => (reader.text(expression) == "__file__").then(|| format!("{OWN_DIRECTORY}/__file__")),
        "parenthesized_expression" => of(content(expression)?),
        "binary_operator" if reader.field(expression, "operator")? == "/" => {
            Some(joined(&of(field("left")?)?, &of(field("right")?)?))
        }
        "attribute" if reader.field(expression, "attribute")? == "parent" => {
            directory(of(field("object")?)?, 1)
        }
        "subscript" => {
            let (parents, number) = (field("value")?, reader.field(expression, "subscript")?);
            let is_parents = reader.field(parents, "attribute")? == "parents";
            let number: usize = number.parse().ok().filter(|number| is_parents && *number < MAX_PARTS)?;
            directory(of(parents.child_by_field_name("object")?)?, number + 1)
        }
        "call" => {
            let function = field("function")?;
            let object = || function.child_by_field_name("object").and_then(of);
            let given = |place| argument(reader, expression, place, &[]).and_then(of);
            let name = meaning(reader, function)?;
            match name.rsplit('.').next()? {
                "joinpath" => joined_arguments(object()?, expression, of),
                "Path" | "PurePath" | "PosixPath" | "PurePosixPath" => {
                    joined_arguments(String::new(), expression, of)
                }
                "join" if name.ends_with("path.join") => joined_arguments(String::new(), expression, of),
                "dirname" => directory(given(0)?, 1),
                "abspath" | "realpath" | "normpath" | "fspath" | "str" => given(0),
                "resolve" | "absolute" | "as_posix" => object(),
                "getcwd" | "cwd" => Some(String::new()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A path with all arguments of a call behind it.
fn joined_arguments(
    first: String,
    call: Node<'_>,
    of: impl Fn(Node<'_>) -> Option<String>,
) -> Option<String> {
    let arguments = call.child_by_field_name("arguments")?;
    let mut cursor = arguments.walk();
    let mut parts = arguments.named_children(&mut cursor).filter(|part| part.kind() != "comment");
    parts.try_fold(first, |path, part| Some(joined(&path, &of(part)?)))
}

fn joined(directory: &str, path: &str) -> String {
    if directory.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    }
}

/// The directory of a path, so many levels above it.
fn directory(path: String, levels: usize) -> Option<String> {
    let mut path = path;
    for _ in 0..levels {
        path = match path.rsplit_once('/') {
            Some((directory, last)) if last != ".." => directory.to_owned(),
            None if !matches!(path.as_str(), OWN_DIRECTORY | "..") => String::new(),
            _ => path + "/..",
        };
    }
    Some(path)
}

/// The text that an expression is, where that is known before the code runs.
pub(super) fn constant(reader: &Reader<'_>, expression: Node<'_>) -> Option<String> {
    text_of(expression, |part, rest| {
        match part.kind() {
            "string" => return literal(reader, part).map(Cow::Owned),
            "parenthesized_expression" => rest.push(content(part)?),
            "concatenated_string" => {
                let mut cursor = part.walk();
                let first = rest.len();
                rest.extend(part.named_children(&mut cursor).filter(|child| child.kind() != "comment"));
                rest.get_mut(first..)?.reverse();
            }
            "binary_operator" if reader.field(part, "operator")? == "+" => {
                rest.extend([part.child_by_field_name("right")?, part.child_by_field_name("left")?]);
            }
            _ => return None,
        }
        Some(Cow::Borrowed(""))
    })
}

/// A string without its quotes. One with an escape or with something in braces is not known here.
fn literal(reader: &Reader<'_>, node: Node<'_>) -> Option<String> {
    let written = reader.whole_text(node);
    let body = written.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let prefix = written.get(..written.len() - body.len()).unwrap_or_default().to_ascii_lowercase();
    if prefix.contains('f') && body.contains('{') || (body.contains('\\') && !prefix.contains('r')) {
        return None;
    }
    let quotes = [r#"""""#, "'''", "\"", "'"];
    let inside = quotes.iter().find_map(|quote| body.strip_prefix(quote)?.strip_suffix(quote));
    inside.map(str::to_owned)
}
