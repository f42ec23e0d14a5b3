//! What files see of each other, part by part: who asked for one name of a file is not linked again when another one
//! comes or goes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::ingest::language::Language;
use crate::ingest::parse::{ImportKind, Kind, Name, Parse};
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

/// The names that a file gives to others, but for those of `export *`.
pub(crate) fn public_names(parse: &Parse) -> BTreeSet<&str> {
    let mut names: BTreeSet<&str> = parse.exports.iter().map(|(theirs, _)| theirs.as_str()).collect();
    let renamed: BTreeSet<&str> = parse.exports.iter().map(|(_, ours)| ours.as_str()).collect();
    let own = parse.symbols.iter().filter(|symbol| symbol.exported && symbol.container.is_none());
    names.extend(own.map(|symbol| symbol.name.as_str()).filter(|name| !renamed.contains(name)));
    let given = parse.imports.iter().filter(|import| import.kind == ImportKind::ReExport);
    names.extend(given.flat_map(|import| &import.names).map(|name| name.here.as_str()));
    names.remove("");
    names
}

/// Whether files of a language say one by one what they give to others.
pub(crate) fn has_exports(language: Language) -> bool {
    use Language::{Component, JavaScript, Tsx, TypeScript};
    matches!(language, TypeScript | Tsx | JavaScript | Component)
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
    if has_exports(language) {
        let all: (_, Vec<_>) =
            (public_names(parse), stars.iter().map(|(_, specifier, ..)| specifier).collect());
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
