//! From parsed files to facts: a file's nodes, and its links to others.
//!
//! INVARIANT: what is made of a file depends on its own parse, on the tests for existence that were made on the way, on
//! what was asked of other parses (see [`interface`]) and of the manifests (see [`super::manifests`]), and for Java on
//! where packages begin. Each of them but the last leaves a key, and a file is linked again exactly when one of its keys is
//! touched or the last changes.

mod calls;
mod exports;
mod go;
mod heritage;
mod imports;
pub(crate) mod interface;
mod java;
mod javascript;
mod lookup;
mod members;
mod memo;
mod outside;
pub(crate) mod pattern;
mod python;
mod references;
mod rust;
mod rust_paths;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use globset::GlobSet;
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use tgp_contract::canonical;

use super::blobs::ParseCache;
use super::language::{Language, extension, file_name, language_name, parent};
use super::manifest::Manifest;
use super::manifests::{ManifestView, Package, Part};
use super::parse::{Parse, Symbol};
use super::state::{FileState, State};
use crate::tables::facts::Fact;
use crate::tables::failure::GraphError;
use crate::tables::identity::{self, Identities};
use crate::tables::positions::Position;

pub(crate) use memo::Memo;
pub(crate) use outside::Outside;

use memo::{Answer, Question};

/// Everything a link may read.
pub(crate) struct LinkContext<'w> {
    pub(crate) connection: &'w Connection,
    pub(crate) state: &'w State,
    pub(crate) parses: &'w RefCell<ParseCache>,
    pub(crate) tests: &'w GlobSet,
    /// What was looked up for other files, as long as the state is the same.
    pub(crate) memo: RefCell<Memo>,
}

/// What a file says.
#[derive(Default)]
pub(crate) struct Linked {
    pub(crate) facts: Vec<Fact>,
    pub(crate) keys: Vec<i64>,
    /// Packages outside the tree and imports that lead nowhere, as the texts of [`Outside`].
    pub(crate) packages: Vec<String>,
}

/// The key of whether a file is there; the same for all extensions.
pub(crate) fn existence_key(path: &str) -> i64 {
    let name = file_name(path);
    let stem =
        name.get(1..).and_then(|rest| rest.find('.')).map_or(name, |dot| name.get(..=dot).unwrap_or(name));
    identity::key(&["file", parent(path), stem])
}

/// The key of which files are right below a directory.
pub(crate) fn listing_key(directory: &str) -> i64 {
    identity::key(&["directory", directory])
}

/// The key of which files are below a directory, however deep.
pub(crate) fn below_key(directory: &str) -> i64 {
    identity::key(&["below", directory])
}

/// The key of a package outside the tree.
pub(crate) fn package_key(package: &str) -> i64 {
    identity::key(&["package", package])
}

/// A link in progress: reads its context and records what it read.
pub(super) struct Link<'w> {
    world: &'w LinkContext<'w>,
    path: &'w str,
    keys: RefCell<HashSet<i64>>,
    /// How many answers are being found that other links take over.
    shared: Cell<u32>,
}

impl<'w> Link<'w> {
    fn manifests(&self) -> ManifestView<'_, 'w> {
        ManifestView::new(self.world.state.manifests(), &self.keys)
    }

    fn exists(&self, path: &str) -> bool {
        let look = || (existence_key(path), self.world.state.file(path).is_some());
        let (key, is_there) = self.world.memo.borrow_mut().path(path, look);
        self.keys.borrow_mut().insert(key);
        is_there
    }

    /// The answer to a question that other links may have asked before. What it stands on is noted for each of them.
    fn answer(
        &self,
        question: Question,
        find: impl FnOnce(&Question) -> Result<Option<lookup::Found>, GraphError>,
    ) -> Result<Option<lookup::Found>, GraphError> {
        if let Some(Answer { found, keys }) = self.world.memo.borrow().answer(&question) {
            self.keys.borrow_mut().extend(keys.iter());
            return Ok(found);
        }
        // The keys of this question alone; what the link has noted so far waits.
        let before = self.keys.replace(HashSet::new());
        self.shared.set(self.shared.get() + 1);
        let found = find(&question);
        self.shared.set(self.shared.get() - 1);
        let keys: Vec<i64> = self.keys.replace(before).into_iter().collect();
        self.keys.borrow_mut().extend(&keys);
        let found = found?;
        self.world.memo.borrow_mut().keep(question, Answer { found: found.clone(), keys: keys.into() });
        Ok(found)
    }

    fn list(&self, directory: &str) -> Vec<String> {
        self.keys.borrow_mut().insert(listing_key(directory));
        self.world.state.list(directory).collect()
    }

    /// Files below a directory, by path.
    fn below(&self, directory: &str) -> Vec<String> {
        self.keys.borrow_mut().insert(below_key(directory));
        self.world.state.below(directory)
    }

