//! Where the packages of Go are.

use super::Link;
use super::imports::{MAX_PACKAGES, Module, Resolved};
use crate::ingest::language::{Ecosystem, Language, join, normalise, parent};
use crate::ingest::parse::Import;
use crate::tables::failure::GraphError;

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Resolved {
    let specifier = import.specifier.as_str();
    if specifier.starts_with("./") || specifier.starts_with("../") {
        return of_path(link, file, specifier);
    }
    let mut found = directories(link, file, specifier);
    // What is vendored has the name of a host, other than what comes with Go.
    if found.is_empty() && specifier.split('/').next().is_some_and(|host| host.contains('.')) {
        let above = std::iter::successors(Some(parent(file)), |own| (!own.is_empty()).then(|| parent(own)));
        let vendored =
            above.take(MAX_PACKAGES).map(|directory| join(directory, &format!("vendor/{specifier}")));
        found.extend(vendored.filter(|directory| !link.list(directory).is_empty()).take(1).map(Some));
    }
    if found.is_empty() {
        return Resolved { package: Some((Ecosystem::Go, import.specifier.clone())), ..Resolved::default() };
    }
    let inside: Vec<&String> = found.iter().flatten().collect();
    let files = inside.iter().flat_map(|directory| sources(link, directory)).collect();
    let module = Module { files, inner: String::new() };
    Resolved { module, ..Resolved::default() }.or_missing(inside.first().map(|first| (*first).clone()))
}

/// The directories that a package can be in: that of the longest name of a module, as with modules within modules, and those
/// by which it is replaced, for whichever program; none for one outside of the tree.
fn directories(link: &Link<'_>, file: &str, specifier: &str) -> Vec<Option<String>> {
    let (mut named, mut replaced) = (Vec::new(), Vec::new());
    for package in link.manifests().of_language(Language::GoMod) {
        let below = |name: &str| {
            let rest = specifier.strip_prefix(name)?;
            if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
        };
        if let Some((name, rest)) =
            package.manifest.name.as_deref().and_then(|name| Some((name, below(name)?)))
        {
            // Of two modules with the same name the file is in one.
            let is_own = is_inside(file, &package.directory);
            named.push((name.len(), is_own, join(&package.directory, rest)));
        }
        for (name, targets) in &package.manifest.aliases {
            let Some(rest) = below(name) else { continue };
            let places = targets.iter().map(|target| {
                let inside = Some(target).filter(|target| !target.starts_with('/'));
                inside.and_then(|target| normalise(&package.directory, target))
            });
            replaced.extend(places.map(|place| (name.len(), place.map(|place| join(&place, rest)))));
        }
    }
    let named = named.into_iter().max().map(|(length, _, directory)| (length, Some(directory)));
    let mut all: Vec<(usize, Option<String>)> = named.into_iter().chain(replaced).collect();
    let longest = all.iter().map(|(length, _)| *length).max();
    all.retain(|(length, _)| Some(*length) == longest);
    let directories = all.into_iter().map(|(_, directory)| Some(directory?.trim_end_matches('/').to_owned()));
    let mut directories: Vec<Option<String>> = directories.collect();
    directories.dedup();
    directories
}

fn is_inside(file: &str, directory: &str) -> bool {
    directory.is_empty() || file.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// A header that C code in a comment includes, or the directory of a package.
fn of_path(link: &Link<'_>, file: &str, path: &str) -> Resolved {
    let Some(place) = normalise(parent(file), path) else { return Resolved::nothing(None) };
    let files = if link.exists(&place) { vec![place.clone()] } else { sources(link, &place) };
    let module = Module { files, inner: String::new() };
    Resolved { module, ..Resolved::default() }.or_missing(Some(place))
}

fn sources(link: &Link<'_>, directory: &str) -> Vec<String> {
    link.list(directory).into_iter().filter(|path| is_source(path)).collect()
}

fn is_source(path: &str) -> bool {
    path.ends_with(".go") && !path.ends_with("_test.go")
}

/// Other files of the same package, whose names are seen without an import.
pub(super) fn siblings(link: &Link<'_>) -> Result<Vec<String>, GraphError> {
    let own = link.clause(link.path)?;
    let mut files = Vec::new();
    for path in link.list(parent(link.path)) {
        if path == link.path || !path.ends_with(".go") {
            continue;
        }
        // Tests of a package are in it, but it does not see them.
        if path.ends_with("_test.go") && !link.path.ends_with("_test.go") {
            continue;
        }
        if link.clause(&path)? == own {
            files.push(path);
        }
    }
    Ok(files)
}
