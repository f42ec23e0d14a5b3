//! The tree at the last moment, in memory: which files there are, and what their manifests say.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::blobs::ParseCache;
use super::language::{Language, file_name, join, parent};
use super::manifests::Manifests;
use super::parse::Parse;
use crate::tables::facts::{FactSource, Frontier};
use crate::tables::failure::GraphError;
use crate::tables::identity;

/// The id of a blob.
pub(crate) type Blob = [u8; 20];

/// What is known of a file at the last moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    pub(crate) blob: Blob,
    pub(crate) language: Language,
    /// A hash of what other files can see of it.
    pub(crate) interface: u64,
    pub(crate) broken: bool,
    /// Whether links depend on what it says as a manifest.
    pub(crate) has_manifest: bool,
    /// The package clause of Java, which shows where the sources begin.
    pub(crate) package: Option<String>,
}

impl FileState {
    pub(crate) fn new(blob: Blob, language: Language, parse: &Parse) -> Result<Self, GraphError> {
        let package = parse.package.clone().filter(|_| language == Language::Java);
        let (broken, has_manifest) = (parse.broken, parse.manifest.is_some());
        Ok(Self { blob, language, interface: interface(parse)?, broken, has_manifest, package })
    }
}

/// Names and not lines: what moves within a file changes nothing for those who import it.
fn interface(parse: &Parse) -> Result<u64, GraphError> {
    let symbols: Vec<_> = parse
        .symbols
        .iter()
        .map(|symbol| (symbol.kind, &symbol.qualified, symbol.exported, symbol.container, symbol.occurrence))
        .collect();
    let imports: Vec<_> = parse
        .imports
        .iter()
        .map(|import| (import.kind, &import.specifier, &import.names, &import.module, &import.scope))
        .collect();
    let named = parse.paths.iter().filter(|path| path.here.is_some());
    let paths: Vec<_> = named.map(|path| (&path.written, &path.here, &path.scope)).collect();
    let bytes =
        postcard::to_stdvec(&(symbols, imports, &parse.exports, &parse.package, &parse.heritage, paths))?;
    Ok(identity::number(&identity::digest_bytes(&bytes)))
}

#[derive(Clone, Default)]
pub(crate) struct State {
    files: HashMap<String, FileState>,
    directories: HashMap<String, BTreeSet<String>>,
    manifests: Manifests,
    /// Directories in which packages of Java begin, and how many files say so.
    java_roots: BTreeMap<String, usize>,
}

impl State {
    /// The state at one end of the moments.
    pub(crate) fn load(
        connection: &Connection,
        frontier: Frontier,
        parses: &mut ParseCache,
    ) -> Result<Self, GraphError> {
        let mut state = Self::default();
        let sql = format!("SELECT name, file FROM {} WHERE owner = ?1", frontier.ledger());
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query([FactSource::File as i64])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let file = postcard::from_bytes(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?)?;
            state.insert(name, file);
        }
        state.read_manifests(connection, parses)?;
        Ok(state)
    }

    pub(crate) fn insert(&mut self, path: String, file: FileState) {
        self.forget_java_root(&path);
        if let Some(root) = java_root(&path, &file) {
            *self.java_roots.entry(root.to_owned()).or_default() += 1;
        }
        let names = self.directories.entry(parent(&path).to_owned()).or_default();
        names.insert(file_name(&path).to_owned());
        self.files.insert(path, file);
    }

    fn forget_java_root(&mut self, path: &str) {
        let Some(root) = self.files.get(path).and_then(|file| java_root(path, file)) else { return };
        if let Some(count) = self.java_roots.get_mut(root) {
            *count -= 1;
            if *count == 0 {
                self.java_roots.remove(root);
            }
        }
    }

    /// Directories in which packages of Java begin, by path.
    pub(crate) fn java_roots(&self) -> impl Iterator<Item = &String> {
        self.java_roots.keys()
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.forget_java_root(path);
        if let Some(names) = self.directories.get_mut(parent(path)) {
            names.remove(file_name(path));
            if names.is_empty() {
                self.directories.remove(parent(path));
            }
        }
        self.files.remove(path);
    }

    pub(crate) fn file(&self, path: &str) -> Option<&FileState> {
        self.files.get(path)
    }

    pub(crate) fn files(&self) -> &HashMap<String, FileState> {
        &self.files
    }

    /// Files right below a directory, by path.
    pub(crate) fn list(&self, directory: &str) -> impl Iterator<Item = String> {
        self.directories.get(directory).into_iter().flatten().map(move |name| join(directory, name))
    }

    /// Files below a directory, by path.
    pub(crate) fn below(&self, directory: &str) -> Vec<String> {
        let inside = format!("{directory}/");
        let is_inside = |path: &&String| directory.is_empty() || path.starts_with(&inside);
        let mut files: Vec<String> = self.files.keys().filter(is_inside).cloned().collect();
        files.sort();
        files
    }

    pub(crate) fn manifests(&self) -> &Manifests {
        &self.manifests
    }

    /// Reads the manifests again. Returns the keys of what they say differently now.
    pub(crate) fn read_manifests(
        &mut self,
        connection: &Connection,
        parses: &mut ParseCache,
    ) -> Result<HashSet<i64>, GraphError> {
        let mut paths: Vec<(&String, &FileState)> =
            self.files.iter().filter(|(_, file)| file.has_manifest).collect();
        paths.sort_by_key(|(path, _)| *path);
        let mut manifests = Manifests::default();
        for (path, file) in paths {
            let parse = parses.get(connection, file.blob, file.language)?;
            if let Some(manifest) = &parse.manifest {
                manifests.add(path, file.language, manifest);
            }
        }
        manifests.find_members();
        let touched = self.manifests.differing(&manifests);
        self.manifests = manifests;
        Ok(touched)
    }
}

/// The directory above those that a file's package names.
fn java_root<'p>(path: &'p str, file: &FileState) -> Option<&'p str> {
    let package = file.package.as_ref()?.replace('.', "/");
    let root = parent(path).strip_suffix(&package)?;
    if root.is_empty() { Some(root) } else { root.strip_suffix('/') }
}
