//! What a file's imports lead to, and which names they bind.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::json;

use super::outside::Outside;
use super::{Link, Occurrences, go, java, javascript, pattern, python, rust, rust_paths};
use crate::ingest::language::{Ecosystem, Language, join};
use crate::ingest::parse::{Import, ImportKind, Name, Parse};
use crate::tables::facts::Fact;
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;
use crate::tables::positions::Position;

/// Packages and directories around a file or a module that are searched; deeper ones are not.
pub(super) const MAX_PACKAGES: usize = 32;

/// A module: the files that make it, and the container within them (`Outer` for an import of what is in a class).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) files: Vec<String>,
    pub(super) inner: String,
}

impl Module {
    pub(super) fn file(path: String) -> Self {
        Self { files: vec![path], inner: String::new() }
    }

    fn add(&mut self, other: Self) {
        let others = other.files.into_iter().filter(|file| !self.files.contains(file));
        self.files.extend(others.collect::<Vec<_>>());
    }
}

/// Where a specifier leads.
#[derive(Clone, Debug, Default)]
pub(super) struct Resolved {
    pub(super) module: Module,
    /// Names of the import that are modules themselves.
    pub(super) parts: Vec<(String, Module)>,
    pub(super) package: Option<(Ecosystem, String)>,
    /// Further files that the way there leads through.
    pub(super) through: Vec<String>,
    /// Where what is not found would be; none where nothing is missing.
    pub(super) missing: Option<Missing>,
}

impl Resolved {
    /// What is in no tree and is not a package.
    pub(super) fn nothing(target: Option<String>) -> Self {
        Self { missing: Some(Missing { target, ..Missing::default() }), ..Self::default() }
    }

    /// The package, or what is nowhere, that an import leads to as a whole.
    pub(super) fn outside(&self, import: &Import) -> Option<Outside> {
        if let Some((ecosystem, name)) = &self.package {
            return Some(Outside::Package { ecosystem: ecosystem.name().to_owned(), name: name.clone() });
        }
        let missing = self.missing.as_ref().filter(|missing| !missing.by_name)?;
        let (specifier, computed) = (import.specifier.clone(), is_computed(import));
        Some(Outside::Unresolved { specifier, target: missing.target.clone(), computed })
    }

    /// Whether any file was found.
    pub(super) fn is_in_tree(&self) -> bool {
        !self.module.files.is_empty() || !self.parts.is_empty()
    }

    /// Adds what the same import may lead to as well.
    pub(super) fn add(&mut self, other: Self) {
        self.module.add(other.module);
        for (name, module) in other.parts {
            match self.parts.iter_mut().find(|(own, _)| *own == name) {
                Some((_, own)) => own.add(module),
                None => self.parts.push((name, module)),
            }
        }
    }

    /// Says where the file would be, in case it is not found.
    pub(super) fn or_missing(self, target: Option<String>) -> Self {
        Self { missing: Some(Missing { target, ..Missing::default() }), ..self }
    }
}

/// Where a specifier would lead, if it led anywhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// A path of the tree, without its extension where none is written.
    pub(super) target: Option<String>,
    /// Whether each name of the import is its own file in `target`.
    pub(super) by_name: bool,
    /// Whether it is missing though a package around it was found.
    pub(super) is_inside: bool,
}

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Result<Resolved, GraphError> {
    if import.kind == ImportKind::Computed {
        return Ok(Resolved::nothing(None));
    }
    if import.kind == ImportKind::Pattern {
        let resolved = pattern::resolve(link, file, import);
        // What Go embeds is data that may be built later.
        let is_embedded = link.language(file) == Language::Go;
        return Ok(if is_embedded { Resolved { missing: None, ..resolved } } else { resolved });
    }
    match link.language(file) {
        Language::TypeScript | Language::Tsx | Language::JavaScript | Language::Component => {
            Ok(javascript::resolve(link, file, import))
        }
        Language::Rust => rust::resolve(link, file, import),
        Language::Python => Ok(python::resolve(link, file, import)),
        Language::Go => Ok(go::resolve(link, file, import)),
        Language::Java => java::resolve(link, file, import),
        _ => Ok(Resolved::default()),
    }
}

/// Whether what is loaded is only known when the code runs, as far as the tree says.
fn is_computed(import: &Import) -> bool {
    matches!(import.kind, ImportKind::Computed | ImportKind::Pattern)
}

