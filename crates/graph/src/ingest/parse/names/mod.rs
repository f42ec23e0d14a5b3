//! Uses of names that are not calls, names that a function binds itself, and the types that variables are declared with.

mod go;
mod java;
mod python;
mod rust;

use std::collections::{HashMap, HashSet};

use tree_sitter::Node;

use super::reader::{Located, Reader, Scope};
use super::{Call, ImportKind, Kind, MAX_ITEMS, Parse, Reference};
use crate::ingest::language::Language;

/// What a node means to its parent.
#[derive(Clone, Copy)]
pub(super) struct Role<'t> {
    /// What the parent is.
    pub(super) kind: &'t str,
    pub(super) field: Option<&'t str>,
}

impl<'t> Role<'t> {
    pub(super) const ROOT: Self = Self { kind: "", field: None };

    fn pair(self) -> (&'t str, &'t str) {
        (self.kind, self.field.unwrap_or_default())
    }
}

/// What a word of the source does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Use,
    /// Binds its name in the function around it.
    Binding,
    /// A constant, or a name that a pattern binds: constants are in capitals.
    Pattern,
    /// A use by the definition that comes next.
    Decorator,
    /// It is a definition, a member, or the name of what is called.
    Nothing,
}

/// Which nodes bind and use names in a language.
pub(super) struct Grammar {
    /// Whether names that are bound inside are not seen outside.
    is_frame: fn(&str) -> bool,
    /// What a node that has a name does, by its kind and its role; none for any other node.
    word: fn(&str, Role<'_>) -> Option<Word>,
    /// Notes the types that a node declares.
    declare: for<'t> fn(&mut Reader<'t>, Node<'t>, &Scope),
    /// The byte from which on what a node binds is seen: `let x = x();` calls another `x`.
    seen_from: fn(Node<'_>) -> usize,
    /// Whether a variable hides a function of the same name.
    hides_functions: bool,
}

/// What is bound anywhere in a function is bound in all of it.
fn everywhere(_node: Node<'_>) -> usize {
    0
}

impl Grammar {
    /// None for TypeScript and JavaScript, whose tree says of each word what it is.
    pub(super) fn of(language: Language) -> Option<&'static Self> {
        match language {
            Language::Rust => Some(&rust::GRAMMAR),
            Language::Python => Some(&python::GRAMMAR),
            Language::Go => Some(&go::GRAMMAR),
            Language::Java => Some(&java::GRAMMAR),
            _ => None,
        }
    }
}

/// A type as it is written, where it is a plain name.
pub(super) type TypeName = Option<String>;

/// A name that is bound.
struct Bound {
    /// The byte from which on it is seen.
    from: usize,
    of: TypeName,
}

/// A place in the source: the function around it, and the byte.
#[derive(Clone, Copy, Default)]
struct Place {
    frame: u32,
    at: usize,
}

/// The names that a function binds.
#[derive(Default)]
struct Frame<'s> {
    above: Option<u32>,
    bound: HashMap<&'s str, Bound>,
    /// Names that the function says it takes from the file.
    outer: HashSet<&'s str>,
}

struct Use<'s> {
    enclosing: Option<u32>,
    place: Place,
    text: &'s str,
}

pub(super) struct Names<'s> {
    grammar: Option<&'static Grammar>,
    /// The first one is the file's.
    frames: Vec<Frame<'s>>,
    /// The first of each name in each function: where that one is bound, the later ones are.
    uses: Vec<Use<'s>>,
    seen: HashSet<(Option<u32>, u32, &'s str)>,
    /// The types of fields, by the qualified name of their class and their own.
    fields: HashMap<(String, String), String>,
    /// Where each call is.
    calls: Vec<Place>,
    /// Decorators of a definition that comes next.
    decorators: Vec<&'s str>,
}

impl<'s> Names<'s> {
    pub(super) fn new(grammar: Option<&'static Grammar>) -> Self {
        Self {
            grammar,
            frames: vec![Frame::default()],
            uses: Vec::new(),
            seen: HashSet::new(),
            fields: HashMap::new(),
            calls: Vec::new(),
            decorators: Vec::new(),
        }
    }

    /// The frame of what is inside a node.
    pub(super) fn frame(&mut self, kind: &str, outer: u32) -> u32 {
        match self.grammar {
            Some(grammar) if (grammar.is_frame)(kind) => self.new_frame(outer),
            _ => outer,
        }
    }

    /// A frame within another one.
    pub(super) fn new_frame(&mut self, outer: u32) -> u32 {
        let number = u32::try_from(self.frames.len()).unwrap_or(outer);
        self.frames.push(Frame { above: Some(outer), ..Frame::default() });
        number
    }

    /// A name that is bound where the node is. What is bound at the top of a file is a symbol, and hides nothing.
    fn bind(&mut self, frame: u32, name: &'s str, from: usize, of: TypeName) {
        let Some(frame) = self.frames.get_mut(frame as usize) else { return };
        if (frame.above.is_some() || of.is_some()) && !name.is_empty() {
            let known = frame.bound.entry(name).or_insert(Bound { from, of: None });
            known.from = known.from.min(from);
            if known.of.is_none() {
                known.of = of;
            }
        }
    }

