//! What a file gives to others, under the names by which they know it.

use std::collections::BTreeSet;

use serde_json::json;

use super::imports::{Module, Resolved, resolve};
use super::{Link, Occurrences, interface, lookup, symbol_id};
use crate::ingest::language::Language;
use crate::ingest::parse::{Import, Name, Parse};
use crate::tables::facts::Fact;
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;

/// Names of one file; a file that gives more was made by a machine, and the first of them are kept.
const MAX_NAMES: usize = 5000;

/// Modules that are followed through `export *`.
pub(super) const MAX_MODULES: usize = 500;

/// One relationship for each public name, with the symbol, the module or the package that it means.
pub(super) fn exports(
    link: &Link<'_>,
    ids: &Identities,
    parse: &Parse,
    file: i64,
) -> Result<Vec<Fact>, GraphError> {
    let language = link.language(link.path);
    if !interface::has_exports(link.path, language, parse) {
        return Ok(Vec::new());
    }
    let mut facts = Facts { file, occurrences: Occurrences::default(), made: Vec::new() };
    let mut given: BTreeSet<String> = BTreeSet::new();
    let own = Module::file(link.path.to_owned());
    for name in interface::public_names(language, parse) {
        let target = match symbol(link, ids, &own, name)? {
            Some(target) => Some(target),
            None => from_elsewhere(link, ids, parse, name)?,
        };
        if let Some(target) = target {
            facts.add(target, name);
        }
        given.insert(name.to_owned());
    }
    for import in stars(language, parse) {
        let resolved = resolve(link, link.path, import)?;
        if resolved.module.files.is_empty()
            && language != Language::Python
            && let Some(target) = outside(ids, import, &resolved)
        {
            facts.add(target, "*");
        }
        for file in &resolved.module.files {
            for name in names_of(link, file)? {
                if given.len() >= MAX_NAMES {
                    return Ok(facts.made);
                }
                // What a file gives itself hides what it only passes on.
                if given.insert(name.clone())
                    && let Some(target) = symbol(link, ids, &Module::file(file.clone()), &name)?
                {
                    facts.add(target, &name);
                }
            }
        }
    }
    Ok(facts.made)
}

struct Facts {
    file: i64,
    occurrences: Occurrences,
    made: Vec<Fact>,
}

impl Facts {
    fn add(&mut self, target: i64, name: &str) {
        if self.made.len() < MAX_NAMES {
            let occurrence = self.occurrences.next(self.file, target);
            let props = json!({ "name": name }).to_string();
            self.made.push(Fact::edge("EXPORTS", self.file, target, occurrence, props));
        }
    }
}

fn stars(language: Language, parse: &Parse) -> impl Iterator<Item = &Import> {
    let is_star = |name: &Name| name.there == "*" && name.here.is_empty();
    // The list of a module of Python names what it passes on.
    let is_listed = language == Language::Python && !parse.exports.is_empty();
    parse.imports.iter().filter(move |import| {
        !is_listed && interface::passes_on(language, import) && import.names.iter().any(is_star)
    })
}

/// The symbol that a name of a module leads to.
fn symbol(link: &Link<'_>, ids: &Identities, module: &Module, name: &str) -> Result<Option<i64>, GraphError> {
    let Some((path, index)) = lookup::find(link, module, name)? else { return Ok(None) };
    let parse = link.parse(&path)?;
    let symbol = parse.as_ref().and_then(|parse| parse.symbols.get(index as usize));
    Ok(symbol.map(|symbol| symbol_id(ids, &path, symbol)))
}

/// What a name leads to that is no symbol: a module as a whole, or something outside the tree.
fn from_elsewhere(
    link: &Link<'_>,
    ids: &Identities,
    parse: &Parse,
    name: &str,
) -> Result<Option<i64>, GraphError> {
    let renamed = parse.exports.iter().find(|(theirs, _)| theirs == name).map(|(_, ours)| ours.as_str());
    let ours = renamed.unwrap_or(name);
    let language = link.language(link.path);
    for import in &parse.imports {
        let is_given = interface::passes_on(language, import) || renamed.is_some();
        let bound = import.names.iter().find(|bound| bound.here == ours);
        let is_module = import.module.as_deref() == Some(ours);
        if !is_given || (bound.is_none() && !is_module) {
            continue;
        }
        let resolved = resolve(link, link.path, import)?;
        // `from . import part` names a module of its own.
        let part = resolved.parts.iter().find(|(there, _)| bound.is_some_and(|bound| bound.there == *there));
        if let Some(file) = part.and_then(|(_, module)| module.files.first()) {
            return Ok(Some(ids.id("File", &[file])));
        }
        let Some(file) = resolved.module.files.first() else {
            // What a module of Python imports for its own use is given on as well: no one means that, but for a list.
            let is_meant = language != Language::Python || renamed.is_some();
            return Ok(outside(ids, import, &resolved).filter(|_| is_meant));
        };
        let is_whole = is_module || bound.is_some_and(|bound| bound.there == "*");
        return Ok(is_whole.then(|| ids.id("File", &[file])));
    }
    Ok(None)
}

/// The node of a package, or of what is nowhere, that the import has an edge to.
fn outside(ids: &Identities, import: &Import, resolved: &Resolved) -> Option<i64> {
    resolved.outside(import).map(|outside| outside.id(ids))
}

/// The names that a file gives to others, those that it passes on among them, and without its default.
fn names_of(link: &Link<'_>, file: &str) -> Result<BTreeSet<String>, GraphError> {
    let mut names = BTreeSet::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut open = vec![file.to_owned()];
    while let Some(file) = open.pop() {
        if seen.len() >= MAX_MODULES || !seen.insert(file.clone()) {
            continue;
        }
        let Some(parse) = link.exports(&file)? else { continue };
        let language = link.language(&file);
        names.extend(interface::public_names(language, &parse).into_iter().map(str::to_owned));
        for import in stars(language, &parse) {
            open.extend(resolve(link, &file, import)?.module.files);
        }
    }
    names.remove("default");
    Ok(names)
}
