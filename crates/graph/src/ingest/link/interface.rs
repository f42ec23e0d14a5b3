//! What files see of each other, part by part: who asked for one name of a file is not linked again when another one
//! comes or goes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::ingest::language::Language;
use crate::ingest::parse::{Import, ImportKind, Kind, Name, Parse};
use crate::tables::failure::GraphError;
use crate::tables::identity;

/// The key of a name of a file, with all that is in it.
pub(crate) fn name_key(path: &str, head: &str) -> i64 {
    identity::key(&["name", path, head])
}

/// The key of what a file gives on as a whole.
pub(crate) fn stars_key(path: &str) -> i64 {
    identity::key(&["stars", path])
}

/// The key of the methods of a file.
pub(crate) fn methods_key(path: &str) -> i64 {
    identity::key(&["methods", path])
}

/// The key of the package clause of a file.
pub(crate) fn clause_key(path: &str) -> i64 {
    identity::key(&["clause", path])
}

/// The key of which names are anywhere in a file.
pub(crate) fn words_key(path: &str) -> i64 {
    identity::key(&["words", path])
}

/// The key of the names that a file gives to others.
pub(crate) fn exports_key(path: &str) -> i64 {
    identity::key(&["exports", path])
}

/// The names that a file gives to others, but for those that it passes on as a whole.
pub(crate) fn public_names(language: Language, parse: &Parse) -> BTreeSet<&str> {
    let mut names: BTreeSet<&str> = parse.exports.iter().map(|(theirs, _)| theirs.as_str()).collect();
    // The list `__all__` is all of them.
    if language == Language::Python && !names.is_empty() {
        return names;
    }
    let renamed: BTreeSet<&str> = parse.exports.iter().map(|(_, ours)| ours.as_str()).collect();
    let own = parse.symbols.iter().filter(|symbol| symbol.exported && symbol.container.is_none());
    names.extend(own.map(|symbol| symbol.name.as_str()).filter(|name| !renamed.contains(name)));
    let given = parse.imports.iter().filter(|import| passes_on(language, import));
    let is_public = |name: &&str| language != Language::Python || !name.starts_with('_');
    names.extend(given.flat_map(|import| &import.names).map(|name| name.here.as_str()).filter(is_public));
    names.remove("");
    names
}

/// Whether what an import names is given on to those who import the file. Python does so with everything.
pub(crate) fn passes_on(language: Language, import: &Import) -> bool {
    match import.kind {
        ImportKind::ReExport => true,
        ImportKind::Bind => language == Language::Python && !import.type_only,
        ImportKind::Part | ImportKind::Computed | ImportKind::Pattern => false,
    }
}

/// Whether a file says one by one what it gives to others. A module of Python does with its list, and a package with what it
/// imports.
pub(crate) fn has_exports(path: &str, language: Language, parse: &Parse) -> bool {
    use Language::{Component, JavaScript, Python, Tsx, TypeScript};
    match language {
        TypeScript | Tsx | JavaScript | Component => true,
        Python => !parse.exports.is_empty() || path.ends_with("__init__.py"),
        _ => false,
    }
}

/// What is between the parts of a qualified name.
pub(crate) fn separator(language: Language) -> &'static str {
    if language == Language::Rust { "::" } else { "." }
}

/// The first part of a name.
pub(crate) fn head(language: Language, name: &str) -> &str {
    name.split_once(separator(language)).map_or(name, |(head, _)| head)
}

