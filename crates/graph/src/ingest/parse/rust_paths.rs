//! Rust: paths that stand in code and not in a `use`, also where they are tokens of a macro.

use std::collections::HashSet;

use tree_sitter::Node;

use super::reader::{Reader, Scope};
use super::rust_use::MAX_GROUPS;
use super::{ImportKind, Kind, Name, Parse, Path};

/// A path as it means: without comments, type arguments and blanks. None where it begins in a type that is written out.
pub(super) fn flat(reader: &Reader<'_>, node: Node<'_>) -> Option<String> {
    let mut names = Vec::new();
    let mut node = node;
    loop {
        match reader.kind(node) {
            "scoped_identifier" | "scoped_type_identifier" => {
                names.push(reader.field(node, "name").unwrap_or_default());
                match node.child_by_field_name("path") {
                    Some(path) => node = path,
                    None => {
                        names.push(String::new());
                        break;
                    }
                }
            }
            "generic_type" => node = node.child_by_field_name("type")?,
            "bracketed_type" => return None,
            _ => {
                names.push(word(reader, node));
                break;
            }
        }
    }
    names.reverse();
    Some(reader.kept_whole(&names.join("::")))
}

/// A name, where `$crate` is the crate: macros are mostly used where they are defined.
fn word(reader: &Reader<'_>, node: Node<'_>) -> String {
    let text = reader.text(node);
    if text == "$crate" { "crate".to_owned() } else { text }
}

/// A path in code.
pub(super) fn path(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) {
    if let Some(written) = flat(reader, node) {
        add(reader, written, None, node, scope);
    }
}

/// The path of a macro that is called: a macro may be in another file than its path says.
pub(super) fn called(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) {
    if let Some(written) = flat(reader, node).filter(|written| written.contains("::")) {
        add(reader, format!("{written}!"), None, node, scope);
    }
}

/// A macro that is defined here, which `#[macro_export]` gives to the root of the crate.
pub(super) fn defined(reader: &mut Reader<'_>, name: &str, node: Node<'_>, scope: &Scope) {
    add(reader, format!("self::{name}"), Some(format!("{name}!")), node, scope);
}

fn add(reader: &mut Reader<'_>, written: String, here: Option<String>, node: Node<'_>, scope: &Scope) {
    // What a macro puts in is known when it is the last name alone.
    if written.rsplit_once("::").is_none_or(|(module, _)| !module.contains('$')) {
        let (line, scope) = (Reader::line(node), scope.module.to_string());
        reader.path(Path { written, here, line, scope });
    } else if matches!(written.split("::").next(), Some("crate" | "self" | "super")) {
        reader.computed_import(&written, node);
    }
}

/// The content of a string literal without escapes.
pub(super) fn literal(reader: &Reader<'_>, node: Node<'_>) -> Option<String> {
    if !is_literal(reader.kind(node)) {
        return None;
    }
    let mut cursor = node.walk();
    let mut parts = node.named_children(&mut cursor);
    match (parts.next(), parts.next()) {
        (Some(content), None) if content.kind() == "string_content" => Some(reader.whole_text(content)),
        _ => None,
    }
}

fn is_literal(kind: &str) -> bool {
    matches!(kind, "string_literal" | "raw_string_literal")
}

/// A file that is taken by its path: `include!("name.rs")`.
pub(super) fn included(reader: &mut Reader<'_>, path: String, node: Node<'_>, scope: &Scope) {
    let names = vec![Name::new("path", path.clone())];
    reader.scoped_import(ImportKind::Part, path, names, None, node, scope);
}

/// What is within an outermost pair of brackets, one after the other, with the brackets.
fn leaves<'t>(reader: &Reader<'_>, tree: Node<'t>) -> Vec<Node<'t>> {
    let mut leaves = Vec::new();
    let mut cursor = tree.walk();
    let mut depth = 0_usize;
    loop {
        let node = cursor.node();
        let kind = reader.kind(node);
        if matches!(kind, "token_tree" | "token_repetition") && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        if !matches!(kind, "line_comment" | "block_comment") {
            leaves.push(node);
        }
        while !cursor.goto_next_sibling() {
            depth = depth.saturating_sub(1);
            if depth == 0 || !cursor.goto_parent() {
                return leaves;
            }
        }
    }
}

