//! What a file's imports lead to, and which names they bind.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use super::{Link, Occurrences, go, java, javascript, python, rust};
use crate::ingest::language::{Ecosystem, Language};
use crate::ingest::parse::{Import, ImportKind, Parse};
use crate::store::failure::GraphError;
use crate::store::identity::Identities;
use crate::store::write::Fact;

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
}

/// Where a specifier leads.
#[derive(Clone, Debug, Default)]
pub(super) struct Resolved {
    pub(super) module: Module,
    /// Names of the import that are modules themselves.
    pub(super) parts: Vec<(String, Module)>,
    pub(super) package: Option<(Ecosystem, String)>,
}

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Result<Resolved, GraphError> {
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

/// One relationship that an import makes.
struct Arrow {
    target: Target,
    specifier: String,
    names: Vec<String>,
    line: u32,
}

enum Target {
    File(String),
    Package(String),
}

/// The imports of one file, resolved.
#[derive(Default)]
pub(super) struct Imports {
    arrows: Vec<Arrow>,
    /// Names that stand for whole modules.
    pub(super) modules: HashMap<String, Module>,
    /// Names that stand for one thing of a module.
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
    }
    out.files = out
        .arrows
        .iter()
        .filter_map(|arrow| match &arrow.target {
            Target::File(path) => Some(path.clone()),
            Target::Package(_) => None,
        })
        .collect();
    out.files.sort();
    out.files.dedup();
    Ok(out)
}

impl Imports {
    fn add_arrows(&mut self, path: &str, import: &Import, resolved: &Resolved) {
        let mut by_file: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for name in &import.names {
            if import.kind == ImportKind::Part {
                break;
            }
            let part = resolved.parts.iter().find(|(there, _)| *there == name.there);
            let module = part.map_or(&resolved.module, |(_, module)| module);
            for file in &module.files {
                by_file.entry(file).or_default().push(name.there.clone());
            }
        }
        if import.names.is_empty() || import.kind == ImportKind::Part {
            for file in &resolved.module.files {
                by_file.entry(file).or_default();
            }
        }
        for (file, names) in by_file {
            // `use super::*` in a module that is written out leads to the file itself.
            if file != path {
                self.arrow(Target::File(file.clone()), import, names);
            }
        }
        if let Some((ecosystem, name)) = &resolved.package {
            let names = import.names.iter().map(|name| name.there.clone()).collect();
            self.arrow(Target::Package(format!("{}:{name}", ecosystem.name())), import, names);
        }
    }

    fn arrow(&mut self, target: Target, import: &Import, names: Vec<String>) {
        self.arrows.push(Arrow { target, specifier: import.specifier.clone(), names, line: import.line });
    }

    fn bind(&mut self, import: &Import, resolved: &Resolved) {
        if let Some(name) = import.module.as_ref().filter(|_| !resolved.module.files.is_empty()) {
            self.modules.insert(name.clone(), resolved.module.clone());
        }
        if import.kind == ImportKind::Part {
            return;
        }
        for name in &import.names {
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
            Target::Package(package) => Some(package.clone()),
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
                    Target::Package(package) => {
                        let (ecosystem, name) = package.split_once(':').unwrap_or(("", package));
                        ids.id("Package", &["out", ecosystem, name])
                    }
                };
                let props = json!({
                    "specifier": arrow.specifier,
                    "names": arrow.names,
                    "line": arrow.line,
                });
                Fact::edge("IMPORTS", file, target, occurrences.next(file, target), props.to_string())
            })
            .collect()
    }
}
