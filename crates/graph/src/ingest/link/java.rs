//! Where the packages of Java are.

use std::collections::BTreeSet;

use super::Link;
use super::imports::{Module, Resolved};
use crate::ingest::language::{Ecosystem, Language, join, parent};
use crate::ingest::parse::Import;
use crate::tables::failure::GraphError;

/// Usual places of sources, below a project and below each module of it.
const PLACES: [&str; 4] = ["src/main/java", "src/test/java", "src", ""];

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Result<Resolved, GraphError> {
    let roots = roots(link, file)?;
    let is_wild = import.names.iter().any(|name| name.there == "*");
    if is_wild {
        for root in &roots {
            let files = sources(link, &join(root, &import.specifier.replace('.', "/")));
            if !files.is_empty() {
                return Ok(of(Module { files, inner: String::new() }));
            }
        }
    }
    // `a.b.Outer.Inner` and the class of a static import are found in `a/b/Outer.java`.
    let parts: Vec<&str> = import.specifier.split('.').collect();
    for length in (1..=parts.len()).rev() {
        let (class, inner) =
            (parts.get(..length).unwrap_or_default(), parts.get(length..).unwrap_or_default());
        for root in &roots {
            let path = join(root, &format!("{}.java", class.join("/")));
            if link.exists(&path) {
                return Ok(of(Module { files: vec![path], inner: container(import, class, inner) }));
            }
        }
    }
    let package = if is_wild && !import.specifier.is_empty() {
        import.specifier.clone()
    } else {
        let words: Vec<&str> =
            parts.iter().copied().take_while(|part| part.starts_with(char::is_lowercase)).collect();
        if words.is_empty() { import.specifier.clone() } else { words.join(".") }
    };
    Ok(Resolved { package: Some((Ecosystem::Maven, package)), ..Resolved::default() })
}

fn of(module: Module) -> Resolved {
    Resolved { module, ..Resolved::default() }
}

/// The classes between the file and the imported name.
fn container(import: &Import, class: &[&str], inner: &[&str]) -> String {
    let imported = import.names.first().map_or("", |name| name.there.as_str());
    let mut containers: Vec<&str> = class.last().copied().into_iter().chain(inner.iter().copied()).collect();
    // A class that is imported by its own name is not a container of itself; that of a static member is.
    if containers.last().is_some_and(|last| *last == imported) {
        containers.pop();
    }
    containers.join(".")
}

fn roots(link: &Link<'_>, file: &str) -> Result<Vec<String>, GraphError> {
    let mut roots = Vec::new();
    let package = link.clause(file)?.unwrap_or_default();
    let directory = parent(file);
    if let Some(root) = directory.strip_suffix(&package.replace('.', "/")) {
        roots.push(root.trim_end_matches('/').to_owned());
    }
    let mut projects: BTreeSet<String> = BTreeSet::from([String::new()]);
    let packages = link.manifests().of_language(Language::Pom);
    projects.extend(packages.map(|package| package.directory.clone()));
    for project in projects {
        roots.extend(PLACES.iter().map(|place| join(&project, place).trim_end_matches('/').to_owned()));
    }
    // Other build tools have no manifest that we read; the package clauses of the files say as much.
    roots.extend(link.world.state.java_roots().cloned());
    let mut seen = std::collections::HashSet::new();
    roots.retain(|root| seen.insert(root.clone()));
    Ok(roots)
}

fn sources(link: &Link<'_>, directory: &str) -> Vec<String> {
    link.list(directory).into_iter().filter(|path| path.ends_with(".java")).collect()
}

/// The file of the same package that holds a class: tests are in another directory than what they test.
pub(super) fn siblings(link: &Link<'_>, class: &str) -> Result<Vec<String>, GraphError> {
    if !class.starts_with(char::is_uppercase) {
        return Ok(Vec::new());
    }
    let package = link.clause(link.path)?.unwrap_or_default();
    let file = join(&package.replace('.', "/"), &format!("{class}.java"));
    let mut paths = vec![join(parent(link.path), &format!("{class}.java"))];
    paths.extend(roots(link, link.path)?.iter().map(|root| join(root, &file)));
    Ok(paths.into_iter().find(|path| path != link.path && link.exists(path)).into_iter().collect())
}
