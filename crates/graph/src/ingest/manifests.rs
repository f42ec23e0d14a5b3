//! All manifests of the tree: which packages there are, and what files see of them.
//!
//! What a file's links take from the manifests leaves keys (see [`crate::ingest::link`]), one for each part of a directory's
//! manifests, for each name and for each member of a workspace. So a manifest that changes concerns those who looked at the
//! part of it that is another one now, and not the whole tree.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::language::{Ecosystem, Language, normalise, parent};
use super::manifest::Manifest;
use crate::tables::identity;

/// The entry of a Cargo manifest that is the name of its library.
const LIBRARY: &str = "name";

/// One package of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) directory: String,
    pub(crate) path: String,
    pub(crate) language: Language,
    pub(crate) manifest: Manifest,
}

/// A part of a manifest: what is looked up together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// That it is there: its path, language, ecosystem, name and edition. For Go also what it replaces.
    Name,
    /// Names that mean others: aliases, `imports`, and what it extends.
    Aliases,
    /// Where its modules are.
    Entries,
    /// Which packages of the tree it depends on.
    Locals,
    /// The version that members of its workspace inherit.
    Version,
}

impl Part {
    const ALL: [Self; 5] = [Self::Name, Self::Aliases, Self::Entries, Self::Locals, Self::Version];

    fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Aliases => "aliases",
            Self::Entries => "entries",
            Self::Locals => "locals",
            Self::Version => "version",
        }
    }

    /// Whether two packages have the same in this part.
    fn is_same(self, left: &Package, right: &Package) -> bool {
        let (one, other) = (&left.manifest, &right.manifest);
        left.path == right.path
            && left.language == right.language
            && match self {
                Self::Name => {
                    (one.ecosystem, &one.name, one.of_2015) == (other.ecosystem, &other.name, other.of_2015)
                        && (left.language != Language::GoMod || one.aliases == other.aliases)
                }
                Self::Aliases => {
                    (&one.aliases, &one.imports, &one.base_url, &one.extends)
                        == (&other.aliases, &other.imports, &other.base_url, &other.extends)
                        && (&one.references, one.leads_out, one.is_unreadable)
                            == (&other.references, other.leads_out, other.is_unreadable)
                }
                Self::Entries => (&one.name, &one.entries) == (&other.name, &other.entries),
                Self::Locals => {
                    (one.ecosystem, &one.locals, one.name.is_some())
                        == (other.ecosystem, &other.locals, other.name.is_some())
                }
                Self::Version => one.workspace_version == other.workspace_version,
            }
    }
}

/// A member of a workspace: the workspace's directory, and its own.
type Member = (Ecosystem, String, String);

/// All manifests of the tree, without what does not matter for links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifests {
    by_directory: BTreeMap<String, Vec<Package>>,
    /// Directories, those that are nearer to the root first.
    by_name: HashMap<(Ecosystem, String), Vec<String>>,
    /// Directories of the crates whose library has a name of its own, by path.
    by_library: HashMap<String, Vec<String>>,
    members: BTreeSet<Member>,
}

impl Manifests {
    /// Adds a manifest. They have to come by path.
    pub(crate) fn add(&mut self, path: &str, language: Language, manifest: &Manifest) {
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
        if language == Language::CargoToml {
            let libraries = manifest.entries.iter().filter(|(entry, _)| entry == LIBRARY);
            for (_, name) in libraries {
                let held = self.by_library.entry(name.clone()).or_default();
                held.push(directory.clone());
                held.sort();
            }
        }
        let packages = self.by_directory.entry(directory).or_default();
        packages.push(package);
        packages.sort_by(|left, right| left.path.cmp(&right.path));
    }

    /// Finds the members of the workspaces, when all manifests are there.
    pub(crate) fn find_members(&mut self) {
        let all = || self.by_directory.values().flatten();
        let mut members = BTreeSet::new();
        for workspace in all().filter(|package| !package.manifest.members.is_empty()) {
            let Some(ecosystem) = workspace.manifest.ecosystem else { continue };
            let (wanted, unwanted) = member_patterns(&workspace.manifest.members);
            let is_own = workspace.manifest.members.iter().any(|member| member == ".");
            for package in all().filter(|package| package.manifest.ecosystem == Some(ecosystem)) {
                let Some(inside) = inside(&package.directory, &workspace.directory) else { continue };
                let is_member = if inside.is_empty() { is_own } else { wanted.is_match(inside) };
                if is_member && !unwanted.is_match(inside) {
                    members.insert((ecosystem, workspace.directory.clone(), package.directory.clone()));
                }
            }
        }
        self.members = members;
    }

    fn at(&self, directory: &str) -> &[Package] {
        self.by_directory.get(directory).map_or(&[], Vec::as_slice)
    }

