//! Python: modules that are loaded by calls (`importlib.import_module("a.b")`, `__import__("a")` and similar), and directories
//! where the file has modules searched (`sys.path`).

use std::sync::LazyLock;

use regex::bytes::Regex;
use tree_sitter::Node;

use super::ImportKind;
use super::constant::MAX_PARTS;
use super::python::{identifier, imported, module_of};
use super::python_values::{ANY, argument, constant, meaning, path};
use super::reader::{MAX_TEXT_BYTES, Reader};
use crate::ingest::language::normalise;

/// Nodes that the search for other names visits.
const MAX_NODES: usize = 2_000_000;

/// The way in which a call finds the module that it loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the name of a module, the first argument.
    Module,
    /// By the name of something in a module.
    Object,
    /// By the path of a file, the argument at this place.
    File(usize),
    /// As a text, which may be read from a file.
    Text,
    /// Nothing yet: the argument at this place is a directory, or a list of them, where modules are searched.
    Search(usize),
    /// Only known when the code runs.
    Computed,
}

/// Functions that load, by the end of their dotted names.
const WAYS: [(&str, Way); 26] = [
    ("__import__", Way::Module),
    ("import_module", Way::Module),
    ("run_module", Way::Module),
    ("find_spec", Way::Module),
    ("pkgutil.get_loader", Way::Module),
    ("pkgutil.find_loader", Way::Module),
    ("pkgutil.resolve_name", Way::Object),
    ("pydoc.locate", Way::Object),
    ("pydoc.safeimport", Way::Module),
    ("run_path", Way::File(0)),
    ("execfile", Way::File(0)),
    ("zipimporter", Way::File(0)),
    ("spec_from_file_location", Way::File(1)),
    ("load_source", Way::File(1)),
    ("SourceFileLoader", Way::File(1)),
    ("SourcelessFileLoader", Way::File(1)),
    ("imp.load_module", Way::File(2)),
    ("exec", Way::Text),
    ("eval", Way::Text),
    ("site.addsitedir", Way::Search(0)),
    ("sys.path.append", Way::Search(0)),
    ("sys.path.extend", Way::Search(0)),
    ("sys.path.insert", Way::Search(1)),
    ("__path__.append", Way::Computed),
    ("__path__.extend", Way::Computed),
    ("__path__.insert", Way::Computed),
];

/// Modules whose functions load others.
const LOADING: [&str; 7] = ["importlib", "builtins", "runpy", "pkgutil", "pydoc", "imp", "zipimport"];

/// The meaning of a name that means one function or another.
const UNKNOWN: &str = "importlib.*";

/// What such functions are found in besides.
const PLACES: [&str; 5] = ["importlib.util", "importlib.machinery", "sys", "sys.path", "site"];

/// Modules that make paths.
const OF_PATHS: [&str; 3] = ["os", "pathlib", "io"];

/// Where one of them may be written.
static ANY_LOADER: LazyLock<Regex> = LazyLock::new(|| {
    let functions = WAYS.iter().filter_map(|(name, _)| name.split('.').next());
    // Words with nothing to escape. In letters that are not ASCII they may be spelled otherwise.
    let words: Vec<String> = functions.chain(LOADING).map(|name| format!(r"\b_*{name}_*\b")).collect();
    #[expect(clippy::expect_used, reason = "the names are above")]
    Regex::new(&format!(r"(?-u)[\x80-\xff]|{}", words.join("|"))).expect("names are a pattern")
});

/// The way of a function by its dotted name.
fn way(meaning: &str) -> Option<Way> {
    if is_of(&LOADING, meaning) && meaning.split('.').any(|part| part == ANY) {
        return Some(Way::Computed);
    }
    let name = meaning.strip_prefix("builtins.").unwrap_or(meaning);
    let is_meant = |(own, way): &&(&str, Way)| {
        name == *own
            || *way != Way::Text && name.strip_suffix(own).is_some_and(|before| before.ends_with('.'))
    };
    WAYS.iter().find(is_meant).map(|(_, way)| *way)
}

/// Whether a dotted name is one of a function that loads, or of where one is found.
fn is_loading(meaning: &str) -> bool {
    way(meaning).is_some() || LOADING.contains(&meaning) || PLACES.contains(&meaning)
}

/// Whether a dotted name is one of these modules, or of something in them.
fn is_of(modules: &[&str], meaning: &str) -> bool {
    modules.contains(&meaning.split('.').next().unwrap_or_default())
}