    fn take_from_file(&mut self, frame: u32, name: &'s str) {
        if let Some(frame) = self.frames.get_mut(frame as usize) {
            frame.outer.insert(name);
        }
    }

    /// The type of a field of a class.
    fn field(&mut self, class: &str, name: &str, of: TypeName) {
        if let Some(of) = of.filter(|_| !class.is_empty() && self.fields.len() < MAX_ITEMS) {
            self.fields.entry((class.to_owned(), name.to_owned())).or_insert(of);
        }
    }

    /// A symbol was defined in a frame: the decorators before it are its own.
    pub(super) fn defined(&mut self, symbol: u32, frame: u32) {
        for text in std::mem::take(&mut self.decorators) {
            self.use_in(Some(symbol), Place { frame, at: 0 }, text);
        }
    }

    fn use_in(&mut self, enclosing: Option<u32>, place: Place, text: &'s str) {
        if self.seen.insert((enclosing, place.frame, text)) {
            self.uses.push(Use { enclosing, place, text });
        }
    }

    pub(super) fn called(&mut self, frame: u32, at: usize) {
        self.calls.push(Place { frame, at });
    }

    /// Whether a function around binds a name, and with which type.
    fn binding(&self, place: Place, name: &str) -> Option<&TypeName> {
        let mut frame = place.frame;
        while let Some(here) = self.frames.get(frame as usize) {
            let above = here.above?;
            if here.outer.contains(name) {
                return None;
            }
            if let Some(bound) = here.bound.get(name).filter(|bound| bound.from <= place.at) {
                return Some(&bound.of);
            }
            frame = above;
        }
        None
    }

    /// Takes what is bound out of the calls, and gives the others the types of their receivers.
    fn settle_calls(&self, parse: &mut Parse, separator: &str) {
        let mut kept = Vec::with_capacity(parse.calls.len());
        let hides_functions = self.grammar.is_none_or(|grammar| grammar.hides_functions);
        for (index, call) in parse.calls.iter().enumerate() {
            let place = self.calls.get(index).copied().unwrap_or_default();
            let Some(receiver) = &call.receiver else {
                if !hides_functions || self.binding(place, &call.name).is_none() {
                    kept.push(call.clone());
                }
                continue;
            };
            let is_value = separator == "." || receiver.starts_with('.');
            let (receiver, of) = match is_value {
                true => self.receiver(parse, call, receiver, place),
                false => (receiver.clone(), None),
            };
            kept.push(Call { receiver: Some(receiver), of, ..call.clone() });
        }
        parse.calls = kept;
    }

    /// The receiver as it can be looked for, and its type.
    fn receiver(&self, parse: &Parse, call: &Call, receiver: &str, place: Place) -> (String, TypeName) {
        let written = receiver.trim_start_matches('.');
        let (head, field) = match written.split_once('.') {
            Some((head, field)) => (head, Some(field)),
            None => (written, None),
        };
        if matches!(head, "this" | "self" | "cls") {
            let class = class_of(parse, call.enclosing);
            let of = field.and_then(|field| self.fields.get(&(class, field.to_owned())));
            return (receiver.to_owned(), of.cloned());
        }
        let top = || self.frames.first().and_then(|file| file.bound.get(head)).map(|bound| &bound.of);
        let Some(of) = self.binding(place, head).or_else(top) else {
            return (receiver.to_owned(), None);
        };
        let of = of.as_ref().filter(|of| self.is_free(place, of));
        let of = match field {
            None => of.cloned(),
            Some(field) => of.and_then(|of| self.fields.get(&(of.clone(), field.to_owned()))).cloned(),
        };
        (String::new(), of)
    }

    /// Whether a type is not a parameter of what is around.
    fn is_free(&self, place: Place, of: &str) -> bool {
        let head = of.split(['.', ':']).next().unwrap_or_default();
        self.binding(place, head).is_none()
    }

