//! Where the modules of Rust are.

use super::Link;
use super::imports::{Module, Resolved};
use super::rust_paths;
use crate::ingest::language::{Ecosystem, Language, file_name, join, normalise, parent};
use crate::ingest::manifest::PROGRAM;
use crate::ingest::manifests::{Package, Part};
use crate::ingest::parse::{Import, ImportKind, Meaning};
use crate::tables::failure::GraphError;

/// Parts of a path, and modules that have the same name; more are not written.
pub(super) const MAX_PARTS: usize = 32;

/// Crates that are always there.
pub(super) const BUILT_IN: [&str; 5] = ["std", "core", "alloc", "proc_macro", "test"];

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Result<Resolved, GraphError> {
    if import.kind == ImportKind::Part {
        return Ok(part(link, file, import));
    }
    let found = module(link, file, &import.specifier, &import.scope)?;
    if let Some(module) = found.clone().filter(|module| module.inner.is_empty()) {
        let mut resolved = of_module(link, import, module)?;
        for name in &import.names {
            let is_part = resolved.parts.iter().any(|(there, _)| *there == name.there);
            if !is_part && let Some(file) = resolved.module.files.first() {
                let found = rust_paths::macro_of_root(link, file, bare(&name.there))?;
                resolved.through.extend(found.filter(|file| !file.is_empty()));
            }
        }
        return Ok(resolved);
    }
    let reached = rust_paths::of_use(link, file, &import.specifier, &import.scope)?;
    if let Some((first, others)) = reached.modules.split_first() {
        let mut resolved = of_module(link, import, first.clone())?;
        resolved.through.extend(others.iter().flat_map(|module| module.files.clone()));
        resolved.through.extend(reached.through);
        return Ok(resolved);
    }
    if reached.is_lost || (reached.is_given_up && binds(link, file, &import.specifier)?) {
        return Ok(Resolved::nothing(None));
    }
    if let Some(module) = found {
        return of_module(link, import, module);
    }
    let name = import.specifier.split("::").next().unwrap_or_default();
    if let Some(root) = root_of_2015(link, file)
        && root != file
        && is_local(link, &root, name)?
    {
        // Something of the root itself: `use Result`, `use Kind::*`.
        let inner = import.names.first().map(|_| import.specifier.clone()).unwrap_or_default();
        return Ok(Resolved { module: Module { files: vec![root], inner }, ..Resolved::default() });
    }
    if matches!(name, "" | "self" | "Self") || is_local(link, file, name)? {
        return Ok(Resolved::default());
    }
    let name = renamed(link, file, name);
    Ok(Resolved { package: Some((Ecosystem::Cargo, name)), ..Resolved::default() })
}

/// A file that another one declares or includes.
pub(super) fn part(link: &Link<'_>, file: &str, import: &Import) -> Resolved {
    let named =
        |there: &str| import.names.iter().find(|name| name.there == there).map(|name| name.here.as_str());
    // What is included is beside the file, in whatever module that is written.
    let is_module = import.module.is_some();
    let own = match named("directory") {
        Some(directory) => normalise(parent(file), directory).unwrap_or_default(),
        None => children(link, file, &import.scope),
    };
    let (path, target) = match named("path") {
        Some(path) => {
            let beside = !is_module || (import.scope.is_empty() && named("directory").is_none());
            let path = normalise(if beside { parent(file) } else { &own }, path);
            (path.clone().filter(|path| link.exists(path)), path)
        }
        None => (child(link, &own, &import.specifier), Some(join(&own, &import.specifier))),
    };
    let module = path.map(Module::file).unwrap_or_default();
    let resolved = Resolved { module, ..Resolved::default() };
    if named("maybe").is_some() { resolved } else { resolved.or_missing(target) }
}

/// An import of a module, and which of its names are modules.
fn of_module(link: &Link<'_>, import: &Import, module: Module) -> Result<Resolved, GraphError> {
    let mut parts = Vec::new();
    for name in &import.names {
        if name.there == "*" || !module.inner.is_empty() {
            continue;
        }
        if let Some(found) = below(link, &module, &name.there)? {
            parts.push((name.there.clone(), found));
        }
    }
    Ok(Resolved { module, parts, ..Resolved::default() })
}

/// Whether a name that begins a path is something of the file itself: `use Kind::*` after `enum Kind`.
fn is_local(link: &Link<'_>, file: &str, name: &str) -> Result<bool, GraphError> {
    let Some(parse) = link.words(file)? else { return Ok(false) };
    Ok(parse.symbols.iter().any(|symbol| symbol.name == name)
        || parse.imports.iter().flat_map(|import| &import.names).any(|bound| bound.here == name))
}

/// Whether a file gives the name that begins a path to something.
fn binds(link: &Link<'_>, file: &str, path: &str) -> Result<bool, GraphError> {
    let name = path.split("::").next().unwrap_or_default();
    let Some(parse) = link.name(file, name)? else { return Ok(false) };
    let modules = parse.imports.iter().any(|import| import.module.as_deref() == Some(name));
    Ok(modules || is_local(link, file, name)?)
}