/// Whether the names of an import are names of what it leads to.
fn has_names(import: &Import) -> bool {
    !import.names.is_empty() && !matches!(import.kind, ImportKind::Part | ImportKind::Pattern)
}

/// One relationship that an import makes.
struct Arrow {
    target: Target,
    specifier: String,
    names: Vec<String>,
    line: u32,
    type_only: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Target {
    File(String),
    /// A package outside the tree, or what is nowhere: see [`Outside`].
    Outside(Outside),
}

/// The imports of one file, resolved.
#[derive(Default)]
pub(super) struct Imports {
    arrows: Vec<Arrow>,
    /// Names that refer to whole modules.
    pub(super) modules: HashMap<String, Module>,
    /// Names that refer to one item of a module.
    pub(super) names: HashMap<String, (Module, String)>,
    /// Modules all of whose names are bound.
    pub(super) stars: Vec<Module>,
    /// Every file that is imported.
    pub(super) files: Vec<String>,
}

pub(super) fn imports(link: &Link<'_>, parse: &Parse) -> Result<Imports, GraphError> {
    let mut out = Imports::default();
    for import in &parse.imports {
        let resolved = resolve(link, link.path, import)?;
        out.add_arrows(link.path, import, &resolved);
        out.bind(import, &resolved);
        if link.language(link.path) == Language::Python {
            out.bind_packages(link, import)?;
        }
    }
    out.files = out
        .arrows
        .iter()
        .filter_map(|arrow| match &arrow.target {
            Target::File(path) => Some(path.clone()),
            Target::Outside(_) => None,
        })
        .collect();
    out.files.sort();
    out.files.dedup();
    out.add_paths(link, parse)?;
    Ok(out)
}

impl Imports {
    fn add_arrows(&mut self, path: &str, import: &Import, resolved: &Resolved) {
        let mut by_file: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for name in import.names.iter().filter(|_| has_names(import)) {
            let part = resolved.parts.iter().find(|(there, _)| *there == name.there);
            let module = part.map_or(&resolved.module, |(_, module)| module);
            for file in &module.files {
                by_file.entry(file).or_default().push(name.there.clone());
            }
        }
        if !has_names(import) {
            for file in &resolved.module.files {
                by_file.entry(file).or_default();
            }
        }
        for file in &resolved.through {
            by_file.entry(file).or_default();
        }
        for (file, names) in by_file {
            // `use super::*` in a module that is written out leads to the file itself.
            if file != path {
                self.arrow(Target::File(file.clone()), import, names);
            }
        }
        if let Some((ecosystem, name)) = &resolved.package {
            let names = import.names.iter().map(|name| name.there.clone()).collect();
            let package = Outside::Package { ecosystem: ecosystem.name().to_owned(), name: name.clone() };
            self.arrow(Target::Outside(package), import, names);
        } else if let Some(missing) = &resolved.missing {
            self.add_missing(import, resolved, missing);
        }
    }

    /// Links what paths in code lead to, and no other import does.
    fn add_paths(&mut self, link: &Link<'_>, parse: &Parse) -> Result<(), GraphError> {
        let mut known: HashSet<Target> = self.arrows.iter().map(|arrow| arrow.target.clone()).collect();
        // Names of other crates begin most paths, and mean the same each time.
        let mut foreign: HashSet<(&str, &str)> = HashSet::new();
        for path in &parse.paths {
            let head = path.written.split("::").next().unwrap_or_default();
            if foreign.contains(&(head, &path.scope)) {
                continue;
            }
            let reached = rust_paths::of_code(link, link.path, &path.written, &path.scope)?;
            let is_given_up = reached.is_given_up && !rust::BUILT_IN.contains(&head);
            let is_empty = reached.modules.is_empty() && reached.others.is_empty();
            if is_empty && !reached.is_lost && !head.is_empty() {
                foreign.insert((head, &path.scope));
            }
            let modules = reached.modules.into_iter().chain(reached.others);
            let files = modules.flat_map(|module| module.files).chain(reached.through);
            let mut targets: Vec<Target> = files.filter(|file| file != link.path).map(Target::File).collect();
            if reached.is_lost || is_given_up {
                let specifier = path.written.rsplit_once("::").map_or(&*path.written, |(module, _)| module);
                let specifier = specifier.to_owned();
                let outside = Outside::Unresolved { specifier, target: None, computed: false };
                targets.push(Target::Outside(outside));
            }
            for target in targets {
                if known.insert(target.clone()) {
                    let (specifier, line) = (path.written.trim_end_matches('!').to_owned(), path.line);
                    self.arrows.push(Arrow { target, specifier, names: Vec::new(), line, type_only: false });
                }
            }
        }
        Ok(())
    }

