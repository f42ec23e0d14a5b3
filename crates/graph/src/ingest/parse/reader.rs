//! The walk through a syntax tree that all languages share.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use oxc::span::Span;
use tgp_text::{LineCol, LineEnds, LineIndex};
use tree_sitter::Node;

use super::names::{Grammar, Names, Role};
use super::{Call, Heritage, Import, ImportKind, Kind, Language, MAX_ITEMS, Name, Parse, Path, Symbol};

/// Deeper code is not read. People stop at thirty; what a machine nests deeper could exhaust the stack.
const MAX_DEPTH: usize = 400;

/// Names and specifiers are cut after this many bytes, so that a hostile file cannot fill the store.
pub(super) const MAX_TEXT_BYTES: usize = 512;

/// What is kept of an expression that names a module.
const MAX_WRITTEN_CHARS: usize = 120;

/// The position of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Names of the containers, joined; empty at the top.
    pub(super) prefix: Rc<str>,
    pub(super) container: Option<u32>,
    /// The function or method whose body this is.
    pub(super) function: Option<u32>,
    /// The symbol whose definition this is, where that is no body: a struct with its fields.
    pub(super) owner: Option<u32>,
    /// The names that are bound here.
    pub(super) frame: u32,
    /// Whether the members of a type are here.
    pub(super) members: bool,
    pub(super) exported: bool,
    /// Whether this is the body of a function without a name.
    pub(super) nested: bool,
    /// Whether what is imported here is only used for types.
    pub(super) types: bool,
    /// The modules of Rust that are written out around, joined.
    pub(super) module: Rc<str>,
    /// The directory of their files as seen from the one of this file, where `#[path]` gives them one.
    pub(super) place: Option<Rc<str>>,
    /// Whether the paths here were read with what is around them.
    pub(super) is_read: bool,
    /// How many nodes are above.
    depth: usize,
}

impl Scope {
    /// At the top level, or in a module that is written out.
    pub(super) fn is_top(&self) -> bool {
        self.function.is_none() && !self.members && !self.nested
    }

    pub(super) fn hidden(&self) -> Self {
        Self { exported: false, ..self.clone() }
    }

    /// Where what is imported is only used for types.
    pub(super) fn of_types(&self) -> Self {
        Self { types: true, ..self.clone() }
    }

    /// Inside a module of Rust that is written out.
    pub(super) fn in_module(&self, name: &str, place: Option<String>) -> Self {
        let module =
            if self.module.is_empty() { name.to_owned() } else { format!("{}::{name}", self.module) };
        Self { module: module.into(), place: place.map(Into::into), ..self.clone() }
    }

    pub(super) fn read(&self, is_read: bool) -> Self {
        Self { is_read, ..self.clone() }
    }

    /// Inside a function without a name.
    pub(super) fn nested(&self) -> Self {
        Self { nested: true, members: false, exported: false, ..self.clone() }
    }

    /// Inside the definition of `symbol`, which has no body.
    pub(super) fn definition(&self, symbol: Option<u32>) -> Self {
        Self { owner: symbol.or(self.owner), ..self.clone() }
    }

    /// Inside the body of `symbol`.
    pub(super) fn body(&self, symbol: Option<u32>) -> Self {
        Self {
            function: symbol.or(self.function),
            owner: None,
            members: false,
            exported: false,
            ..self.clone()
        }
    }
}

/// What loads modules in a file of Python beside its statements.
#[derive(Debug, Default)]
pub(super) struct Loaders {
    /// Whether anything of it may be in the file.
    pub(super) are_there: bool,
    /// Names that the file gives to it, and the dotted names that they mean.
    pub(super) names: HashMap<String, String>,
    /// Directories where the file has modules searched, one a line.
    pub(super) directories: String,
    /// Modules that were loaded already.
    pub(super) loaded: HashSet<String>,
}

/// Something with a position in the source: a node of a tree, of whichever parser.
pub(super) trait Located: Copy {
    /// The byte at which it begins.
    fn start(self) -> usize;
    /// The line and the column at which it begins.
    fn position(self, reader: &Reader<'_>) -> LineCol;
    /// The line in which it ends.
    fn end_line(self, reader: &Reader<'_>) -> u32;
}

impl Located for Node<'_> {
    fn start(self) -> usize {
        self.start_byte()
    }

    fn position(self, reader: &Reader<'_>) -> LineCol {
        LineCol { line: Reader::line(self), column: reader.column(self) }
    }

    fn end_line(self, _reader: &Reader<'_>) -> u32 {
        u32::try_from(self.end_position().row).unwrap_or(u32::MAX - 1) + 1
    }
}

impl Located for Span {
    fn start(self) -> usize {
        self.start as usize
    }