    /// For what a name of a file leads to.
    fn name(&self, path: &str, name: &str) -> Result<Option<Arc<Parse>>, GraphError> {
        let key = interface::name_key(path, interface::head(self.language(path), name));
        self.keep(path, key);
        self.parse(path)
    }

    /// For what a file gives on as a whole.
    fn stars(&self, path: &str) {
        self.keep(path, interface::stars_key(path));
    }

    /// For the names that a file gives to others.
    fn exports(&self, path: &str) -> Result<Option<Arc<Parse>>, GraphError> {
        self.keep(path, interface::exports_key(path));
        self.parse(path)
    }

    /// For the methods of a file.
    fn methods(&self, path: &str) -> Result<Option<Arc<Parse>>, GraphError> {
        self.keep(path, interface::methods_key(path));
        self.parse(path)
    }

    /// For the names that are anywhere in a file.
    fn words(&self, path: &str) -> Result<Option<Arc<Parse>>, GraphError> {
        self.keep(path, interface::words_key(path));
        self.parse(path)
    }

    /// The package clause of a file.
    fn clause(&self, path: &str) -> Result<Option<String>, GraphError> {
        self.keep(path, interface::clause_key(path));
        Ok(self.parse(path)?.and_then(|parse| parse.package.clone()))
    }

    /// A file is linked again anyway when it changes itself. Other links that take the answer over are not.
    fn keep(&self, path: &str, key: i64) {
        if path != self.path || self.shared.get() > 0 {
            self.keys.borrow_mut().insert(key);
        }
    }

    /// A parse without a key: for one of which a part was asked for already.
    fn parse(&self, path: &str) -> Result<Option<Arc<Parse>>, GraphError> {
        let Some(file) = self.world.state.file(path) else { return Ok(None) };
        let mut parses = self.world.parses.borrow_mut();
        parses.get(self.world.connection, file.blob, file.language).map(Some)
    }

    fn language(&self, path: &str) -> Language {
        Language::of(path)
    }

    /// The id of a symbol that was found; `own` are those of this file.
    fn symbol(
        &self,
        ids: &Identities,
        own: &[i64],
        found: &lookup::Found,
    ) -> Result<Option<i64>, GraphError> {
        let (path, index) = found;
        if path == self.path {
            return Ok(own.get(*index as usize).copied());
        }
        let theirs = self.parse(path)?;
        Ok(theirs.and_then(|parse| Some(symbol_id(ids, path, parse.symbols.get(*index as usize)?))))
    }
}

/// The key of a symbol, beside the label.
pub(crate) fn symbol_id(ids: &Identities, path: &str, symbol: &Symbol) -> i64 {
    let occurrence = symbol.occurrence.to_string();
    ids.id("Symbol", &[path, symbol.kind.name(), &symbol.qualified, &occurrence])
}

/// Takes the ids of a file's nodes, before any file links to them.
pub(crate) fn claim(
    connection: &Connection,
    ids: &mut Identities,
    path: &str,
    parse: &Parse,
) -> Result<(), GraphError> {
    ids.claim(connection, "File", &[path])?;
    for symbol in &parse.symbols {
        let occurrence = symbol.occurrence.to_string();
        let key = [path, symbol.kind.name(), &symbol.qualified, occurrence.as_str()];
        ids.claim(connection, "Symbol", &key)?;
    }
    if let Some(manifest) = &parse.manifest
        && let Some((ecosystem, _)) = manifest.ecosystem.zip(manifest.name.as_ref())
    {
        ids.claim(connection, "Package", &["in", ecosystem.name(), parent(path)])?;
    }
    Ok(())
}

/// All facts of a file.
pub(crate) fn link(
    world: &LinkContext<'_>,
    ids: &Identities,
    path: &str,
    file: &FileState,
) -> Result<Linked, GraphError> {
    let link = Link { world, path, keys: RefCell::new(HashSet::new()), shared: Cell::new(0) };
    let parse = world.parses.borrow_mut().get(world.connection, file.blob, file.language)?;
    let file_id = ids.id("File", &[path]);
    let mut facts = vec![Fact::node(file_id, file_props(world, path, file, &parse))];
    let symbols: Vec<i64> = parse.symbols.iter().map(|symbol| symbol_id(ids, path, symbol)).collect();
    for (symbol, id) in parse.symbols.iter().zip(&symbols) {
        let Symbol { line, column, end_line, .. } = *symbol;
        let at = Position::Span { line, column, end_line };
        facts.push(Fact::node(*id, symbol_props(path, symbol)).at(at));
        facts.push(Fact::edge("DEFINES", file_id, *id, 0, empty()));
        let container = symbol.container.and_then(|container| symbols.get(container as usize));
        if let Some(container) = container {
            facts.push(Fact::edge("CONTAINS", *container, *id, 0, empty()));
        }
    }
    if let Some(manifest) = &parse.manifest {
        facts.extend(package_node(&link, ids, manifest));
    }
    if let Some(package) = package_of(&link, file.language)
        && let Some(ecosystem) = package.manifest.ecosystem
    {
        let id = ids.id("Package", &["in", ecosystem.name(), &package.directory]);
        facts.push(Fact::edge("CONTAINS", id, file_id, 0, empty()));
    }
    let mut packages = BTreeSet::new();
    facts.extend(exports::exports(&link, ids, &parse, file_id)?);
    let has_names = !parse.calls.is_empty() || !parse.heritage.is_empty() || !parse.references.is_empty();
    if !parse.imports.is_empty() || !parse.paths.is_empty() || has_names {
        let imported = imports::imports(&link, &parse)?;
        let finder = calls::Finder::new(&link, &parse, &imported);
        facts.extend(heritage::heritage(&link, ids, &parse, &finder, &symbols)?);
        facts.extend(imported.facts(ids, file_id));
        packages.extend(imported.packages());
        facts.extend(calls::calls(&link, ids, &parse, &imported, file_id, &symbols)?);
        facts.extend(references::references(&link, ids, &parse, &finder, file_id, &symbols)?);
    }
    let mut keys: Vec<i64> = link.keys.into_inner().into_iter().collect();
    keys.extend(packages.iter().map(|package| package_key(package)));
    Ok(Linked { facts, keys, packages: packages.into_iter().collect() })
}

