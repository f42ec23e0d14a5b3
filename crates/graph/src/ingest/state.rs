//! The tree at the last moment, in memory: which files there are, and what their manifests say.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::blobs::ParseCache;
use super::language::{Ecosystem, Language, file_name, join, normalise, parent};
use super::manifest::Manifest;
use super::parse::Parse;
use crate::tables::failure::GraphError;
use crate::tables::identity;
use crate::tables::write::{FactSource, Frontier};

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
    /// The package clause of Java, which shows where the sources begin.
    pub(crate) package: Option<String>,
}

impl FileState {
    pub(crate) fn new(blob: Blob, language: Language, parse: &Parse) -> Result<Self, GraphError> {
        let package = parse.package.clone().filter(|_| language == Language::Java);
        Ok(Self { blob, language, interface: interface(parse)?, broken: parse.broken, package })
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
    Ok(identity::number(&identity::digest_bytes(&bytes)))
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
    /// Directories, those that are nearer to the root first.
    by_name: HashMap<(Ecosystem, String), Vec<String>>,
    /// Directories of workspaces, and of the members that they name.
    members: BTreeSet<(Ecosystem, String, String)>,
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
            let held = self.by_name.entry((ecosystem, name)).or_default();
            held.push(directory.clone());
            // Of two with the same name the one that is nearer to the root, then the first by its path.
            held.sort_by_cached_key(|directory| (directory.matches('/').count(), directory.clone()));
        }
        let packages = self.by_directory.entry(directory).or_default();
        packages.push(package);
        packages.sort_by(|left, right| left.path.cmp(&right.path));
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Package> {
        self.by_directory.values().flatten()
    }

    /// Finds the members of the workspaces, when all manifests are there.
    fn find_members(&mut self) {
        let mut members = BTreeSet::new();
        for workspace in self.all().filter(|package| !package.manifest.members.is_empty()) {
            let Some(ecosystem) = workspace.manifest.ecosystem else { continue };
            let (wanted, unwanted) = member_patterns(&workspace.manifest.members);
            let is_own = workspace.manifest.members.iter().any(|member| member == ".");
            for package in self.all().filter(|package| package.manifest.ecosystem == Some(ecosystem)) {
                let Some(inside) = inside(&package.directory, &workspace.directory) else { continue };
                let is_member = if inside.is_empty() { is_own } else { wanted.is_match(inside) };
                if is_member && !unwanted.is_match(inside) {
                    members.insert((ecosystem, workspace.directory.clone(), package.directory.clone()));
                }
            }
        }
        self.members = members;
    }

    /// The directory of the package that a name means in a directory: one of the tree may share its name with what
    /// comes from a registry.
    pub(crate) fn named(&self, ecosystem: Ecosystem, name: &str, from: &str) -> Option<&str> {
        let directories = self.by_name.get(&(ecosystem, name.to_owned()))?;
        let meant = directories.iter().find(|directory| self.is_local(ecosystem, name, directory, from));
        meant.map(String::as_str)
    }

    /// Whether what is in `from` sees the package in `directory` by its name: as its own, as a member of a workspace
    /// around it, or because a manifest above it says so.
    pub(crate) fn is_local(&self, ecosystem: Ecosystem, name: &str, directory: &str, from: &str) -> bool {
        let mut above = from;
        let mut is_nearest = true;
        loop {
            let key = (ecosystem, above.to_owned(), directory.to_owned());
            if self.members.contains(&key) {
                return true;
            }
            let here = self.by_directory.get(above).into_iter().flatten();
            for package in here.filter(|package| package.manifest.ecosystem == Some(ecosystem)) {
                let is_there = |path: &str| normalise(above, path).as_deref() == Some(directory);
                let mut locals = package.manifest.locals.iter();
                if locals.any(|(local, path)| {
                    // A crate may have another name for those who depend on it.
                    let is_meant = local == name || ecosystem == Ecosystem::Cargo;
                    is_meant && (path.is_empty() || is_there(path))
                }) {
                    return true;
                }
                if package.manifest.name.is_some() {
                    if is_nearest && above == directory {
                        return true;
                    }
                    is_nearest = false;
                }
            }
            if above.is_empty() {
                return false;
            }
            above = parent(above);
        }
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

/// A directory as seen from another one that it is in.
fn inside<'d>(directory: &'d str, outer: &str) -> Option<&'d str> {
    if outer.is_empty() || directory == outer {
        return directory.strip_prefix(outer);
    }
    directory.strip_prefix(outer)?.strip_prefix('/')
}

/// Which directories are members of a workspace, and which of them are not all the same.
fn member_patterns(patterns: &[String]) -> (GlobSet, GlobSet) {
    let (mut wanted, mut unwanted) = (GlobSetBuilder::new(), GlobSetBuilder::new());
    for pattern in patterns {
        let (set, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => (&mut unwanted, pattern),
            None => (&mut wanted, pattern.as_str()),
        };
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        // What is not a pattern means nothing.
        if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() {
            set.add(glob);
        }
    }
    let built = |set: GlobSetBuilder| set.build().unwrap_or_else(|_| GlobSet::empty());
    (built(wanted), built(unwanted))
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

    pub(crate) fn manifests(&self) -> &Manifests {
        &self.manifests
    }

    /// Reads the manifests again. Returns whether they mean something else now.
    pub(crate) fn read_manifests(
        &mut self,
        connection: &Connection,
        parses: &mut ParseCache,
    ) -> Result<bool, GraphError> {
        let mut paths: Vec<(&String, &FileState)> =
            self.files.iter().filter(|(_, file)| file.language.is_manifest()).collect();
        paths.sort_by_key(|(path, _)| *path);
        let mut manifests = Manifests::default();
        for (path, file) in paths {
            let parse = parses.get(connection, file.blob, file.language)?;
            if let Some(manifest) = &parse.manifest {
                manifests.add(path, file.language, manifest);
            }
        }
        manifests.find_members();
        let changed = manifests != self.manifests;
        self.manifests = manifests;
        Ok(changed)
    }
}

/// The directory above those that a file's package names.
fn java_root<'p>(path: &'p str, file: &FileState) -> Option<&'p str> {
    let package = file.package.as_ref()?.replace('.', "/");
    let root = parent(path).strip_suffix(&package)?;
    if root.is_empty() { Some(root) } else { root.strip_suffix('/') }
}
