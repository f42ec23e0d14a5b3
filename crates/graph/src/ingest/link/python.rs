//! Where the modules of Python are.

use super::Link;
use super::imports::{Missing, Module, Resolved};
use crate::ingest::language::{Ecosystem, Language, join, normalise, parent};
use crate::ingest::parse::Import;

/// Packages around a file; deeper ones are not searched.
const MAX_PACKAGES: usize = 32;

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Resolved {
    if import.specifier.contains('/') {
        return of_path(link, file, &import.specifier);
    }
    let dots = import.specifier.chars().take_while(|character| *character == '.').count();
    let path = import.specifier.get(dots..).unwrap_or_default().replace('.', "/");
    if dots > 0 {
        let mut directory = Some(parent(file));
        for _ in 1..dots {
            directory = directory.filter(|directory| !directory.is_empty()).map(parent);
        }
        let base = directory.and_then(|directory| normalise(directory, &path));
        let Some(base) = base else { return Resolved::nothing(None) };
        let missing = Some(Missing { target: Some(base.clone()), by_name: path.is_empty() });
        return Resolved { missing, ..at(link, &base, import) };
    }
    for root in roots(link, file) {
        let resolved = at(link, &join(&root, &path), import);
        if !resolved.module.files.is_empty() || !resolved.parts.is_empty() {
            return resolved;
        }
    }
    let name = import.specifier.split('.').next().unwrap_or_default().to_owned();
    Resolved { package: Some((Ecosystem::Pypi, name)), ..Resolved::default() }
}

/// A file that is named by its path: seen from the file, or from the root where the program is started.
fn of_path(link: &Link<'_>, file: &str, path: &str) -> Resolved {
    let places = [normalise(parent(file), path), normalise("", path)];
    let files: Vec<String> = places.iter().flatten().filter(|path| link.exists(path)).cloned().collect();
    let module = Module { files, inner: String::new() };
    Resolved { module, ..Resolved::default() }.or_missing(places.into_iter().flatten().next())
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
fn at(link: &Link<'_>, base: &str, import: &Import) -> Resolved {
    let module = module(link, base).map(Module::file).unwrap_or_default();
    let parts = import
        .names
        .iter()
        .filter(|name| name.there != "*")
        .filter_map(|name| {
            let file = self::module(link, &join(base, &name.there))?;
            Some((name.there.clone(), Module::file(file)))
        })
        .collect();
    Resolved { module, parts, ..Resolved::default() }
}

fn module(link: &Link<'_>, base: &str) -> Option<String> {
    if base.is_empty() {
        return Some("__init__.py".to_owned()).filter(|path| link.exists(path));
    }
    [format!("{base}/__init__.py"), format!("{base}.py"), format!("{base}.pyi")]
        .into_iter()
        .find(|path| link.exists(path))
}