pub(crate) fn empty() -> String {
    "{}".to_owned()
}

/// What is true of a path whatever the file holds; all that is known of a file that is gone.
pub(crate) fn path_props(path: &str) -> Map<String, Value> {
    let mut props = Map::new();
    props.insert("path".to_owned(), path.into());
    props.insert("name".to_owned(), file_name(path).into());
    props.insert("extension".to_owned(), extension(file_name(path)).to_ascii_lowercase().into());
    if let Some(language) = language_name(path) {
        props.insert("language".to_owned(), language.into());
    }
    props
}

fn file_props(world: &LinkContext<'_>, path: &str, file: &FileState, parse: &Parse) -> String {
    let mut props = path_props(path);
    props.insert("blob".to_owned(), canonical::hex(&file.blob).into());
    props.insert("bytes".to_owned(), parse.bytes.into());
    if let Some(lines) = parse.lines {
        props.insert("lines".to_owned(), lines.into());
    }
    props.insert("test".to_owned(), world.tests.is_match(path).into());
    props.insert("broken".to_owned(), (parse.broken || parse.unparsed).into());
    if parse.unparsed {
        props.insert("unparsed".to_owned(), true.into());
    }
    Value::Object(props).to_string()
}

fn symbol_props(path: &str, symbol: &Symbol) -> String {
    json!({
        "name": symbol.name,
        "qualifiedName": symbol.qualified,
        "kind": symbol.kind.name(),
        "path": path,
        "exported": symbol.exported,
    })
    .to_string()
}

/// The package that a manifest describes; a manifest without a name (a workspace's, a compiler's) describes none.
fn package_node(link: &Link<'_>, ids: &Identities, manifest: &Manifest) -> Option<Fact> {
    let (ecosystem, name) = manifest.ecosystem.zip(manifest.name.as_ref())?;
    let directory = parent(link.path);
    let inherited = || {
        let above = link.manifests().nearest(directory, Part::Version, |package| {
            package.language == Language::CargoToml && package.manifest.workspace_version.is_some()
        });
        above.and_then(|package| package.manifest.workspace_version.clone())
    };
    let version = if manifest.inherits_version { inherited() } else { manifest.version.clone() };
    let mut props = Map::new();
    props.insert("name".to_owned(), name.as_str().into());
    if let Some(version) = version {
        props.insert("version".to_owned(), version.into());
    }
    props.insert("ecosystem".to_owned(), ecosystem.name().into());
    props.insert("path".to_owned(), directory.into());
    props.insert("external".to_owned(), false.into());
    let id = ids.id("Package", &["in", ecosystem.name(), directory]);
    Some(Fact::node(id, Value::Object(props).to_string()))
}

/// The package that a file belongs to: the one of its own ecosystem where there is one above it, else the
/// nearest.
fn package_of<'w>(link: &Link<'w>, language: Language) -> Option<&'w Package> {
    let (manifests, directory) = (link.manifests(), parent(link.path));
    let named = |package: &Package| package.manifest.ecosystem.is_some() && package.manifest.name.is_some();
    let own = language.ecosystem().and_then(|ecosystem| {
        let is_own = |package: &Package| named(package) && package.manifest.ecosystem == Some(ecosystem);
        manifests.nearest(directory, Part::Name, is_own)
    });
    own.or_else(|| manifests.nearest(directory, Part::Name, named))
}

/// Numbers relationships that have the same ends.
#[derive(Default)]
pub(super) struct Occurrences(HashMap<(i64, i64), usize>);

impl Occurrences {
    pub(super) fn next(&mut self, source: i64, target: i64) -> usize {
        let count = self.0.entry((source, target)).or_default();
        *count += 1;
        *count - 1
    }
}
