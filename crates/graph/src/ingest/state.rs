//! The tree at the last moment, in memory: which files there are, and what their manifests say.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::blobs::Parses;
use super::language::{Ecosystem, Language, file_name, join, parent};
use super::manifest::Manifest;
use super::parse::Parse;
use crate::store::failure::GraphError;
use crate::store::identity;
use crate::store::write::Owner;

/// The id of a blob.
pub(crate) type Blob = [u8; 20];

/// What is known of a file at the last moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileNow {
    pub(crate) blob: Blob,
    pub(crate) language: Language,
    /// A hash of what other files can see of it.
    pub(crate) interface: u64,
    pub(crate) broken: bool,
}

impl FileNow {
    pub(crate) fn new(blob: Blob, language: Language, parse: &Parse) -> Result<Self, GraphError> {
        Ok(Self { blob, language, interface: interface(parse)?, broken: parse.broken })
    }
}

/// Names, not lines: what moves within a file changes nothing for those who import it.
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
    let bytes = postcard::to_stdvec(&(symbols, imports, &parse.exports, &parse.package))?;
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    Ok(identity::number(&identity::digest(&[&text])))
}

/// One package of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) directory: String,
    pub(crate) path: String,
    pub(crate) language: Language,
    pub(crate) manifest: Manifest,
}

/// All manifests of the tree, without what does not matter for links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifests {
    by_directory: BTreeMap<String, Vec<Package>>,
    by_name: HashMap<(Ecosystem, String), String>,
}

impl Manifests {
    fn add(&mut self, path: &str, language: Language, manifest: &Manifest) {
        let directory = parent(path).to_owned();
        let package = Package {
            directory: directory.clone(),
            path: path.to_owned(),
            language,
            manifest: manifest.for_links(),
        };
        if let (Some(ecosystem), Some(name)) = (manifest.ecosystem, &manifest.name) {
            let name = if ecosystem == Ecosystem::Cargo { name.replace('-', "_") } else { name.clone() };
            // Of two with the same name the one that is nearer to the root, then the first by its path.
            let depth = |directory: &str| (directory.matches('/').count(), directory.to_owned());
            let held = self.by_name.entry((ecosystem, name)).or_insert_with(|| directory.clone());
            if depth(&directory) < depth(held) {
                held.clone_from(&directory);
            }
        }
        let packages = self.by_directory.entry(directory).or_default();
        packages.push(package);
        packages.sort_by(|left, right| left.path.cmp(&right.path));
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Package> {
        self.by_directory.values().flatten()
    }

    /// The directory of a package of the tree.
    pub(crate) fn named(&self, ecosystem: Ecosystem, name: &str) -> Option<&str> {
        self.by_name.get(&(ecosystem, name.to_owned())).map(String::as_str)
    }

    pub(crate) fn at(&self, directory: &str, language: Language) -> Option<&Package> {
        self.by_directory.get(directory)?.iter().find(|package| package.language == language)
    }

    pub(crate) fn of_path(&self, path: &str) -> Option<&Package> {
        self.by_directory.get(parent(path))?.iter().find(|package| package.path == path)
    }

    /// The nearest package above `directory`, itself included, that `wanted` accepts.
    pub(crate) fn nearest(&self, directory: &str, wanted: impl Fn(&Package) -> bool) -> Option<&Package> {
        let mut directory = directory;
        loop {
            let here = self.by_directory.get(directory).into_iter().flatten().find(|package| wanted(package));
            if here.is_some() || directory.is_empty() {
                return here;
            }
            directory = parent(directory);
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct State {
    files: HashMap<String, FileNow>,
    directories: HashMap<String, BTreeSet<String>>,
    manifests: Manifests,
}

impl State {
    pub(crate) fn load(connection: &Connection, parses: &mut Parses) -> Result<Self, GraphError> {
        let mut state = Self::default();
        let mut statement = connection.prepare_cached("SELECT name, file FROM now WHERE owner = ?1")?;
        let mut rows = statement.query([Owner::File as i64])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let file = postcard::from_bytes(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?)?;
            state.insert(name, file);
        }
        state.read_manifests(connection, parses)?;
        Ok(state)
    }

    pub(crate) fn insert(&mut self, path: String, file: FileNow) {
        let names = self.directories.entry(parent(&path).to_owned()).or_default();
        names.insert(file_name(&path).to_owned());
        self.files.insert(path, file);
    }

    pub(crate) fn remove(&mut self, path: &str) {
        if let Some(names) = self.directories.get_mut(parent(path)) {
            names.remove(file_name(path));
            if names.is_empty() {
                self.directories.remove(parent(path));
            }
        }
        self.files.remove(path);
    }

    pub(crate) fn file(&self, path: &str) -> Option<&FileNow> {
        self.files.get(path)
    }

    pub(crate) fn files(&self) -> &HashMap<String, FileNow> {
        &self.files
    }

    /// Files right below a directory, by path.
    pub(crate) fn list(&self, directory: &str) -> impl Iterator<Item = String> {
        self.directories.get(directory).into_iter().flatten().map(move |name| join(directory, name))
    }

    pub(crate) fn manifests(&self) -> &Manifests {
        &self.manifests
    }

    /// Reads the manifests again. Answers whether they mean something else now.
    pub(crate) fn read_manifests(
        &mut self,
        connection: &Connection,
        parses: &mut Parses,
    ) -> Result<bool, GraphError> {
        let mut paths: Vec<(&String, &FileNow)> =
            self.files.iter().filter(|(_, file)| file.language.is_manifest()).collect();
        paths.sort_by_key(|(path, _)| *path);
        let mut manifests = Manifests::default();
        for (path, file) in paths {
            let parse = parses.get(connection, file.blob, file.language)?;
            if let Some(manifest) = &parse.manifest {
                manifests.add(path, file.language, manifest);
            }
        }
        let changed = manifests != self.manifests;
        self.manifests = manifests;
        Ok(changed)
    }
}