    /// What was read, where it can lead to a symbol of the tree.
    pub(super) fn finish(self, parse: &mut Parse, separator: &'static str, language: Language) -> bool {
        self.settle_calls(parse, separator);
        let mut modules: HashSet<&str> =
            parse.imports.iter().filter_map(|import| import.module.as_deref()).collect();
        let mut known: HashSet<&str> = modules.clone();
        let mut is_open = matches!(language, Language::Go | Language::Java);
        for import in &parse.imports {
            for name in &import.names {
                known.insert(&name.here);
                if name.there == "*" {
                    is_open |= name.here.is_empty() && import.kind != ImportKind::Part;
                    modules.insert(&name.here);
                }
            }
        }
        known.extend(parse.symbols.iter().map(|symbol| symbol.name.as_str()));
        let mut references: Vec<Reference> = Vec::new();
        let mut seen: HashSet<(Option<u32>, &str)> = HashSet::new();
        for found in &self.uses {
            let head = found.text.split(separator).next().unwrap_or_default();
            let (receiver, name) = match found.text.rsplit_once(separator) {
                Some((receiver, name)) => (Some(receiver), name),
                None => (None, found.text),
            };
            let is_path =
                separator == "::" && receiver.is_some() && matches!(head, "crate" | "super" | "self");
            let may_be_shared = is_open && head.starts_with(char::is_uppercase);
            if !(is_path || known.contains(head) || may_be_shared)
                || (receiver.is_none() && modules.contains(name))
                || self.binding(found.place, head).is_some()
                || !seen.insert((found.enclosing, found.text))
            {
                continue;
            }
            if references.len() >= MAX_ITEMS {
                parse.references = references;
                return false;
            }
            references.push(Reference {
                enclosing: found.enclosing,
                name: name.to_owned(),
                receiver: receiver.map(str::to_owned),
            });
        }
        parse.references = references;
        true
    }
}

/// The qualified name of the class in whose member something is.
fn class_of(parse: &Parse, enclosing: Option<u32>) -> String {
    let mut symbol = enclosing.and_then(|index| parse.symbols.get(index as usize));
    // Functions in the body of a method see the same `this`, where they are arrows.
    while let Some(here) = symbol.filter(|here| here.kind == Kind::Function) {
        symbol = here.container.and_then(|index| parse.symbols.get(index as usize));
    }
    match symbol {
        Some(symbol) if symbol.kind.is_container() => symbol.qualified.clone(),
        Some(symbol) => {
            let owner = symbol.qualified.strip_suffix(symbol.name.as_str()).unwrap_or_default();
            owner.trim_end_matches(['.', ':']).to_owned()
        }
        None => String::new(),
    }
}

impl<'s> Reader<'s> {
    /// Notes what a node does with names.
    pub(super) fn note_names(&mut self, node: Node<'s>, kind: &str, role: Role<'s>, scope: &Scope) {
        let Some(grammar) = self.names.grammar else { return };
        (grammar.declare)(self, node, scope);
        let Some(word) = (grammar.word)(kind, role) else { return };
        let Some(text) = self.written(node).filter(|text| is_name(text)) else { return };
        match word {
            Word::Pattern if text.starts_with(char::is_uppercase) => self.use_name(node, text, scope),
            Word::Binding | Word::Pattern => {
                self.names.bind(scope.frame, text, (grammar.seen_from)(node), None);
            }
            Word::Decorator => self.names.decorators.push(text),
            Word::Use => self.use_name(node, text, scope),
            Word::Nothing => {}
        }
    }

    pub(super) fn use_name(&mut self, node: impl Located, text: &'s str, scope: &Scope) {
        let enclosing = scope.function.or(scope.owner).or(scope.container);
        self.names.use_in(enclosing, Place { frame: scope.frame, at: node.start() }, text);
    }

    /// Notes that a name is bound in the function around it, and its type.
    pub(super) fn bind_name(&mut self, name: &'s str, of: TypeName, scope: &Scope) {
        if is_name(name) {
            self.names.bind(scope.frame, name, 0, of);
        }
    }

    fn written(&self, node: Node<'_>) -> Option<&'s str> {
        std::str::from_utf8(self.source.get(node.byte_range())?).ok()
    }

    /// Gives the name that a field of a node has a type, where it is known.
    fn declare(&mut self, node: Node<'s>, field: &str, of: TypeName, scope: &Scope) {
        let Some(name) = node.child_by_field_name(field).filter(|_| of.is_some()) else { return };
        if name.kind() == "identifier"
            && let Some(text) = self.written(name)
        {
            let from = self.names.grammar.map_or(0, |grammar| (grammar.seen_from)(name));
            self.names.bind(scope.frame, text, from, of);
        }
    }

    /// The qualified name of the class whose members are in a scope.
    fn class_name(&self, scope: &Scope) -> String {
        match scope.owner.or(scope.container).and_then(|index| self.out.symbols.get(index as usize)) {
            Some(symbol) if scope.function.is_none() || scope.function == scope.container => {
                symbol.qualified.clone()
            }
            _ => class_of(&self.out, scope.function),
        }
    }

    /// Notes the type of a field of the class around it.
    pub(super) fn declare_field(&mut self, name: &str, of: TypeName, scope: &Scope) {
        let class = self.class_name(scope);
        self.names.field(&class, name, of);
    }
}

/// The longest name with its path.
const MAX_NAME_BYTES: usize = 256;

/// A name, or names with dots or colons between them.
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '.' | ':');
    text.len() <= MAX_NAME_BYTES
        && text.starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | '$'))
        && text.chars().all(is_part)
}

/// A type by its name: without references, and without its arguments.
pub(super) fn plain_type(text: &str) -> TypeName {
    let name = text.split(['<', '[']).next().unwrap_or_default().trim();
    is_name(name).then(|| name.to_owned())
}
