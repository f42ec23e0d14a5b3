//! Which symbol calls which, as far as names show. No types are known, so every such relationship is marked as a
//! best effort.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::json;

use super::imports::{Imports, Module};
use super::lookup::{self, Found};
use super::{Link, go, java, members, rust};
use crate::ingest::language::Language;
use crate::ingest::parse::{Call, Kind, Parse};
use crate::tables::facts::Fact;
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;
use crate::tables::positions::Position;

/// Files whose methods are searched by name alone.
const MAX_METHOD_FILES: usize = 200;

/// The prefix of a name that is looked for in the class above.
const SUPER: &str = "super";

/// A method: its file, its number there.
type Method = (String, u32);

/// How the callee was found.
#[derive(Clone, Copy)]
enum How {
    SameFile,
    Import,
    Namespace,
    Package,
    ReceiverType,
    MethodName,
}

impl How {
    fn name(self) -> &'static str {
        match self {
            Self::SameFile => "same-file",
            Self::Import => "import",
            Self::Namespace => "namespace",
            Self::Package => "package",
            Self::ReceiverType => "receiver-type",
            Self::MethodName => "method-name",
        }
    }
}

/// One relationship for each pair of caller and callee, with the line of the first call and the number of calls.
pub(super) fn calls(
    link: &Link<'_>,
    ids: &Identities,
    parse: &Parse,
    imports: &Imports,
    file: i64,
    symbols: &[i64],
) -> Result<Vec<Fact>, GraphError> {
    let finder = Finder::new(link, parse, imports);
    let mut found: Vec<(&Call, Found, How)> = Vec::new();
    let mut values: Vec<&Call> = Vec::new();
    // The same call is often written several times in a function.
    let mut known: HashMap<_, CallMatch> = HashMap::new();
    for call in &parse.calls {
        let written = (call.enclosing, &call.name, &call.receiver, &call.of);
        let matched = match known.get(&written) {
            Some(matched) => matched.clone(),
            None => {
                let matched = finder.find(call)?;
                known.insert(written, matched.clone());
                matched
            }
        };
        match matched {
            CallMatch::Found(symbol, how) => found.push((call, symbol, how)),
            CallMatch::OfValue => values.push(call),
            CallMatch::Nothing => {}
        }
    }
    if !values.is_empty() {
        // Values mostly come from what is imported or called here.
        let mut files: BTreeSet<&str> = imports.files.iter().map(String::as_str).collect();
        files.extend(found.iter().map(|(_, (path, _), _)| path.as_str()));
        let names: HashSet<&str> = values.iter().map(|call| call.name.as_str()).collect();
        let methods = finder.methods(&files, &names)?;
        for call in values {
            let mut fitting = methods.get(call.name.as_str()).into_iter().flatten();
            if let (Some((path, index)), None) = (fitting.next(), fitting.next()) {
                found.push((call, (path.clone(), *index), How::MethodName));
            }
        }
    }
    found.sort_by_key(|(call, ..)| call.line);
    let mut arrows: BTreeMap<(i64, i64), (u32, u32, How)> = BTreeMap::new();
    for (call, (path, index), how) in found {
        let Some(target) = link.symbol(ids, symbols, &(path, index))? else { continue };
        let source = call.enclosing.and_then(|symbol| symbols.get(symbol as usize)).copied().unwrap_or(file);
        let arrow = arrows.entry((source, target)).or_insert((call.line, 0, how));
        arrow.1 += 1;
    }
    Ok(arrows
        .into_iter()
        .map(|((source, target), (line, count, how))| {
            let props = json!({ "count": count, "bestEffort": true, "how": how.name() });
            Fact::edge("CALLS", source, target, 0, props.to_string()).at(Position::Line(line))
        })
        .collect())
}

/// What a call's name leads to.
#[derive(Clone)]
enum CallMatch {
    Found(Found, How),
    /// A method of some value: only its name is known.
    OfValue,
    Nothing,
}