/// Reads the tokens of a macro: its paths, what it includes, and the modules that it declares. `is_attribute`: strings may be
/// paths too, as those who derive something are given them so.
pub(super) fn tokens<'t>(reader: &mut Reader<'t>, tree: Node<'t>, scope: &Scope, is_attribute: bool) {
    let leaves = leaves(reader, tree);
    let mut tokens = Tokens { reader, leaves: &leaves, at: 0, scope: scope.clone() };
    // The modules that are written out around, each with the brackets that were open.
    let mut around: Vec<(usize, Scope)> = Vec::new();
    let mut open = 0_usize;
    while let Some(node) = tokens.node(0) {
        match tokens.kind(0) {
            "{" => open += 1,
            "}" => {
                open = open.saturating_sub(1);
                if let Some((_, scope)) = around.pop_if(|(at, _)| *at == open) {
                    tokens.scope = scope;
                }
            }
            "mod" if tokens.kind(1) == "identifier" && tokens.kind(2) == "{" => {
                let name = tokens.text(1);
                let inner = tokens.scope.in_module(name.trim_start_matches("r#"), None);
                around.push((open, std::mem::replace(&mut tokens.scope, inner)));
            }
            "mod" if tokens.kind(1) == "identifier" && tokens.kind(2) == ";" => tokens.module(),
            "use" => {
                tokens.at += 1;
                tokens.path("", true, 0);
                continue;
            }
            "identifier" if tokens.kind(1) == "!" && is_include(&tokens.text(0)) => tokens.include(),
            kind if is_attribute && is_literal(kind) => {
                let text = literal(tokens.reader, node).filter(|text| super::names::is_name(text));
                if let Some(text) = text.filter(|text| text.contains("::")) {
                    add(tokens.reader, text, None, node, &tokens.scope);
                }
            }
            "::" => {
                let before = tokens.at.checked_sub(1).and_then(|at| leaves.get(at));
                let is_rest = before.is_some_and(|before| matches!(before.kind(), ">" | ">>" | ")" | "]"));
                if is_rest || !tokens.is_word(1) {
                    tokens.at += 1;
                    while tokens.is_word(0) || (tokens.kind(0) == "::" && tokens.is_word(1)) {
                        tokens.at += 1;
                    }
                } else {
                    tokens.path("", false, 0);
                }
                continue;
            }
            _ if node.is_named() && tokens.is_word(0) && tokens.kind(1) == "::" => {
                tokens.path("", false, 0);
                continue;
            }
            _ => {}
        }
        tokens.at += 1;
    }
}

/// Leaves out the paths that begin with a type that no other file can give: `Vec::new`. Crates and modules are in small
/// letters, but for those that have a name here or come with all names of a module.
pub(super) fn keep(parse: &mut Parse) {
    let (imports, symbols) = (&parse.imports, &parse.symbols);
    let names = imports.iter().flat_map(|import| &import.names);
    if parse.paths.is_empty()
        || names.clone().any(|name| name.there == "*")
        || parse.paths.iter().any(gives_name)
    {
        return;
    }
    let mut known: HashSet<String> = names.map(|name| name.here.clone()).collect();
    known.extend(imports.iter().filter_map(|import| import.module.clone()));
    known.extend(
        symbols.iter().filter(|symbol| symbol.kind == Kind::Module).map(|symbol| symbol.name.clone()),
    );
    parse.paths.retain(|path| {
        let head = path.written.split("::").next().unwrap_or_default();
        head != "Self"
            && (!head.starts_with(|first: char| first.is_ascii_uppercase()) || known.contains(head))
    });
}

/// Whether it is a `use` in a macro.
fn gives_name(path: &Path) -> bool {
    path.here.as_ref().is_some_and(|here| !here.ends_with('!'))
}