    /// Links what is not found to its own node, so that queries can find it.
    fn add_missing(&mut self, import: &Import, resolved: &Resolved, missing: &Missing) {
        let unresolved = |target: Option<String>| {
            let (specifier, computed) = (import.specifier.clone(), is_computed(import));
            Target::Outside(Outside::Unresolved { specifier, target, computed })
        };
        if !resolved.module.files.is_empty() && !missing.is_inside {
            return;
        }
        let is_part = |name: &&Name| resolved.parts.iter().any(|(there, _)| *there == name.there);
        let names = import.names.iter().filter(|_| has_names(import));
        let lost: Vec<String> = names.filter(|name| !is_part(name)).map(|name| name.there.clone()).collect();
        let is_whole = !has_names(import);
        if missing.by_name {
            for name in lost {
                let target = missing.target.as_ref().map(|directory| join(directory, &name));
                self.arrow(unresolved(target), import, vec![name]);
            }
        } else if is_whole || !lost.is_empty() {
            self.arrow(unresolved(missing.target.clone()), import, lost);
        }
    }

    fn arrow(&mut self, target: Target, import: &Import, names: Vec<String>) {
        let Import { specifier, line, type_only, .. } = import;
        let (specifier, line, type_only) = (specifier.clone(), *line, *type_only);
        self.arrows.push(Arrow { target, specifier, names, line, type_only });
    }

    /// `import a.b.c` makes `a` and `a.b` known as well.
    fn bind_packages(&mut self, link: &Link<'_>, import: &Import) -> Result<(), GraphError> {
        if import.module.as_ref() != Some(&import.specifier) {
            return Ok(());
        }
        let ends = import.specifier.match_indices('.').map(|(at, _)| at).take(MAX_PACKAGES);
        for package in ends.filter_map(|end| import.specifier.get(..end)) {
            let of_package = Import { specifier: package.to_owned(), ..import.clone() };
            let Resolved { module, .. } = resolve(link, link.path, &of_package)?;
            if !module.files.is_empty() {
                self.modules.entry(package.to_owned()).or_insert(module);
            }
        }
        Ok(())
    }

    fn bind(&mut self, import: &Import, resolved: &Resolved) {
        if let Some(name) = import.module.as_ref().filter(|_| !resolved.module.files.is_empty()) {
            self.modules.insert(name.clone(), resolved.module.clone());
        }
        if import.kind == ImportKind::Computed {
            return;
        }
        for name in import.names.iter().filter(|_| has_names(import)) {
            let part = resolved.parts.iter().find(|(there, _)| *there == name.there);
            if let Some((_, module)) = part {
                self.modules.insert(name.here.clone(), module.clone());
            } else if resolved.module.files.is_empty() {
                continue;
            } else if name.there == "*" {
                // `import * as name` binds the module alone, `export * as name` nothing here.
                if name.here.is_empty() {
                    self.stars.push(resolved.module.clone());
                }
            } else {
                self.names.insert(name.here.clone(), (resolved.module.clone(), name.there.clone()));
            }
        }
    }

    pub(super) fn packages(&self) -> impl Iterator<Item = String> {
        self.arrows.iter().filter_map(|arrow| match &arrow.target {
            Target::Outside(outside) => Some(outside.to_string()),
            Target::File(_) => None,
        })
    }

    pub(super) fn facts(&self, ids: &Identities, file: i64) -> Vec<Fact> {
        let mut occurrences = Occurrences::default();
        self.arrows
            .iter()
            .map(|arrow| {
                let target = match &arrow.target {
                    Target::File(path) => ids.id("File", &[path]),
                    Target::Outside(outside) => outside.id(ids),
                };
                let props = json!({
                    "specifier": arrow.specifier,
                    "names": arrow.names,
                    "typeOnly": arrow.type_only,
                });
                let occurrence = occurrences.next(file, target);
                Fact::edge("IMPORTS", file, target, occurrence, props.to_string())
                    .at(Position::Line(arrow.line))
            })
            .collect()
    }
}