/// Finds the names that a file gives to the functions that load modules. In most files none of them is written anywhere.
pub(super) fn prepare(reader: &mut Reader<'_>, root: Node<'_>) {
    reader.out.unparsed |= is_encoded(reader.source);
    if !ANY_LOADER.is_match(reader.source) {
        return;
    }
    reader.loaders.are_there = true;
    let (mut open, mut nodes, mut pairs) = (vec![root], 0, Vec::new());
    while let Some(node) = open.pop() {
        nodes += 1;
        if nodes > MAX_NODES {
            reader.out.unparsed = true;
            return;
        }
        match node.kind() {
            "import_statement" => {
                for (name, _) in imported(reader, node) {
                    let is_new = name.here != name.there;
                    name_loader(reader, name.here, Some(name.there).filter(|_| is_new));
                }
            }
            "import_from_statement" => {
                let module = module_of(reader, node).unwrap_or_default();
                for (name, _) in imported(reader, node) {
                    name_loader(reader, name.here, Some(format!("{module}.{}", name.there)));
                }
                let mut cursor = node.walk();
                if node.named_children(&mut cursor).any(|part| part.kind() == "wildcard_import") {
                    let names =
                        WAYS.iter().filter_map(|(own, _)| own.strip_prefix(&module)?.strip_prefix('.'));
                    for name in names.filter_map(|name| name.split('.').next()) {
                        name_loader(reader, name.to_owned(), Some(format!("{module}.{name}")));
                    }
                }
            }
            "assignment" | "named_expression" => pairs.extend(pair(reader, node)),
            _ => {}
        }
        let mut cursor = node.walk();
        open.extend(node.named_children(&mut cursor));
    }
    // A name may be given to what has its name from another one; each round finds one step of that.
    for _ in 0..4 {
        let mut is_done = true;
        for (name, value) in &pairs {
            let meaning = meaning(reader, *value);
            is_done &= !name_loader(reader, name.clone(), meaning);
        }
        if is_done {
            break;
        }
    }
}

/// The name and the value of `name = value`, where the value may be a function.
fn pair<'t>(reader: &Reader<'_>, node: Node<'t>) -> Option<(String, Node<'t>)> {
    let name = node.child_by_field_name("left").or_else(|| node.child_by_field_name("name"))?;
    let value = node.child_by_field_name("right").or_else(|| node.child_by_field_name("value"))?;
    let is_name = name.kind() == "identifier"
        && matches!(
            value.kind(),
            "identifier" | "attribute" | "call" | "subscript" | "parenthesized_expression"
        );
    is_name.then(|| (identifier(reader, name), value))
}

/// Notes what a name means. Returns whether that is new.
fn name_loader(reader: &mut Reader<'_>, here: String, meaning: Option<String>) -> bool {
    let matters = |meaning: &String| is_loading(meaning) || is_of(&OF_PATHS, meaning);
    let Some(meaning) = meaning.filter(matters).filter(|meaning| *meaning != here) else { return false };
    let meaning = match reader.loaders.names.get(&here) {
        Some(known) if *known == meaning || !is_loading(&meaning) => return false,
        // Which of them it means is only known when the code runs.
        Some(known) if is_loading(known) => UNKNOWN.to_owned(),
        _ => meaning,
    };
    reader.loaders.names.insert(here, meaning.clone()) != Some(meaning)
}

/// Notes how a node other than a call uses loaders: it adds a search directory, or passes a function on.
pub(super) fn note(reader: &mut Reader<'_>, node: Node<'_>, kind: &str) {
    if !reader.loaders.are_there {
        return;
    }
    let values: &[&str] = match kind {
        "argument_list"
        | "list"
        | "tuple"
        | "set"
        | "expression_list"
        | "return_statement"
        | "conditional_expression"
        | "boolean_operator"
        | "yield"
        | "list_splat" => &[],
        "keyword_argument" | "pair" | "default_parameter" | "typed_default_parameter" => &["value"],
        "lambda" | "list_comprehension" | "set_comprehension" | "generator_expression" => &["body"],
        "match_statement" => &["subject"],
        "assignment" | "augmented_assignment" => return assignment(reader, node),
        _ => return,
    };
    let mut cursor = node.walk();
    let given: Vec<Node<'_>> = match values.first() {
        Some(field) => node.child_by_field_name(field).into_iter().collect(),
        None => node.named_children(&mut cursor).collect(),
    };
    for value in given {
        give_away(reader, value);
    }
}

/// What a function loads that goes by a name that is not known here, is only known when the code runs.
fn give_away(reader: &mut Reader<'_>, value: Node<'_>) {
    let is_name = matches!(value.kind(), "identifier" | "attribute" | "call" | "subscript");
    if !(is_name || matches!(value.kind(), "parenthesized_expression" | "named_expression")) {
        return;
    }
    let Some(meaning) = meaning(reader, value) else { return };
    let is_loader = matches!(way(&meaning), Some(Way::Module | Way::Object | Way::File(_) | Way::Computed));
    if is_loader && (meaning == "__import__" || is_of(&LOADING, &meaning)) {
        let written = reader.text(value);
        reader.computed_import(&written, value);
    }
}