pub(super) fn is_include(name: &str) -> bool {
    matches!(name, "include" | "include_str" | "include_bytes")
}

struct Tokens<'r, 'l, 't> {
    reader: &'r mut Reader<'t>,
    leaves: &'l [Node<'t>],
    at: usize,
    scope: Scope,
}

impl<'t> Tokens<'_, '_, 't> {
    fn node(&self, ahead: usize) -> Option<Node<'t>> {
        self.leaves.get(self.at + ahead).copied()
    }

    fn kind(&self, ahead: usize) -> &'t str {
        self.node(ahead).map_or("", |node| self.reader.kind(node))
    }

    fn text(&self, ahead: usize) -> String {
        self.node(ahead).map(|node| word(self.reader, node)).unwrap_or_default()
    }

    fn is_word(&self, ahead: usize) -> bool {
        self.node(ahead).is_some_and(|node| {
            let text = self.reader.source.get(node.start_byte()..node.end_byte()).unwrap_or_default();
            let is_name = text
                .first()
                .is_some_and(|first| first.is_ascii_alphabetic() || matches!(first, b'_' | b'$' | 128..));
            is_name && text != b"$" && text != b"_" && !self.reader.kind(node).ends_with("literal")
        })
    }

    /// A path, or a tree of those that begin with the same names.
    fn path(&mut self, begin: &str, is_use: bool, depth: usize) {
        let Some(first) = self.node(0) else { return };
        let mut path = begin.to_owned();
        if self.kind(0) == "::" {
            self.at += 1;
            if !is_use {
                path.push_str("::");
            }
        }
        loop {
            match self.kind(0) {
                "{" if depth < MAX_GROUPS => return self.group(&path, is_use, depth),
                "{" => return self.reader.cut(),
                "*" if is_use => {
                    self.at += 1;
                    return add(self.reader, path, Some("*".to_owned()), first, &self.scope);
                }
                _ if self.is_word(0) => {
                    let name = self.text(0);
                    if name != "self" || path.is_empty() {
                        let colons = if path.is_empty() || path.ends_with(':') { "" } else { "::" };
                        path = self.reader.kept_whole(&format!("{path}{colons}{name}"));
                    }
                    self.at += 1;
                }
                _ => break,
            }
            if self.kind(0) != "::" {
                break;
            }
            self.at += 1;
        }
        let mut here = path.rsplit("::").next().unwrap_or_default().to_owned();
        if is_use && self.kind(0) == "as" {
            here = self.text(1);
            self.at += 2;
        }
        if !is_use && self.kind(0) == "!" && matches!(self.kind(1), "(" | "[" | "{") {
            path.push('!');
        }
        if is_use || path.contains("::") {
            add(self.reader, path, is_use.then_some(here), first, &self.scope);
        }
    }

    fn group(&mut self, path: &str, is_use: bool, depth: usize) {
        self.at += 1;
        while self.node(0).is_some() && self.kind(0) != "}" {
            let before = self.at;
            self.path(path, is_use, depth + 1);
            if self.at == before || self.kind(0) == "," {
                self.at += 1;
            }
        }
        self.at += 1;
    }

    /// `mod name;`, which a macro may leave out: without its file it does not count as unresolved.
    fn module(&mut self) {
        let (Some(node), name) = (self.node(0), self.text(1)) else { return };
        let before = self.leaves.get(..self.at).unwrap_or_default();
        let begin =
            before.iter().rposition(|token| matches!(token.kind(), ";" | "{" | "}")).map_or(0, |at| at + 1);
        let mut attributes = PathAttributes { is_optional: true, ..PathAttributes::default() };
        attributes.add(self.reader, before.get(begin..).unwrap_or_default());
        attributes.declare(self.reader, name.trim_start_matches("r#"), node, &self.scope);
    }

    fn include(&mut self) {
        let (Some(node), Some(name)) = (self.node(0), self.node(3)) else { return };
        let end = if self.kind(4) == "," { 5 } else { 4 };
        let path = literal(self.reader, name).filter(|_| matches!(self.kind(end), ")" | "]" | "}"));
        if let Some(path) = path {
            included(self.reader, path, node, &self.scope);
        } else if self.text(0) == "include" {
            let rest = self.reader.source.get(name.start_byte()..).unwrap_or_default();
            let line = rest.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
            let written = String::from_utf8_lossy(line.get(..120).unwrap_or(line)).into_owned();
            self.reader.computed_import(&format!("include!({written}"), node);
        }
    }
}