/// The module at a path as seen from a file, and from the module that is written out in it (`scope`).
pub(super) fn module(
    link: &Link<'_>,
    file: &str,
    path: &str,
    scope: &str,
) -> Result<Option<Module>, GraphError> {
    let parts: Vec<&str> = path.split("::").map(bare).take(MAX_PARTS).collect();
    let Some((first, mut rest)) = parts.split_first() else { return Ok(None) };
    let mut module = match *first {
        "crate" => root(link, file).map(Module::file),
        "self" => Some(Module { files: vec![file.to_owned()], inner: scope.to_owned() }),
        "super" => above(link, file, scope),
        name => return named(link, file, name, rest),
    };
    while let Some(("super", after)) = rest.split_first().map(|(part, after)| (*part, after)) {
        module = module.and_then(|module| {
            let file = module.files.first()?;
            above(link, file, &module.inner)
        });
        rest = after;
    }
    match module {
        Some(module) => descend(link, module, rest).map(Some),
        None => Ok(None),
    }
}

/// A path that begins with a name: a module that is declared here, or another crate of the tree.
fn named(link: &Link<'_>, file: &str, name: &str, rest: &[&str]) -> Result<Option<Module>, GraphError> {
    let here = Module::file(file.to_owned());
    if let Some(module) = below(link, &here, name)? {
        return descend(link, module, rest).map(Some);
    }
    if let Some(root) = root_of_2015(link, file)
        && root != file
        && let Some(module) = below(link, &Module::file(root), name)?
    {
        return descend(link, module, rest).map(Some);
    }
    match library_of(link, file, name) {
        Some(path) => descend(link, Module::file(path), rest).map(Some),
        None => Ok(None),
    }
}

/// The root file of the library that a name means in a file.
pub(super) fn library_of(link: &Link<'_>, file: &str, name: &str) -> Option<String> {
    let name = renamed(link, file, name);
    let manifests = link.manifests();
    if BUILT_IN.contains(&name.as_str()) {
        return None;
    }
    let named = manifests.named(Ecosystem::Cargo, &name, parent(file));
    let named = named.or_else(|| manifests.library(&name, parent(file)));
    named.and_then(|directory| library(link, directory))
}

/// A name without the mark of names that would be keywords.
pub(super) fn bare(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}

/// The name of a crate where a manifest gives it another one.
fn renamed(link: &Link<'_>, file: &str, name: &str) -> String {
    let is_cargo = |package: &Package| {
        package.language == Language::CargoToml
            && package.manifest.aliases.iter().any(|(alias, _)| alias == name)
    };
    let package = link.manifests().nearest(parent(file), Part::Aliases, is_cargo);
    let alias = package.and_then(|package| package.manifest.aliases.iter().find(|(alias, _)| alias == name));
    alias.and_then(|(_, meant)| meant.first()).map_or_else(|| name.to_owned(), Clone::clone)
}

/// The root of a crate of the edition of 2015; none for later ones.
pub(super) fn root_of_2015(link: &Link<'_>, file: &str) -> Option<String> {
    let package = link.manifests().nearest(parent(file), Part::Name, |package| {
        package.language == Language::CargoToml && package.manifest.name.is_some()
    });
    package.filter(|package| package.manifest.of_2015).and_then(|_| root(link, file))
}

/// The root file of a package's library.
fn library(link: &Link<'_>, directory: &str) -> Option<String> {
    let manifest = &link.manifests().at(directory, Language::CargoToml, Part::Entries)?.manifest;
    let written = manifest.entries.iter().find(|(entry, _)| entry == ".").map(|(_, path)| path.as_str());
    let path = normalise(directory, written.unwrap_or("src/lib.rs"))?;
    link.exists(&path).then_some(path)
}

/// The root file of the crate that a file is part of.
pub(super) fn root(link: &Link<'_>, file: &str) -> Option<String> {
    let package = link.manifests().nearest(parent(file), Part::Name, |package| {
        package.language == Language::CargoToml && package.manifest.name.is_some()
    });
    let directory = package.map_or("", |package| package.directory.as_str());
    let inside = file.strip_prefix(directory).unwrap_or(file).trim_start_matches('/');
    let parts: Vec<&str> = inside.split('/').collect();
    // Each test, example and further program is its own crate.
    let programs = programs(link, directory);
    let own = match parts.as_slice() {
        _ if programs.iter().any(|program| program == file) => Some(file.to_owned()),
        ["tests" | "examples" | "benches", name] => {
            Some(join(directory, &format!("{}/{name}", parts.first()?)))
        }
        [kind @ ("tests" | "examples" | "benches"), name, ..] => {
            let main = join(directory, &format!("{kind}/{name}/main.rs"));
            let beside = join(directory, &format!("{kind}/{name}.rs"));
            [main, beside].into_iter().find(|path| link.exists(path))
        }
        ["src", "bin", name] => Some(join(directory, &format!("src/bin/{name}"))),
        ["src", "bin", name, ..] => Some(join(directory, &format!("src/bin/{name}/main.rs"))),
        ["src", "main.rs"] | ["build.rs"] => Some(file.to_owned()),
        _ => None,
    };
    let main = join(directory, "src/main.rs");
    let library = library(link, directory);
    // A program in its own directory owns the modules there.
    let place_of_library = library.as_deref().map(parent);
    let place_of_library = place_of_library.filter(|place| file.starts_with(&format!("{place}/")));
    let depth = place_of_library.map_or(0, |place| place.len() + 1);
    let around = programs.into_iter().filter(|program| {
        let place = parent(program);
        place.len() >= depth && place.len() > directory.len() && file.starts_with(&format!("{place}/"))
    });
    own.filter(|path| link.exists(path))
        .or_else(|| around.max_by_key(|program| parent(program).len()))
        .or(library)
        .or_else(|| Some(join(directory, "src/lib.rs")).filter(|path| link.exists(path)))
        .or_else(|| Some(main).filter(|path| link.exists(path)))
}