pub(super) struct Finder<'a, 'w> {
    pub(super) link: &'a Link<'w>,
    parse: &'a Parse,
    imports: &'a Imports,
    /// Members that the types of this file have from others, by type and name: tests ask for the same few everywhere.
    inherited: RefCell<HashMap<(String, String), Option<Found>>>,
}

impl<'a, 'w> Finder<'a, 'w> {
    pub(super) fn new(link: &'a Link<'w>, parse: &'a Parse, imports: &'a Imports) -> Self {
        Self { link, parse, imports, inherited: RefCell::default() }
    }

    /// A member of one of the types that a type of this file is made of.
    fn inherited(&self, class: String, name: &str) -> Result<Option<Found>, GraphError> {
        let asked = (class, name.to_owned());
        if let Some(known) = self.inherited.borrow().get(&asked) {
            return Ok(known.clone());
        }
        let found = members::above(self, self.link.path, self.parse, &asked.0, name)?;
        self.inherited.borrow_mut().insert(asked, found.clone());
        Ok(found)
    }

    /// What a name leads to, and not a mere value.
    pub(super) fn found(&self, call: &Call) -> Result<Option<Found>, GraphError> {
        Ok(match self.find(call)? {
            CallMatch::Found(found, _) => Some(found),
            CallMatch::OfValue | CallMatch::Nothing => None,
        })
    }

    /// What a name with its path means within a symbol: the same as a call there.
    pub(super) fn named(&self, written: &str, enclosing: Option<u32>) -> Result<Option<Found>, GraphError> {
        let (receiver, name) = match written.rsplit_once(self.separator()) {
            Some((receiver, name)) => (Some(receiver.to_owned()), name.to_owned()),
            None => (None, written.to_owned()),
        };
        self.found(&Call { name, receiver, of: None, line: 0, enclosing })
    }

    fn find(&self, call: &Call) -> Result<CallMatch, GraphError> {
        if let Some(of) = &call.of {
            return self.typed(call, of);
        }
        let found = match &call.receiver {
            None => self.plain(call)?,
            Some(receiver) => return self.received(call, receiver),
        };
        Ok(found.map_or(CallMatch::Nothing, |(symbol, how)| CallMatch::Found(symbol, how)))
    }