/// `sys.path = [..]`, `sys.path[0:0] = [..]`, `sys.path += [..]`, and a function that becomes a field.
fn assignment(reader: &mut Reader<'_>, node: Node<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
    else {
        return;
    };
    if !matches!(left.kind(), "identifier" | "attribute" | "subscript") {
        return;
    }
    let meaning = meaning(reader, left).unwrap_or_default();
    let name = meaning.strip_suffix(".*").unwrap_or(&meaning);
    if name == "sys.path" {
        search(reader, right);
    } else if name == "__path__" || name.ends_with(".__path__") {
        // `pkgutil.extend_path` adds directories of the same name alone.
        if !reader.text(right).contains("extend_path") {
            let written = reader.text(node);
            reader.computed_import(&written, node);
        }
    } else if left.kind() != "identifier" || name.starts_with("__") {
        // `__call__ = __import__`
        give_away(reader, right);
    }
}

/// Notes what a call loads, if it does.
pub(super) fn call(reader: &mut Reader<'_>, function: Node<'_>, node: Node<'_>) {
    if !reader.loaders.are_there {
        return;
    }
    let Some(meaning) = meaning(reader, function) else { return };
    // A method may have the name that a function has elsewhere in the file.
    let of_name = || {
        let meaning = reader.loaders.names.get(meaning.rsplit('.').next()?)?;
        way(meaning).filter(|way| matches!(way, Way::Module | Way::File(_)))
    };
    let Some(way) = way(&meaning).or_else(of_name) else { return };
    let (place, names): (usize, &[&str]) = match way {
        Way::Module | Way::Object => (0, &["name", "mod_name", "fullname"]),
        Way::File(place) => (place, &["path", "location", "path_name", "pathname", "archivepath"]),
        Way::Search(place) => (place, &["sitedir"]),
        Way::Text | Way::Computed => (0, &[]),
    };
    let Some(argument) = argument(reader, node, place, names) else { return };
    let specifier = match way {
        Way::Module if meaning.ends_with("__import__") => return import(reader, argument, node),
        Way::Module => constant(reader, argument).and_then(|name| absolute(reader, node, name)),
        // `module:object`, and else the last parts may be no modules.
        Way::Object => constant(reader, argument)
            .map(|name| name.split_once(':').map_or(name.as_str(), |(module, _)| module).to_owned()),
        Way::File(_) => path(reader, argument, MAX_PARTS).map(as_path),
        Way::Text => match opened(reader, argument) {
            _ if constant(reader, argument).is_some_and(|code| !code.contains("import")) => return,
            Some(file) => path(reader, file, MAX_PARTS).map(as_path),
            // An expression that is put together is mostly one of numbers.
            None if meaning.ends_with("eval") && constant(reader, argument).is_none() => return,
            None => None,
        },
        Way::Search(_) => return search(reader, argument),
        Way::Computed => None,
    };
    load(reader, specifier, argument, node);
}

/// Notes an import of what is known, or of what is only known when the code runs.
fn load(reader: &mut Reader<'_>, specifier: Option<String>, argument: Node<'_>, node: Node<'_>) {
    match specifier {
        Some(specifier) => {
            if reader.loaders.loaded.insert(specifier.clone()) {
                reader.import(ImportKind::Bind, specifier, Vec::new(), None, node);
            }
        }
        None => {
            let written = reader.text(argument);
            reader.computed_import(&written, node);
        }
    }
}

/// What a path leads to is a file, whatever it is called.
fn as_path(path: String) -> String {
    if path.contains('/') { path } else { format!("./{path}") }
}

/// `__import__("a", fromlist=["b"], level=1)` is `from .a import b`.
fn import(reader: &mut Reader<'_>, name: Node<'_>, node: Node<'_>) {
    let level =
        argument(reader, node, 4, &["level"]).map_or(Some(0), |level| reader.text(level).parse().ok());
    let dots = level.filter(|level| *level < MAX_PARTS).map(|level: usize| ".".repeat(level));
    let module = dots.zip(constant(reader, name)).map(|(dots, name)| dots + &name);
    let list = argument(reader, node, 3, &["fromlist"]).filter(|list| list.kind() != "none");
    let names = list.map_or(Some(Vec::new()), |list| {
        let mut cursor = list.walk();
        let is_list = matches!(list.kind(), "list" | "tuple");
        let items = list.named_children(&mut cursor).filter(|item| item.kind() != "comment");
        is_list.then(|| items.map(|item| constant(reader, item)).collect::<Option<Vec<String>>>())?
    });
    let Some((module, names)) = module.zip(names) else { return load(reader, None, name, node) };
    let end = if module.ends_with('.') { "" } else { "." };
    for part in names.iter().filter(|part| !matches!(part.as_str(), "" | "*")) {
        load(reader, Some(format!("{module}{end}{part}")), name, node);
    }
    load(reader, Some(module), name, node);
}