/// What `#[path = "name.rs"]` before a module says, alone or within `cfg_attr`.
#[derive(Default)]
pub(super) struct PathAttributes {
    paths: Vec<String>,
    /// Whether one of them holds whatever the configuration is.
    is_always: bool,
    /// Whether one of them is not plain text.
    is_computed: bool,
    /// Whether the module itself may not be there.
    is_optional: bool,
}

impl PathAttributes {
    /// The attributes right before a module, and those at the beginning of its body.
    pub(super) fn of(reader: &Reader<'_>, node: Node<'_>) -> Self {
        let mut found = Self::default();
        let mut before = node.prev_named_sibling();
        while let Some(sibling) = before {
            match reader.kind(sibling) {
                "attribute_item" => found.read(reader, sibling),
                "line_comment" | "block_comment" => {}
                _ => break,
            }
            before = sibling.prev_named_sibling();
        }
        if let Some(body) = node.child_by_field_name("body") {
            let mut cursor = body.walk();
            let inner = body.named_children(&mut cursor);
            for attribute in inner.filter(|child| reader.kind(*child) == "inner_attribute_item") {
                found.read(reader, attribute);
            }
        }
        found
    }

    fn read(&mut self, reader: &Reader<'_>, item: Node<'_>) {
        let mut cursor = item.walk();
        let Some(attribute) = item.named_children(&mut cursor).find(|child| child.kind() == "attribute")
        else {
            return;
        };
        let name = attribute.named_child(0).map(|name| reader.text(name)).unwrap_or_default();
        match name.trim_start_matches("r#") {
            "path" => {
                self.is_always = true;
                let value = attribute.child_by_field_name("value");
                match value.and_then(|value| literal(reader, value)) {
                    Some(path) => self.paths.push(path),
                    None => self.is_computed = true,
                }
            }
            "cfg_attr" => {
                if let Some(arguments) = attribute.child_by_field_name("arguments") {
                    self.add(reader, &leaves(reader, arguments));
                }
            }
            _ => {}
        }
    }

    /// `path = "name.rs"` among tokens.
    fn add(&mut self, reader: &Reader<'_>, tokens: &[Node<'_>]) {
        for part in tokens.windows(3) {
            let [name, equals, value] = part else { continue };
            if reader.text(*name).trim_start_matches("r#") != "path" || equals.kind() != "=" {
                continue;
            }
            match literal(reader, *value) {
                Some(path) => self.paths.push(path),
                None => self.is_computed = true,
            }
        }
    }

    /// The directory of the modules in one that is written out, as seen from the directory of the file.
    pub(super) fn directory(&self) -> Option<&str> {
        self.paths.first().map(String::as_str)
    }

    /// Declares a module in a file of its own: one import for each file that it may be.
    pub(super) fn declare(self, reader: &mut Reader<'_>, name: &str, node: Node<'_>, scope: &Scope) {
        let place = scope.place.as_deref().map(|place| Name::new("directory", place));
        let is_plain = self.paths.is_empty() && !self.is_computed;
        let mut files: Vec<Option<Name>> =
            self.paths.into_iter().map(|path| Some(Name::new("path", path))).collect();
        if !self.is_always {
            files.push((!is_plain || self.is_optional).then(|| Name::new("maybe", "")));
        }
        for file in files {
            let names = file.into_iter().chain(place.clone()).collect();
            let (specifier, here) = (name.to_owned(), Some(name.to_owned()));
            reader.scoped_import(ImportKind::Part, specifier, names, here, node, scope);
        }
        if self.is_computed {
            reader.computed_import(&format!("#[path] mod {name}"), node);
        }
    }
}
