//! Where the modules of Python are.

use super::Link;
use super::imports::{MAX_PACKAGES, Missing, Module, Resolved};
use crate::ingest::language::{Ecosystem, Language, join, normalise, parent};
use crate::ingest::parse::{Import, OWN_DIRECTORY};

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Resolved {
    let specifier = import.specifier.as_str();
    if specifier.contains('/') {
        return of_path(link, file, specifier);
    }
    let dots = specifier.chars().take_while(|character| *character == '.').count();
    let path = specifier.get(dots..).unwrap_or_default().replace('.', "/");
    if dots > 0 {
        let mut directory = Some(parent(file));
        for _ in 1..dots {
            directory = directory.filter(|directory| !directory.is_empty()).map(parent);
        }
        let base = directory.and_then(|directory| normalise(directory, &path));
        let Some(base) = base else { return Resolved::nothing(None) };
        let missing =
            Some(Missing { target: Some(base.clone()), by_name: path.is_empty(), ..Missing::default() });
        return Resolved { missing, ..at(link, &base, import, Directories::Modules) };
    }
    let mut resolved = Resolved::default();
    for directory in import.scope.lines() {
        for place in places(file, directory) {
            resolved.add(at(link, &join(&place, &path), import, Directories::Modules));
        }
    }
    let roots = roots(link, file);
    // A directory without an `__init__.py` is a module where nothing else is.
    let usual = [Directories::Nothing, Directories::Modules].into_iter().find_map(|directories| {
        let mut all = roots.iter().map(|root| at(link, &join(root, &path), import, directories));
        all.find(Resolved::is_in_tree)
    });
    resolved.add(usual.unwrap_or_default());
    if resolved.is_in_tree() {
        return resolved;
    }
    // Python reads the modules around what it does not find, and names of a module may be given like modules.
    let ends = path.rmatch_indices('/').map(|(at, _)| at).take(MAX_PACKAGES);
    for around in ends.filter_map(|end| path.get(..end)) {
        let own = roots.iter().find_map(|root| module(link, &join(root, around)).map(|file| (root, file)));
        let Some((root, file)) = own else { continue };
        let inner = path.get(around.len() + 1..).unwrap_or_default().replace('/', ".");
        // A package may have more modules than are known, a module has none.
        let missing = file.ends_with("/__init__.py").then(|| Missing {
            target: Some(join(root, &path)),
            is_inside: true,
            ..Missing::default()
        });
        return Resolved { module: Module { files: vec![file], inner }, missing, ..Resolved::default() };
    }
    // Above the root may be the root again, by the name of its directory.
    let leaves = |path: &str| path.starts_with(OWN_DIRECTORY) && places(file, path).is_empty();
    if import.scope.lines().any(leaves) {
        return Resolved::nothing(None);
    }
    let name = specifier.split('.').next().unwrap_or_default().to_owned();
    Resolved { package: Some((Ecosystem::Pypi, name)), ..Resolved::default() }
}

/// A file that is named by its path.
fn of_path(link: &Link<'_>, file: &str, path: &str) -> Resolved {
    let places = places(file, path);
    let files: Vec<String> = places.iter().filter(|path| link.exists(path)).cloned().collect();
    let module = Module { files, inner: String::new() };
    Resolved { module, ..Resolved::default() }.or_missing(places.into_iter().next())
}

/// What a path can mean. One that does not begin with the directory of the file is seen from where the program is started,
/// which may be there or above.
fn places(file: &str, path: &str) -> Vec<String> {
    if let Some(beside) = path.strip_prefix(OWN_DIRECTORY) {
        return normalise(parent(file), beside).into_iter().collect();
    }
    let above = std::iter::successors(Some(parent(file)), |own| (!own.is_empty()).then(|| parent(own)));
    let mut places: Vec<String> =
        above.take(MAX_PACKAGES).filter_map(|directory| normalise(directory, path)).collect();
    places.dedup();
    places
}

/// What directories without an `__init__.py` are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Directories {
    Nothing,
    /// Modules that have the files in them as their names, once something has imported these.
    Modules,
}

/// Directories in which absolute imports begin: above the file's own packages, the root, and usual places of sources.
fn roots(link: &Link<'_>, file: &str) -> Vec<String> {
    let mut own = parent(file);
    for _ in 0..MAX_PACKAGES {
        if own.is_empty() || !link.exists(&join(own, "__init__.py")) {
            break;
        }
        own = parent(own);
    }
    let mut roots = vec![own.to_owned(), String::new(), "src".to_owned()];
    for package in link.manifests().of_language(Language::PyProject) {
        roots.push(package.directory.clone());
        roots.push(join(&package.directory, "src"));
    }
    let mut seen = std::collections::HashSet::new();
    roots.retain(|root| seen.insert(root.clone()));
    roots
}

/// The module at a path without its extension; its names may be modules below it.
fn at(link: &Link<'_>, base: &str, import: &Import, directories: Directories) -> Resolved {
    let own = module(link, base);
    let has_directories = own.is_some() || directories == Directories::Modules;
    let parts = import
        .names
        .iter()
        .filter(|name| name.there != "*")
        .filter_map(|name| {
            let base = join(base, &name.there);
            let files = match self::module(link, &base) {
                Some(file) => vec![file],
                None if has_directories => directory(link, &base)?,
                None => return None,
            };
            Some((name.there.clone(), Module { files, inner: String::new() }))
        })
        .collect();
    let is_directory = directories == Directories::Modules && import.names.is_empty();
    let files = match own {
        Some(file) => vec![file],
        None if is_directory => directory(link, base).unwrap_or_default(),
        None => Vec::new(),
    };
    let module = Module { files, inner: String::new() };
    Resolved { module, parts, ..Resolved::default() }
}

/// The modules that are right in a directory.
fn directory(link: &Link<'_>, base: &str) -> Option<Vec<String>> {
    let mut files = link.list(base);
    files.retain(|path| link.language(path) == Language::Python);
    Some(files).filter(|files| !files.is_empty())
}

fn module(link: &Link<'_>, base: &str) -> Option<String> {
    if base.is_empty() {
        return Some("__init__.py".to_owned()).filter(|path| link.exists(path));
    }
    [format!("{base}/__init__.py"), format!("{base}.py"), format!("{base}.pyi")]
        .into_iter()
        .find(|path| link.exists(path))
}
