//! TypeScript and JavaScript: modules that are loaded by calls, `require` under any name among them.

use std::collections::HashMap;

use tree_sitter::Node;

use super::javascript_strings::constant;
use super::reader::Reader;
use super::{ImportKind, Name};

/// Nodes that the search for other names of `require` visits; a file of two megabytes has fewer.
const MAX_NODES: usize = 2_000_000;

/// Patterns of one file; more are taken as what is only known when the code runs.
const MAX_PATTERNS: usize = 64;

/// What makes a function like `require`.
const CREATOR: &str = "createRequire";

/// Other names that a file gives to what loads modules.
#[derive(Debug, Default)]
pub(super) struct Loaders {
    requires: Vec<String>,
    creators: Vec<String>,
    /// Of Python: the name here, and the function that it means.
    functions: HashMap<String, String>,
}

impl Loaders {
    pub(super) fn add(&mut self, here: String, function: String) {
        self.functions.insert(here, function);
    }

    /// The function that a name means here.
    pub(super) fn meaning(&self, here: &str) -> Option<&str> {
        self.functions.get(here).map(String::as_str)
    }
}

/// Finds the names by which `require` and `createRequire` go in a file, wherever they are given.
pub(super) fn prepare(reader: &mut Reader<'_>, root: Node<'_>) {
    let mut pairs = Vec::new();
    let mut open = vec![root];
    let mut nodes = 0;
    while let Some(node) = open.pop() {
        nodes += 1;
        if nodes > MAX_NODES {
            reader.out.unparsed = true;
            return;
        }
        match node.kind() {
            "import_specifier" if reader.field(node, "name").is_some_and(|name| name == CREATOR) => {
                reader.loaders.creators.extend(reader.field(node, "alias"));
            }
            "variable_declarator" => pairs.extend(pair(node, "name", "value")),
            "assignment_expression" => pairs.extend(pair(node, "left", "right")),
            "pair_pattern" if reader.field(node, "key").is_some_and(|name| name == CREATOR) => {
                reader.loaders.creators.extend(reader.field(node, "value"));
            }
            _ => {}
        }
        let mut cursor = node.walk();
        open.extend(node.named_children(&mut cursor));
    }
    // A name may be given to what has its name from another one; each round finds one step of that.
    for _ in 0..4 {
        let before = reader.loaders.requires.len() + reader.loaders.creators.len();
        for (name, value) in &pairs {
            let name = reader.text(*name);
            if is_require(reader, *value) {
                add(&mut reader.loaders.requires, name);
            } else if is_creator(reader, *value) {
                add(&mut reader.loaders.creators, name);
            }
        }
        if reader.loaders.requires.len() + reader.loaders.creators.len() == before {
            break;
        }
    }
}

fn pair<'t>(node: Node<'t>, name: &str, value: &str) -> Option<(Node<'t>, Node<'t>)> {
    let name = node.child_by_field_name(name).filter(|name| name.kind() == "identifier")?;
    Some((name, node.child_by_field_name(value)?))
}

fn add(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}

/// An expression without what means nothing around it; `(0, f)` is `f`.
fn plain(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    // Each step goes one level down.
    loop {
        let inner = match node.kind() {
            "parenthesized_expression" | "as_expression" | "satisfies_expression" | "non_null_expression" => {
                node.named_child(0)
            }
            "sequence_expression" => u32::try_from(node.named_child_count())
                .ok()
                .and_then(|count| node.named_child(count.checked_sub(1)?)),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => return node,
        }
    }
}

/// The name of a member, written with a dot or in brackets.
fn member(reader: &Reader<'_>, node: Node<'_>) -> Option<String> {
    match node.kind() {
        "member_expression" => reader.field(node, "property"),
        "subscript_expression" => constant(reader, node.child_by_field_name("index")?),
        _ => None,
    }
}

/// Whether a value is `require`, under whatever name.
fn is_require(reader: &Reader<'_>, value: Node<'_>) -> bool {
    let value = plain(value);
    match value.kind() {
        "identifier" => {
            let name = reader.text(value);
            name == "require" || reader.loaders.requires.contains(&name)
        }
        "call_expression" => {
            value.child_by_field_name("function").is_some_and(|function| is_creator(reader, function))
        }
        // `module.require`, `process.mainModule.require`.
        _ => member(reader, value).is_some_and(|name| name == "require"),
    }
}

fn is_creator(reader: &Reader<'_>, value: Node<'_>) -> bool {
    let value = plain(value);
    if value.kind() == "identifier" {
        let name = reader.text(value);
        return name == CREATOR || reader.loaders.creators.contains(&name);
    }
    member(reader, value).is_some_and(|name| name == CREATOR)
}

fn is_import_meta(reader: &Reader<'_>, node: Node<'_>) -> bool {
    reader.text(node).split_whitespace().collect::<String>() == "import.meta"
}

/// How a call finds what it loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As a module: `./x` is a file, `x` a package.
    Module,
    /// As an address relative to the file: `x` and `./x` are the same.
    Address,
    /// A pattern, or a list of them, for many files.
    Pattern,
    /// Files that are only known when the code runs.
    Computed,
}

/// Whether a call loads what its first argument names.
fn way(reader: &Reader<'_>, function: Node<'_>) -> Option<Way> {
    let function = plain(function);
    if is_require(reader, function) {
        return Some(Way::Module);
    }
    if function.kind() == "identifier" {
        return (reader.text(function) == "importScripts").then_some(Way::Address);
    }
    let object = function.child_by_field_name("object");
    let on_meta = || object.is_some_and(|object| is_import_meta(reader, object));
    let on_require = || object.is_some_and(|object| is_require(reader, object));
    let on_worker = || object.is_some_and(|object| reader.text(object).ends_with("serviceWorker"));
    match member(reader, function)?.as_str() {
        "resolve" if on_meta() || on_require() => Some(Way::Module),
        "glob" | "globEager" if on_meta() => Some(Way::Pattern),
        "context" if on_require() => Some(Way::Computed),
        "register" if on_worker() => Some(Way::Address),
        _ => None,
    }
}