/// The root files of a package's programs that its manifest names.
fn programs(link: &Link<'_>, directory: &str) -> Vec<String> {
    let package = link.manifests().at(directory, Language::CargoToml, Part::Entries);
    let entries = package.into_iter().flat_map(|package| &package.manifest.entries);
    let written = entries.filter(|(entry, _)| entry == PROGRAM);
    let paths = written.filter_map(|(_, path)| normalise(directory, path));
    paths.filter(|path| link.exists(path)).collect()
}

/// Whether the modules of a file are beside it.
fn is_root(link: &Link<'_>, file: &str) -> bool {
    is_usual_root(file) || root(link, file).is_some_and(|root| root == file)
}

fn is_usual_root(file: &str) -> bool {
    matches!(file_name(file), "lib.rs" | "main.rs" | "mod.rs" | "build.rs")
        || matches!(file_name(parent(file)), "tests" | "examples" | "benches" | "bin")
}

/// The directory in which the modules of a file are.
fn children(link: &Link<'_>, file: &str, scope: &str) -> String {
    let own =
        if is_root(link, file) { parent(file).to_owned() } else { file.trim_end_matches(".rs").to_owned() };
    if scope.is_empty() { own } else { join(&own, &scope.replace("::", "/")) }
}

fn child(link: &Link<'_>, directory: &str, name: &str) -> Option<String> {
    [join(directory, &format!("{name}.rs")), join(directory, &format!("{name}/mod.rs"))]
        .into_iter()
        .find(|path| link.exists(path))
}

/// The module around a module.
pub(super) fn above(link: &Link<'_>, file: &str, scope: &str) -> Option<Module> {
    if !scope.is_empty() {
        let inner = scope.rsplit_once("::").map_or("", |(outer, _)| outer).to_owned();
        return Some(Module { files: vec![file.to_owned()], inner });
    }
    let directory = if file_name(file) == "mod.rs" { parent(parent(file)) } else { parent(file) };
    let names = ["mod.rs", "lib.rs", "main.rs"].map(|name| join(directory, name));
    names
        .into_iter()
        .chain([format!("{directory}.rs")])
        .find(|path| path != file && link.exists(path))
        .or_else(|| root(link, file).filter(|root| root != file && parent(root) == directory))
        .map(Module::file)
}

/// A module right below another: one that is written out, or a file that is declared.
fn below(link: &Link<'_>, module: &Module, name: &str) -> Result<Option<Module>, GraphError> {
    Ok(children_named(link, module, name)?.into_iter().next())
}

/// All modules of a name below another: each may be there under a condition of its own.
pub(super) fn children_named(
    link: &Link<'_>,
    module: &Module,
    name: &str,
) -> Result<Vec<Module>, GraphError> {
    let (Some(file), name) = (module.files.first(), bare(name)) else { return Ok(Vec::new()) };
    let qualified =
        if module.inner.is_empty() { name.to_owned() } else { format!("{}::{name}", module.inner) };
    let Some(parse) = link.name(file, &qualified)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for meaning in parse.meanings(name) {
        let of = match *meaning {
            Meaning::Module(number) => {
                let symbol = parse.symbols.get(number).filter(|symbol| symbol.qualified == qualified);
                symbol.map(|_| Module { files: vec![file.clone()], inner: qualified.clone() })
            }
            Meaning::Import(number) => {
                let declared = parse
                    .imports
                    .get(number)
                    .filter(|import| import.kind == ImportKind::Part && import.scope == module.inner);
                declared.map(|import| part(link, file, import).module)
            }
            Meaning::Path(_) => None,
        };
        found.extend(of.filter(|of| !of.files.is_empty() && !found.contains(of)));
        if found.len() >= MAX_PARTS {
            break;
        }
    }
    Ok(found)
}

/// Follows the parts of a path that are modules; the rest names what is in the last one.
pub(super) fn descend(link: &Link<'_>, module: Module, parts: &[&str]) -> Result<Module, GraphError> {
    let mut module = module;
    let mut parts = parts;
    while let Some((part, rest)) = parts.split_first() {
        match below(link, &module, part)? {
            Some(next) => module = next,
            None => break,
        }
        parts = rest;
    }
    for part in parts {
        module.inner =
            if module.inner.is_empty() { (*part).to_owned() } else { format!("{}::{part}", module.inner) };
    }
    Ok(module)
}