    fn position(self, reader: &Reader<'_>) -> LineCol {
        reader.line_col(self.start)
    }

    fn end_line(self, reader: &Reader<'_>) -> u32 {
        reader.line_col(self.end).line
    }
}

/// What to do with the children of a node.
pub(super) enum Next {
    Descend(Scope),
    Stop,
}

/// The names of the kinds of nodes in a grammar, by their numbers.
pub(super) type Kinds = &'static [&'static str];

/// Visits one node and returns the scope of its children.
pub(super) type Visitor = for<'t> fn(&mut Reader<'t>, Node<'t>, &Scope) -> Next;

pub(super) struct Reader<'s> {
    pub(super) source: &'s [u8],
    separator: &'static str,
    kinds: Kinds,
    pub(super) names: Names<'s>,
    pub(super) out: Parse,
    seen: HashMap<(Kind, String), u32>,
    /// The paths of Rust without their lines, as the first of each is enough.
    seen_paths: HashSet<(String, String, Option<String>)>,
    /// Whether a specifier was longer than what is kept of it.
    is_cut: Cell<bool>,
    /// What loads modules beside the statements of the language.
    pub(super) loaders: Loaders,
    /// What comments of Go include as C code, until the import that they belong to.
    pub(super) headers: Vec<(String, Node<'s>)>,
    /// Whether the list of the names that a module of Python gives to others is only known when the code runs.
    pub(super) has_computed_list: bool,
    /// The source as text and its lines, for trees whose nodes know their bytes alone.
    text: Option<(&'s str, LineIndex)>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s [u8], language: Language, kinds: Kinds) -> Self {
        Self {
            source,
            kinds,
            separator: if language == Language::Rust { "::" } else { "." },
            names: Names::new(Grammar::of(language)),
            out: Parse::default(),
            seen: HashMap::new(),
            seen_paths: HashSet::new(),
            is_cut: Cell::new(false),
            loaders: Loaders::default(),
            headers: Vec::new(),
            has_computed_list: false,
            text: None,
        }
    }

    /// A reader of a text whose tree is not one of tree-sitter.
    pub(super) fn of_text(text: &'s str, language: Language) -> Self {
        let index = LineIndex::new(text, LineEnds::Newline);
        Self { text: Some((text, index)), ..Self::new(text.as_bytes(), language, &[]) }
    }

    fn line_col(&self, offset: u32) -> LineCol {
        let text = self.text.as_ref();
        text.map_or(LineCol::START, |(text, index)| index.line_col(text, offset as usize))
    }

    /// What a node is, as [`Node::kind`] says, which measures and checks its text each time.
    pub(super) fn kind<'t>(&self, node: Node<'t>) -> &'t str {
        self.kinds.get(usize::from(node.kind_id())).copied().unwrap_or_else(|| node.kind())
    }

    pub(super) fn walk(&mut self, root: Node<'s>, look: Visitor) {
        self.visit(root, look, &Scope::default(), Role::ROOT);
    }

    fn visit(&mut self, node: Node<'s>, look: Visitor, scope: &Scope, role: Role<'s>) {
        if scope.depth > MAX_DEPTH {
            self.out.unparsed = true;
            return;
        }
        let kind = self.kind(node);
        self.note_names(node, kind, role, scope);
        if let Next::Descend(mut inner) = look(self, node, scope) {
            inner.depth = scope.depth + 1;
            inner.frame = self.names.frame(kind, scope.frame);
            // What a definition is called is known around it.
            let is_frame = inner.frame != scope.frame;
            let outside = is_frame.then(|| Scope { frame: scope.frame, ..inner.clone() });
            let mut cursor = node.walk();
            let mut is_there = cursor.goto_first_child();
            while is_there {
                let child = cursor.node();
                if child.is_named() {
                    // The key of an element is a field.
                    let field = if kind == "literal_element" { role.field } else { cursor.field_name() };
                    let outside = outside.as_ref().filter(|_| field == Some("name"));
                    let scope = outside.unwrap_or(&inner);
                    self.visit(child, look, scope, Role { kind, field });
                }
                is_there = cursor.goto_next_sibling();
            }
        }
    }

    /// Whether one more item can be kept; where it cannot, the file is marked.
    fn has_room(&mut self, items: usize) -> bool {
        self.out.unparsed |= items >= MAX_ITEMS;
        items < MAX_ITEMS
    }

    pub(super) fn text(&self, node: Node<'_>) -> String {
        let bytes = self.source.get(node.byte_range()).unwrap_or_default();
        let bytes = bytes.get(..MAX_TEXT_BYTES).unwrap_or(bytes);
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The part of a name that is kept.
    pub(super) fn kept(name: &str) -> String {
        tgp_text::head(name, MAX_TEXT_BYTES).to_owned()
    }

    /// As [`Self::kept`], for what leads elsewhere when it is cut: then the file is marked.
    pub(super) fn kept_whole(&self, specifier: &str) -> String {
        if specifier.len() > MAX_TEXT_BYTES {
            self.is_cut.set(true);
        }
        Self::kept(specifier)
    }

    /// Marks the file: something in it that may lead elsewhere is not read.
    pub(super) fn cut(&self) {
        self.is_cut.set(true);
    }

    /// As [`Self::text`], for what leads elsewhere when it is cut: then the file is marked.
    pub(super) fn whole_text(&self, node: Node<'_>) -> String {
        if node.byte_range().len() > MAX_TEXT_BYTES {
            self.is_cut.set(true);
        }
        self.text(node)
    }

    pub(super) fn field(&self, node: Node<'_>, name: &str) -> Option<String> {
        node.child_by_field_name(name).map(|child| self.text(child))
    }

    /// The content of a string literal.
    pub(super) fn unquoted(&self, node: Node<'_>) -> String {
        self.text(node).trim_matches(['"', '\'', '`']).to_owned()
    }

    pub(super) fn line(node: Node<'_>) -> u32 {
        u32::try_from(node.start_position().row).unwrap_or(u32::MAX - 1) + 1
    }

    /// Characters from the beginning of the line, not bytes.
    fn column(&self, node: Node<'_>) -> u32 {
        let start = node.start_byte();
        let line = start.saturating_sub(node.start_position().column);
        let before = self.source.get(line..start).unwrap_or_default();
        u32::try_from(String::from_utf8_lossy(before).chars().count()).unwrap_or(u32::MAX - 1) + 1
    }

    /// Adds a symbol and answers its number; none when there are too many, or it has no name.
    pub(super) fn symbol(
        &mut self,
        kind: Kind,
        name: &str,
        node: impl Located,
        scope: &Scope,
        exported: bool,
    ) -> Option<u32> {
        if name.is_empty() || !self.has_room(self.out.symbols.len()) {
            return None;
        }
        let qualified = if scope.prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{}{}{name}", scope.prefix, self.separator)
        };
        let count = self.seen.entry((kind, qualified.clone())).or_default();
        let occurrence = *count;
        *count += 1;
        let number = u32::try_from(self.out.symbols.len()).ok()?;
        let LineCol { line, column } = node.position(self);
        self.out.symbols.push(Symbol {
            kind,
            name: name.to_owned(),
            qualified,
            line,
            column,
            end_line: node.end_line(self),
            exported,
            container: scope.container,
            occurrence,
        });
        self.names.defined(number, scope.frame);
        Some(number)
    }

    /// Adds a function that is in the body of another one. Returns the scope of its own body.
    pub(super) fn inner_function(&mut self, name: &str, node: impl Located, scope: &Scope) -> Scope {
        let outer = scope.function.and_then(|outer| self.out.symbols.get(outer as usize));
        let prefix = outer.map_or_else(|| Rc::clone(&scope.prefix), |outer| outer.qualified.as_str().into());
        let place = Scope { prefix, container: scope.function.or(scope.container), ..scope.clone() };
        let symbol = self.symbol(Kind::Function, name, node, &place, false);
        scope.body(symbol)
    }

    /// Notes a type that a symbol is made of.
    pub(super) fn heritage(&mut self, symbol: Option<u32>, name: &str, implements: bool) {
        let name: String = name.split('<').next().unwrap_or_default().split_whitespace().collect();
        if let Some(symbol) = symbol.filter(|_| !name.is_empty() && self.out.heritage.len() < MAX_ITEMS) {
            self.out.heritage.push(Heritage { symbol, name, implements });
        }
    }

    /// Marks the imports since the `first` one as those of types alone.
    pub(super) fn of_types(&mut self, first: usize) {
        for import in self.out.imports.iter_mut().skip(first) {
            import.type_only = true;
        }
    }

    /// Moves a symbol from its modifiers and annotations, which may be lines above, to its name.
    pub(super) fn stand_at_name(&mut self, symbol: Option<u32>, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name") else { return };
        let (line, column) = (Self::line(name), self.column(name));
        if let Some(symbol) = symbol.and_then(|symbol| self.out.symbols.get_mut(symbol as usize)) {
            (symbol.line, symbol.column) = (line, column);
        }
    }

    /// The scope of the members of a new container.
    pub(super) fn inside(&self, symbol: Option<u32>, name: &str, scope: &Scope, members: bool) -> Scope {
        let prefix = if scope.prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{}{}{name}", scope.prefix, self.separator)
        };
        let (prefix, types) = (prefix.into(), scope.types);
        let (module, place) = (Rc::clone(&scope.module), scope.place.clone());
        Scope { prefix, container: symbol, members, types, module, place, ..Scope::default() }
    }

    pub(super) fn call(&mut self, name: String, receiver: Option<String>, node: impl Located, scope: &Scope) {
        if !name.is_empty() && self.has_room(self.out.calls.len()) {
            let enclosing = scope.function.or(scope.container);
            self.names.called(scope.frame, node.start());
            let line = node.position(self).line;
            self.out.calls.push(Call { name, receiver, of: None, line, enclosing });
        }
    }

    pub(super) fn import(
        &mut self,
        kind: ImportKind,
        specifier: String,
        names: Vec<Name>,
        module: Option<String>,
        node: impl Located,
    ) {
        self.scoped_import(kind, specifier, names, module, node, &Scope::default());
    }

    /// How many imports of a kind were read so far.
    pub(super) fn count_of(&self, kind: ImportKind) -> usize {
        self.out.imports.iter().filter(|import| import.kind == kind).count()
    }

    /// An import of what is only known when the code runs, as it is written.
    pub(super) fn computed_import(&mut self, written: &str, node: impl Located) {
        let short: String = written.chars().take(MAX_WRITTEN_CHARS).collect();
        self.import(ImportKind::Computed, short, Vec::new(), None, node);
    }

    pub(super) fn scoped_import(
        &mut self,
        kind: ImportKind,
        specifier: String,
        names: Vec<Name>,
        module: Option<String>,
        node: impl Located,
        scope: &Scope,
    ) {
        if !specifier.is_empty() && self.has_room(self.out.imports.len()) {
            // A name that was cut leads elsewhere; a quote may have been taken off it.
            self.out.unparsed |= specifier.len() + 1 >= MAX_TEXT_BYTES;
            let (line, scope) = (node.position(self).line, scope.module.as_ref().to_owned());
            let type_only = false;
            self.out.imports.push(Import { kind, specifier, names, module, line, scope, type_only });
        }
    }

    /// Notes a path of Rust.
    pub(super) fn path(&mut self, path: Path) {
        let seen = (path.written.clone(), path.scope.clone(), path.here.clone());
        if !self.seen_paths.contains(&seen) && self.has_room(self.out.paths.len()) {
            self.seen_paths.insert(seen);
            self.out.paths.push(path);
        }
    }

    pub(super) fn finish(self, parse: &mut Parse, language: Language) {
        let Parse { symbols, imports, paths, calls, heritage, exports, package, unparsed, .. } = self.out;
        *parse =
            Parse { symbols, imports, paths, calls, heritage, exports, package, ..std::mem::take(parse) };
        let is_whole = self.names.finish(parse, self.separator, language);
        parse.unparsed |= unparsed || self.is_cut.get() || !is_whole;
        parse.broken |= parse.unparsed;
        // What is exported by a later statement.
        for (_, ours) in &parse.exports {
            for symbol in &mut parse.symbols {
                if symbol.container.is_none() && symbol.name == *ours {
                    symbol.exported = true;
                }
            }
        }
    }
}

impl Name {
    pub(super) fn new(there: impl Into<String>, here: impl Into<String>) -> Self {
        Self { there: there.into(), here: here.into() }
    }
}