/// The specifier, when the node is a call of `require` or a similar function with a text that is known.
pub(super) fn required(reader: &Reader<'_>, node: Node<'_>) -> Option<String> {
    if node.kind() != "call_expression" {
        return None;
    }
    let way = way(reader, node.child_by_field_name("function")?)
        .filter(|way| !matches!(way, Way::Pattern | Way::Computed))?;
    Some(address(way, constant(reader, argument(node, 0)?)?))
}

/// Notes what a call loads, where it is not a declaration's. Returns whether it loads anything.
pub(super) fn call(reader: &mut Reader<'_>, node: Node<'_>) -> bool {
    let Some(function) = node.child_by_field_name("function") else { return false };
    if let Some(way) = way(reader, function) {
        load(reader, node, 0, way);
        return true;
    }
    // `fork("./x")` of a child process, `module.register("./x", import.meta.url)`.
    let name = match function.kind() {
        "identifier" => Some(reader.text(function)),
        _ => member(reader, function),
    };
    let first = argument(node, 0).and_then(|first| constant(reader, first));
    let is_path = first.as_deref().is_some_and(|path| path.starts_with(['.', '/']));
    let is_known = match name.as_deref() {
        Some("fork") => is_path,
        Some("register") => argument(node, 1).is_some_and(|base| is_own_address(reader, base)),
        _ => false,
    };
    if is_known {
        load(reader, node, 0, Way::Module);
    }
    is_known
}

/// Notes what `new Worker("x")` and `new URL("x", import.meta.url)` lead to.
pub(super) fn creation(reader: &mut Reader<'_>, node: Node<'_>) {
    let Some(constructor) = node.child_by_field_name("constructor") else { return };
    let name = match constructor.kind() {
        "identifier" => Some(reader.text(constructor)),
        _ => member(reader, constructor),
    };
    match name.as_deref() {
        Some("URL") if argument(node, 1).is_some_and(|base| is_own_address(reader, base)) => {
            load(reader, node, 0, Way::Address);
        }
        Some("Worker" | "SharedWorker") => {
            // What is an address is noted where it is made.
            let is_address = argument(node, 0).is_some_and(|first| plain(first).kind() == "new_expression");
            if !is_address {
                load(reader, node, 0, Way::Address);
            }
        }
        _ => {}
    }
}

/// The address of the file itself.
fn is_own_address(reader: &Reader<'_>, node: Node<'_>) -> bool {
    let text: String = reader.text(node).split_whitespace().collect();
    matches!(
        text.as_str(),
        "import.meta.url" | "__filename" | "document.baseURI" | "self.location" | "location.href"
    )
}

/// An argument of a call, without comments.
pub(super) fn argument(call: Node<'_>, index: usize) -> Option<Node<'_>> {
    let arguments = call.child_by_field_name("arguments")?;
    let mut cursor = arguments.walk();
    arguments.named_children(&mut cursor).filter(|child| child.kind() != "comment").nth(index)
}

fn address(way: Way, specifier: String) -> String {
    let is_relative = !specifier.starts_with(['.', '/', '#']) && !specifier.contains(':');
    if way == Way::Address && is_relative && !specifier.is_empty() {
        format!("./{specifier}")
    } else {
        specifier
    }
}

/// Notes an argument as an import; one that is only known when the code runs is marked.
pub(super) fn load_module(reader: &mut Reader<'_>, node: Node<'_>) {
    load(reader, node, 0, Way::Module);
}

fn load(reader: &mut Reader<'_>, node: Node<'_>, index: usize, way: Way) {
    let Some(first) = argument(node, index) else { return };
    match (way, constant(reader, first)) {
        (Way::Pattern, _) => patterns(reader, node, first),
        (Way::Module | Way::Address, Some(specifier)) => {
            reader.import(ImportKind::Bind, address(way, specifier), Vec::new(), None, node);
        }
        (_, pattern) => {
            let written = pattern.unwrap_or_else(|| reader.text(first));
            reader.computed_import(&written, node);
        }
    }
}

/// `import.meta.glob("./a/*.ts")`, or with a list of patterns, of which those with `!` leave out what the others mean.
fn patterns(reader: &mut Reader<'_>, node: Node<'_>, first: Node<'_>) {
    let list = plain(first);
    let items: Vec<Node<'_>> = match list.kind() {
        "array" => list.named_children(&mut list.walk()).filter(|item| item.kind() != "comment").collect(),
        _ => vec![first],
    };
    let texts: Vec<Option<String>> = items.iter().map(|item| constant(reader, *item)).collect();
    // Another base makes the patterns mean other files.
    let has_base = argument(node, 1).is_some_and(|options| reader.text(options).contains("base"));
    let is_known = !has_base && texts.iter().all(Option::is_some);
    if !is_known || reader.count_of(ImportKind::Pattern) + texts.len() > MAX_PATTERNS {
        let written = reader.text(first);
        return reader.computed_import(&written, node);
    }
    let (without, wanted): (Vec<String>, Vec<String>) =
        texts.into_iter().flatten().partition(|pattern| pattern.starts_with('!'));
    let without: Vec<Name> =
        without.into_iter().map(|pattern| Name { there: pattern, here: String::new() }).collect();
    for pattern in wanted {
        reader.import(ImportKind::Pattern, pattern, without.clone(), None, node);
    }
}