    fn separator(&self) -> &'static str {
        lookup::separator(self.link, self.link.path)
    }

    fn here(&self, index: u32) -> Found {
        (self.link.path.to_owned(), index)
    }

    /// A name alone: what is around it, then what was imported, then what the package shares.
    fn plain(&self, call: &Call) -> Result<Option<(Found, How)>, GraphError> {
        let language = self.link.language(self.link.path);
        let separator = self.separator();
        // The functions in the body of a function are the nearest.
        let enclosing = call.enclosing.and_then(|index| self.parse.symbols.get(index as usize));
        let mut around = match enclosing.filter(|symbol| symbol.kind == Kind::Function) {
            Some(function) => function.qualified.clone(),
            None => self.enclosing_container(call),
        };
        loop {
            let qualified = if around.is_empty() {
                call.name.clone()
            } else {
                format!("{around}{separator}{}", call.name)
            };
            if let Some(index) = self.parse.symbol(&qualified) {
                let is_method =
                    self.parse.symbols.get(index as usize).is_some_and(|symbol| symbol.kind == Kind::Method);
                // Only Java calls a method of its own class by the name alone.
                if !is_method || language == Language::Java {
                    return Ok(Some((self.here(index), How::SameFile)));
                }
            }
            if around.is_empty() {
                break;
            }
            around = around.rsplit_once(separator).map(|(outer, _)| outer.to_owned()).unwrap_or_default();
        }
        if let Some((module, there)) = self.imports.names.get(&call.name) {
            return Ok(lookup::find(self.link, module, there)?.map(|found| (found, How::Import)));
        }
        // `const x = require("./x"); x()` calls what the module is.
        if let Some(module) = self.imports.modules.get(&call.name) {
            let found = lookup::find(self.link, module, "default")?;
            return Ok(found.map(|found| (found, How::Namespace)));
        }
        for module in &self.imports.stars {
            if let Some(found) = lookup::find(self.link, module, &call.name)? {
                return Ok(Some((found, How::Import)));
            }
        }
        self.shared(language, &call.name)
    }

    /// What files of the same package see without an import.
    fn shared(&self, language: Language, name: &str) -> Result<Option<(Found, How)>, GraphError> {
        let files = match language {
            Language::Go => go::siblings(self.link)?,
            Language::Java => java::siblings(self.link, name)?,
            _ => return Ok(None),
        };
        let found = lookup::find(self.link, &Module { files, inner: String::new() }, name)?;
        Ok(found.map(|found| (found, How::Package)))
    }

    fn enclosing_container(&self, call: &Call) -> String {
        let enclosing = call.enclosing.and_then(|index| self.parse.symbols.get(index as usize));
        let Some(symbol) = enclosing else { return String::new() };
        if symbol.kind.is_container() {
            return symbol.qualified.clone();
        }
        let separator = self.separator();
        symbol.qualified.rsplit_once(separator).map(|(outer, _)| outer.to_owned()).unwrap_or_default()
    }

    fn received(&self, call: &Call, receiver: &str) -> Result<CallMatch, GraphError> {
        let separator = self.separator();
        // In Rust it is the module above.
        let is_above = receiver == SUPER && separator == ".";
        let is_self = matches!(receiver, "this" | "self" | "cls" | "Self" | ".self");
        if is_self {
            let container = self.enclosing_container(call);
            let found = self.parse.symbol(&format!("{container}{separator}{}", call.name));
            if let Some(index) = found {
                return Ok(CallMatch::Found(self.here(index), How::SameFile));
            }
            if let Some(found) = self.inherited(container, &call.name)? {
                return Ok(CallMatch::Found(found, How::ReceiverType));
            }
        } else if is_above {
            let container = self.enclosing_container(call);
            if let Some(found) = self.inherited(container, &call.name)? {
                return Ok(CallMatch::Found(found, How::ReceiverType));
            }
            // What a class from elsewhere has is not in the tree.
            return Ok(CallMatch::Nothing);
        } else if !receiver.is_empty() && !receiver.starts_with('.') && !is_above {
            if let Some((symbol, how)) = self.through_path(call, receiver)? {
                return Ok(CallMatch::Found(symbol, how));
            }
            // `String::new` is not a known method here: only values are asked by the method's name alone.
            if separator == "::" {
                return Ok(CallMatch::Nothing);
            }
        }
        Ok(CallMatch::OfValue)
    }

    /// A method of a value whose type is written where it is declared.
    fn typed(&self, call: &Call, of: &str) -> Result<CallMatch, GraphError> {
        // What a type from elsewhere has is not in the tree.
        let Some((path, index)) = self.named(of, call.enclosing)? else { return Ok(CallMatch::Nothing) };
        let other = if path == self.link.path { None } else { self.link.parse(&path)? };
        let parse = other.as_deref().unwrap_or(self.parse);
        let class = parse.symbols.get(index as usize);
        let qualified = class.map(|class| class.qualified.clone()).unwrap_or_default();
        let found = members::member(self, &path, parse, &qualified, &call.name)?;
        Ok(found.map_or(CallMatch::OfValue, |found| CallMatch::Found(found, How::ReceiverType)))
    }

    /// The module with the longest name that a path begins with, and what follows it: `import a.b` in Python makes both `a`
    /// and `a.b` modules.
    fn module_of<'p>(&self, path: &'p str) -> Option<(&Module, &'p str)> {
        let separator = self.separator();
        let mut end = path.len();
        loop {
            let (name, inside) = path.split_at_checked(end)?;
            if let Some(module) = self.imports.modules.get(name) {
                return Some((module, inside.strip_prefix(separator).unwrap_or(inside)));
            }
            end = name.rfind(separator)?;
        }
    }

    /// `a.b.name`, where `a` is a module, something imported, or something of this file.
    fn through_path(&self, call: &Call, receiver: &str) -> Result<Option<(Found, How)>, GraphError> {
        let separator = self.separator();
        let name = &call.name;
        let (head, rest) = match receiver.split_once(separator) {
            Some((head, rest)) => (head, format!("{rest}{separator}{name}")),
            None => (receiver, name.clone()),
        };
        if let Some((module, inside)) = self.module_of(receiver) {
            let wanted = if inside.is_empty() { name.clone() } else { format!("{inside}{separator}{name}") };
            let mut found = lookup::find(self.link, module, &wanted)?;
            // What follows the first name may be modules in their own files.
            if found.is_none() && !inside.is_empty() && self.link.language(self.link.path) == Language::Rust {
                let parts: Vec<&str> = inside.split(separator).collect();
                let module = rust::descend(self.link, module.clone(), &parts)?;
                found = lookup::find(self.link, &module, name)?;
            }
            return Ok(found.map(|found| (found, How::Namespace)));
        }
        if let Some((module, there)) = self.imports.names.get(head) {
            let wanted = format!("{there}{separator}{rest}");
            return Ok(lookup::find(self.link, module, &wanted)?.map(|found| (found, How::Import)));
        }
        let mut around = self.enclosing_container(call);
        loop {
            let prefix = if around.is_empty() { String::new() } else { format!("{around}{separator}") };
            let qualified = format!("{prefix}{receiver}{separator}{name}");
            if let Some(index) = self.parse.symbol(&qualified) {
                return Ok(Some((self.here(index), How::SameFile)));
            }
            if around.is_empty() {
                break;
            }
            around = around.rsplit_once(separator).map(|(outer, _)| outer.to_owned()).unwrap_or_default();
        }
        match self.link.language(self.link.path) {
            Language::Rust => {
                if let Some(module) = rust::module(self.link, self.link.path, receiver, "")? {
                    let found = lookup::find(self.link, &module, name)?;
                    return Ok(found.map(|found| (found, How::Namespace)));
                }
                for module in &self.imports.stars {
                    let wanted = format!("{receiver}{separator}{name}");
                    if let Some(found) = lookup::find(self.link, module, &wanted)? {
                        return Ok(Some((found, How::Import)));
                    }
                }
                Ok(None)
            }
            language @ (Language::Go | Language::Java) => {
                let files = match language {
                    Language::Go => go::siblings(self.link)?,
                    _ => java::siblings(self.link, head)?,
                };
                let module = Module { files, inner: String::new() };
                let wanted = format!("{receiver}{separator}{name}");
                Ok(lookup::find(self.link, &module, &wanted)?.map(|found| (found, How::Package)))
            }
            _ => Ok(None),
        }
    }

    /// Methods with one of these names, of this file and of `files`.
    fn methods<'n>(
        &self,
        files: &BTreeSet<&str>,
        names: &HashSet<&'n str>,
    ) -> Result<HashMap<&'n str, Vec<Method>>, GraphError> {
        let mut methods: HashMap<&'n str, Vec<Method>> = HashMap::new();
        let mut add = |path: &str, parse: &Parse| {
            for (index, symbol) in
                parse.symbols.iter().enumerate().filter(|(_, one)| one.kind == Kind::Method)
            {
                if let (Some(name), Ok(index)) = (names.get(symbol.name.as_str()), u32::try_from(index)) {
                    methods.entry(*name).or_default().push((path.to_owned(), index));
                }
            }
        };
        add(self.link.path, self.parse);
        for file in files.iter().filter(|file| **file != self.link.path).take(MAX_METHOD_FILES) {
            if let Some(parse) = self.link.methods(file)? {
                add(file, &parse);
            }
        }
        Ok(methods)
    }
}