/// `import_module(".x", "a.b")` is `a.b.x`. Without a package it is one of the file's own.
fn absolute(reader: &Reader<'_>, node: Node<'_>, specifier: String) -> Option<String> {
    let dots = specifier.chars().take_while(|letter| *letter == '.').count();
    let Some(package) = argument(reader, node, 1, &["package"]).filter(|_| dots > 0) else {
        return Some(specifier);
    };
    match reader.text(package).as_str() {
        "__package__" | "__spec__.parent" => return Some(specifier),
        // The name of a module is that of a package only in an `__init__.py`.
        "__name__" if dots == 1 => return Some(specifier),
        _ => {}
    }
    let package = constant(reader, package).filter(|package| !package.is_empty())?;
    let parts: Vec<&str> = package.split('.').collect();
    let kept = parts.get(..parts.len().checked_sub(dots - 1)?)?.join(".");
    let rest = specifier.get(dots..).unwrap_or_default();
    Some(if rest.is_empty() { kept } else { format!("{kept}.{rest}") })
}

/// The path of the file that is opened in an expression: `open("x.py").read()`, `Path("x.py").read_text()`.
fn opened<'t>(reader: &Reader<'_>, expression: Node<'t>) -> Option<Node<'t>> {
    let mut open = vec![expression];
    for _ in 0..MAX_PARTS {
        let node = open.pop()?;
        if node.kind() == "call"
            && let Some(function) = node.child_by_field_name("function")
        {
            let name = meaning(reader, function).unwrap_or_default();
            match name.rsplit('.').next() {
                Some("read_text" | "read_bytes") => return function.child_by_field_name("object"),
                Some("open")
                    if function.kind() == "attribute" && argument(reader, node, 0, &[]).is_none() =>
                {
                    return function.child_by_field_name("object");
                }
                Some("open" | "open_code") => return argument(reader, node, 0, &["file", "path"]),
                _ => {}
            }
        }
        let mut cursor = node.walk();
        open.extend(node.named_children(&mut cursor));
    }
    None
}

/// Notes the directories of an expression as places where modules are searched.
fn search(reader: &mut Reader<'_>, expression: Node<'_>) {
    let mut open = vec![expression];
    while let Some(part) = open.pop() {
        let name = meaning(reader, part).unwrap_or_default();
        if matches!(name.as_str(), "sys.path" | "sys.path.*") {
            continue;
        }
        let known = path(reader, part, MAX_PARTS).filter(|path| !path.starts_with('/'));
        let length = reader.loaders.directories.len();
        match known {
            Some(path) if length + path.len() < MAX_TEXT_BYTES && !path.contains('\n') => {
                // Above the root may be the root again, by the name of its directory.
                if normalise("", &path).is_none() {
                    reader.computed_import(&path, part);
                }
                reader.loaders.directories += &format!("{path}\n");
            }
            None if matches!(
                part.kind(),
                "list" | "tuple" | "list_splat" | "parenthesized_expression" | "binary_operator"
            ) =>
            {
                let mut cursor = part.walk();
                open.extend(part.named_children(&mut cursor).filter(|child| child.kind() != "comment"));
            }
            _ => {
                let written = reader.text(part);
                reader.computed_import(&written, part);
            }
        }
    }
}

/// Whether a comment at the beginning of a file says that it is in an encoding in which other letters may be code.
fn is_encoded(source: &[u8]) -> bool {
    static ENCODING: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::expect_used, reason = "a pattern that does not change")]
        Regex::new(
            r"(?-u)\A(?:\xEF\xBB\xBF)?(?:[ \t\f]*(?:#[^\n]*)?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)",
        )
        .expect("a pattern")
    });
    let of_letters = ["utf-8", "utf8", "ascii", "us-ascii", "latin", "iso-8859", "iso8859", "cp125", "koi8"];
    ENCODING.captures(source).and_then(|found| found.get(1)).is_some_and(|name| {
        let name = String::from_utf8_lossy(name.as_bytes()).to_ascii_lowercase().replace('_', "-");
        !of_letters.iter().any(|known| name.starts_with(known))
    })
}

/// Every import of a file has the directories where the file has modules searched.
pub(super) fn finish(reader: &mut Reader<'_>) {
    if reader.loaders.directories.is_empty() {
        return;
    }
    for import in &mut reader.out.imports {
        let is_absolute = !import.specifier.starts_with('.') && !import.specifier.contains('/');
        if import.kind == ImportKind::Bind && is_absolute {
            import.scope.clone_from(&reader.loaders.directories);
        }
    }
}
