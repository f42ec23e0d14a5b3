//! Where the packages of Go are.

use super::Link;
use super::imports::{Module, Resolved};
use crate::ingest::language::{Ecosystem, Language, join, parent};
use crate::ingest::parse::Import;
use crate::tables::failure::GraphError;

pub(super) fn resolve(link: &Link<'_>, _file: &str, import: &Import) -> Resolved {
    let packages = link.manifests().of_language(Language::GoMod);
    // The longest module path wins, as with modules within modules.
    let best = packages
        .filter_map(|package| {
            let name = package.manifest.name.as_deref()?;
            let rest = import.specifier.strip_prefix(name)?;
            let rest = if rest.is_empty() { rest } else { rest.strip_prefix('/')? };
            Some((name.len(), join(&package.directory, rest)))
        })
        .max();
    if let Some((_, directory)) = best {
        let directory = directory.trim_end_matches('/');
        let files: Vec<String> = link.list(directory).into_iter().filter(|path| is_source(path)).collect();
        let module = Module { files, inner: String::new() };
        return Resolved { module, ..Resolved::default() }.or_missing(Some(directory.to_owned()));
    }
    Resolved { package: Some((Ecosystem::Go, import.specifier.clone())), ..Resolved::default() }
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