/// Something that a name of a file leads to.
#[derive(Serialize)]
enum Entry<'p> {
    Symbol(Kind, &'p str, u32),
    Export(&'p str, &'p str),
    /// With the number of imports of everything before it, as the first that fits is taken.
    Import(ImportKind, &'p str, &'p Name, &'p str, usize, &'p [Name]),
    Part(&'p str, &'p str, &'p [Name]),
    /// A module of Rust that a `use` or a macro gives a name.
    Module(&'p str, &'p str),
    /// A type that the symbol is made of.
    Heritage(&'p str, &'p str, bool),
}

/// All parts of what others see of a file, each with a hash of what it is.
pub(crate) fn parts(path: &str, language: Language, parse: &Parse) -> Result<BTreeMap<i64, u64>, GraphError> {
    let mut names: BTreeMap<&str, Vec<Entry<'_>>> = BTreeMap::new();
    let mut methods = Vec::new();
    let mut words: BTreeSet<&str> = BTreeSet::new();
    for symbol in &parse.symbols {
        let entry = Entry::Symbol(symbol.kind, &symbol.qualified, symbol.occurrence);
        names.entry(head(language, &symbol.qualified)).or_default().push(entry);
        words.insert(&symbol.name);
        if symbol.kind == Kind::Method {
            methods.push((&symbol.qualified, symbol.occurrence));
        }
    }
    for part in &parse.heritage {
        let Some(symbol) = parse.symbols.get(part.symbol as usize) else { continue };
        let entry = Entry::Heritage(&symbol.qualified, &part.name, part.implements);
        names.entry(head(language, &symbol.qualified)).or_default().push(entry);
    }
    for (theirs, ours) in &parse.exports {
        names.entry(head(language, theirs)).or_default().push(Entry::Export(theirs, ours));
    }
    let mut stars = Vec::new();
    for import in &parse.imports {
        let scope = import.scope.as_str();
        if import.kind == ImportKind::Part {
            let part = Entry::Part(&import.specifier, scope, &import.names);
            let name = if scope.is_empty() { import.specifier.as_str() } else { scope };
            names.entry(head(language, name)).or_default().push(part);
            words.insert(&import.specifier);
            if import.module.is_none() {
                stars.push((import.kind, &import.specifier, scope, &[][..]));
            }
        }
        if language == Language::Rust
            && import.kind != ImportKind::Part
            && let Some(name) = &import.module
        {
            names.entry(name).or_default().push(Entry::Module(&import.specifier, scope));
        }
        // Which file an import of Java means depends on all of its names.
        let all = if language == Language::Java { import.names.as_slice() } else { &[] };
        for name in &import.names {
            words.insert(&name.here);
            if name.there == "*" && name.here.is_empty() {
                stars.push((import.kind, &import.specifier, scope, all));
            }
            let entry = Entry::Import(import.kind, &import.specifier, name, scope, stars.len(), all);
            names.entry(head(language, &name.here)).or_default().push(entry);
        }
    }
    for path in &parse.paths {
        match path.here.as_deref() {
            Some("*") => stars.push((ImportKind::Bind, &path.written, &*path.scope, &[][..])),
            Some(here) => names.entry(here).or_default().push(Entry::Module(&path.written, &path.scope)),
            None => {}
        }
    }
    let mut parts = BTreeMap::new();
    for (name, entries) in &names {
        parts.insert(name_key(path, name), hash(entries)?);
    }
    if !stars.is_empty() {
        parts.insert(stars_key(path), hash(&stars)?);
    }
    if !methods.is_empty() {
        parts.insert(methods_key(path), hash(&methods)?);
    }
    if let Some(clause) = &parse.package {
        parts.insert(clause_key(path), hash(clause)?);
    }
    // What a module of Python gives is asked of it by those who pass on all of it.
    if language == Language::Python || has_exports(path, language, parse) {
        let all: (_, Vec<_>) =
            (public_names(language, parse), stars.iter().map(|(_, specifier, ..)| specifier).collect());
        parts.insert(exports_key(path), hash(&all)?);
    }
    if language == Language::Rust {
        parts.insert(words_key(path), hash(&words)?);
    }
    Ok(parts)
}

/// The keys of the parts that are not the same.
pub(crate) fn differing<'p>(
    before: &'p BTreeMap<i64, u64>,
    after: &'p BTreeMap<i64, u64>,
) -> impl Iterator<Item = i64> + 'p {
    let gone = before.iter().filter(|(key, hash)| after.get(key) != Some(hash));
    let come = after.keys().filter(|key| !before.contains_key(key));
    gone.map(|(key, _)| *key).chain(come.copied())
}

fn hash(value: &impl Serialize) -> Result<u64, GraphError> {
    Ok(identity::number(&identity::digest_bytes(&postcard::to_stdvec(value)?)))
}