    /// The keys of all that other manifests say differently.
    pub(crate) fn differing(&self, other: &Self) -> HashSet<i64> {
        let mut keys = HashSet::new();
        let directories: BTreeSet<&String> =
            self.by_directory.keys().chain(other.by_directory.keys()).collect();
        for directory in directories {
            let (before, after) = (self.at(directory), other.at(directory));
            for part in Part::ALL {
                let is_same = before.len() == after.len()
                    && before.iter().zip(after).all(|(left, right)| part.is_same(left, right));
                if is_same {
                    continue;
                }
                keys.insert(part_key(directory, part));
                if part == Part::Name {
                    keys.extend(before.iter().chain(after).map(|package| language_key(package.language)));
                }
            }
        }
        let names: HashSet<_> = self.by_name.keys().chain(other.by_name.keys()).collect();
        let other_names = names.into_iter().filter(|name| self.by_name.get(name) != other.by_name.get(name));
        keys.extend(other_names.map(|(ecosystem, name)| name_key(*ecosystem, name)));
        let libraries: HashSet<_> = self.by_library.keys().chain(other.by_library.keys()).collect();
        let other_libraries =
            libraries.into_iter().filter(|name| self.by_library.get(*name) != other.by_library.get(*name));
        keys.extend(other_libraries.map(|name| library_key(name)));
        keys.extend(self.members.symmetric_difference(&other.members).map(member_key));
        keys
    }
}

fn part_key(directory: &str, part: Part) -> i64 {
    identity::key(&["manifest", directory, part.name()])
}

/// The key of which manifests of a language there are.
fn language_key(language: Language) -> i64 {
    identity::key(&["manifests", &(language as u8).to_string()])
}

/// The key of which directories have a package of a name.
fn name_key(ecosystem: Ecosystem, name: &str) -> i64 {
    identity::key(&["named", ecosystem.name(), name])
}

fn library_key(name: &str) -> i64 {
    identity::key(&["library", name])
}

fn member_key((ecosystem, workspace, member): &Member) -> i64 {
    identity::key(&["member", ecosystem.name(), workspace, member])
}

/// The manifests as the links of one file see them. It notes the keys of all that is looked up, found or not.
#[derive(Clone, Copy)]
pub(crate) struct ManifestView<'l, 'w> {
    manifests: &'w Manifests,
    keys: &'l RefCell<HashSet<i64>>,
}

impl<'l, 'w> ManifestView<'l, 'w> {
    pub(crate) fn new(manifests: &'w Manifests, keys: &'l RefCell<HashSet<i64>>) -> Self {
        Self { manifests, keys }
    }

    fn note(&self, key: i64) {
        self.keys.borrow_mut().insert(key);
    }

    fn packages(&self, directory: &str, part: Part) -> &'w [Package] {
        self.note(part_key(directory, part));
        self.manifests.at(directory)
    }

    /// All packages of a language. Only their [`Part::Name`] may be read.
    pub(crate) fn of_language(&self, language: Language) -> impl Iterator<Item = &'w Package> + use<'w> {
        self.note(language_key(language));
        let all = self.manifests.by_directory.values().flatten();
        all.filter(move |package| package.language == language)
    }

    /// The directory of the package that a name means in a directory: one of the tree may share its name with what
    /// comes from a registry.
    pub(crate) fn named(&self, ecosystem: Ecosystem, name: &str, from: &str) -> Option<&'w str> {
        self.note(name_key(ecosystem, name));
        let directories = self.manifests.by_name.get(&(ecosystem, name.to_owned()))?;
        let meant = directories.iter().find(|directory| self.is_local(ecosystem, name, directory, from));
        meant.map(String::as_str)
    }

    /// The directory of the crate whose library has a name in a directory.
    pub(crate) fn library(&self, name: &str, from: &str) -> Option<&'w str> {
        self.note(library_key(name));
        let directories = self.manifests.by_library.get(name)?;
        let meant =
            directories.iter().find(|directory| self.is_local(Ecosystem::Cargo, name, directory, from));
        meant.map(String::as_str)
    }

    /// Whether what is in `from` sees the package in `directory` by its name: as its own, as a member of a workspace
    /// around it, or because a manifest above it says so.
    fn is_local(&self, ecosystem: Ecosystem, name: &str, directory: &str, from: &str) -> bool {
        let mut above = from;
        let mut is_nearest = true;
        loop {
            let member = (ecosystem, above.to_owned(), directory.to_owned());
            self.note(member_key(&member));
            if self.manifests.members.contains(&member) {
                return true;
            }
            let here = self.packages(above, Part::Locals).iter();
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

    /// The manifest of a language in a directory. Only this part of it may be read.
    pub(crate) fn at(&self, directory: &str, language: Language, part: Part) -> Option<&'w Package> {
        self.packages(directory, part).iter().find(|package| package.language == language)
    }

    /// The manifest with a path. Only this part of it may be read.
    pub(crate) fn of_path(&self, path: &str, part: Part) -> Option<&'w Package> {
        self.packages(parent(path), part).iter().find(|package| package.path == path)
    }

    /// All packages above `directory`, itself included, that `wanted` accepts, the nearest first. Only this part of them may
    /// be read.
    pub(crate) fn above(
        &self,
        directory: &str,
        part: Part,
        wanted: impl Fn(&Package) -> bool,
    ) -> Vec<&'w Package> {
        let mut found = Vec::new();
        let mut directory = directory;
        loop {
            found.extend(self.packages(directory, part).iter().filter(|package| wanted(package)));
            if directory.is_empty() {
                return found;
            }
            directory = parent(directory);
        }
    }

    /// The nearest package above `directory`, itself included, that `wanted` accepts. Only this part of it may be read.
    pub(crate) fn nearest(
        &self,
        directory: &str,
        part: Part,
        wanted: impl Fn(&Package) -> bool,
    ) -> Option<&'w Package> {
        let mut directory = directory;
        loop {
            let here = self.packages(directory, part).iter().find(|package| wanted(package));
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
