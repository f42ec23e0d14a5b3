//! Python: modules that are loaded by calls (`importlib.import_module("a.b")`, `__import__("a")` and similar).

use std::sync::LazyLock;

use regex::bytes::Regex;
use tree_sitter::Node;

use super::ImportKind;
use super::reader::Reader;

/// Nodes that the search for other names visits.
const MAX_NODES: usize = 2_000_000;
/// Parts of a text that is put together with `+`.
const MAX_PARTS: usize = 32;

/// Functions whose first argument names a module.
const MODULES: [&str; 4] = ["import_module", "__import__", "run_module", "find_spec"];
/// Functions that take the path of a file, and at which place.
const FILES: [(&str, usize); 4] =
    [("run_path", 0), ("spec_from_file_location", 1), ("load_source", 1), ("SourceFileLoader", 1)];

/// Where one of them may be written.
static ANY_LOADER: LazyLock<Regex> = LazyLock::new(|| {
    let names: Vec<&str> = MODULES.into_iter().chain(FILES.map(|(name, _)| name)).collect();
    // A word with nothing to escape.
    #[expect(clippy::expect_used, reason = "the names are above")]
    Regex::new(&names.join("|")).expect("names are a pattern")
});

fn is_loader(name: &str) -> bool {
    MODULES.contains(&name) || FILES.iter().any(|(own, _)| *own == name)
}

/// Finds the names that a file gives to the functions that load modules. In most files none of them is written anywhere.
pub(super) fn prepare(reader: &mut Reader<'_>, root: Node<'_>) {
    if !ANY_LOADER.is_match(reader.source) {
        return;
    }
    let mut open = vec![root];
    let mut nodes = 0;
    while let Some(node) = open.pop() {
        nodes += 1;
        if nodes > MAX_NODES {
            reader.out.unparsed = true;
            return;
        }
        let (here, there) = match node.kind() {
            "aliased_import" => (reader.field(node, "alias"), reader.field(node, "name")),
            "assignment" => {
                let left = node.child_by_field_name("left").filter(|left| left.kind() == "identifier");
                let right = node.child_by_field_name("right").and_then(|right| last_name(reader, right));
                (left.map(|left| reader.text(left)), right)
            }
            _ => (None, None),
        };
        if let (Some(here), Some(there)) = (here, there)
            && is_loader(&there)
        {
            reader.loaders.add(here, there);
        }
        let mut cursor = node.walk();
        open.extend(node.named_children(&mut cursor));
    }
}

/// `f` and `a.b.f` by their last name.
fn last_name(reader: &Reader<'_>, node: Node<'_>) -> Option<String> {
    match node.kind() {
        "identifier" => Some(reader.text(node)),
        "attribute" => reader.field(node, "attribute"),
        _ => None,
    }
}

/// Notes what a call loads, if it does.
pub(super) fn call(reader: &mut Reader<'_>, function: Node<'_>, node: Node<'_>) {
    let Some(name) = last_name(reader, function) else { return };
    let name = reader.loaders.meaning(&name).map(str::to_owned).unwrap_or(name);
    let place = FILES.iter().find(|(own, _)| *own == name).map(|(_, place)| *place);
    if place.is_none() && !MODULES.contains(&name.as_str()) {
        return;
    }
    let named =
        if place.is_some() { ["path", "location", "path_name"] } else { ["name", "mod_name", "fullname"] };
    let Some(argument) = argument(reader, node, place.unwrap_or(0), &named) else { return };
    let Some(specifier) = constant(reader, argument) else {
        let written = reader.text(argument);
        reader.computed_import(&written, node);
        return;
    };
    // What a path leads to is a file, whatever it is called.
    let specifier = match place {
        Some(_) if !specifier.contains('/') => format!("./{specifier}"),
        Some(_) => specifier,
        None => absolute(reader, node, specifier),
    };
    reader.import(ImportKind::Bind, specifier, Vec::new(), None, node);
}

/// `import_module(".x", "a.b")` is `a.b.x`. Without a package that is known it is one of the file's own.
fn absolute(reader: &Reader<'_>, node: Node<'_>, specifier: String) -> String {
    let dots = specifier.chars().take_while(|letter| *letter == '.').count();
    let package = argument(reader, node, 1, &["package"]).and_then(|package| constant(reader, package));
    let Some(package) = package.filter(|package| dots > 0 && !package.is_empty()) else { return specifier };
    let parts: Vec<&str> = package.split('.').collect();
    let kept = parts.get(..parts.len().saturating_sub(dots - 1)).unwrap_or_default().join(".");
    let rest = specifier.get(dots..).unwrap_or_default();
    if rest.is_empty() { kept } else { format!("{kept}.{rest}") }
}

/// The argument at a place, or with one of the names.
fn argument<'t>(reader: &Reader<'_>, call: Node<'t>, place: usize, names: &[&str]) -> Option<Node<'t>> {
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
    all.get(place).copied().filter(|child| child.kind() != "keyword_argument")
}

/// The text that an expression is, where that is known before the code runs.
pub(super) fn constant(reader: &Reader<'_>, expression: Node<'_>) -> Option<String> {
    let mut known = String::new();
    let mut rest = vec![expression];
    let mut parts = 0;
    while let Some(part) = rest.pop() {
        parts += 1;
        if parts > MAX_PARTS {
            return None;
        }
        match part.kind() {
            "string" => known.push_str(&literal(reader, part)?),
            "parenthesized_expression" => rest.push(part.named_child(0)?),
            "concatenated_string" => {
                let mut cursor = part.walk();
                let mut strings: Vec<Node<'_>> = part.named_children(&mut cursor).collect();
                strings.reverse();
                rest.extend(strings);
            }
            "binary_operator" if reader.field(part, "operator")? == "+" => {
                rest.push(part.child_by_field_name("right")?);
                rest.push(part.child_by_field_name("left")?);
            }
            _ => return None,
        }
    }
    Some(known)
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
