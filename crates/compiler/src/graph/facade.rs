//! Links between modules, and the ES modules through which CommonJS modules are imported.

use std::collections::{BTreeMap, BTreeSet};

use oxc::syntax::identifier::is_identifier_name;
use tgp_contract::{Code, ToolError};
use tgp_text::nearest_names;

use super::refusal::listed;
use super::tools::MAX_SUGGESTED;
use super::{Edge, ModuleGraph, is_import};
use crate::builtin::REQUIRE;
use crate::transpile::quoted;
use crate::{CompiledModule, ModuleFormat, RequestKind, SourceMap, ToolShape};

type Modules = BTreeMap<String, CompiledModule>;
type Edges = BTreeMap<String, Vec<Edge>>;

/// Joins the compiled modules into a graph.
pub(super) fn link(entry: String, mut modules: Modules, edges: &Edges) -> ModuleGraph {
    let facades = facades(&modules, edges);
    let mut links: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (id, compiled) in &modules {
        let of_module = links.entry(id.clone()).or_default();
        if compiled.needs_require {
            of_module.insert(REQUIRE.to_owned(), REQUIRE.to_owned());
        }
        // Imports first: where a specifier is imported and required, the import has its plain name.
        let (imports, requires): (Vec<&Edge>, Vec<&Edge>) =
            edges.get(id).into_iter().flatten().partition(|edge| is_import(edge.request.kind));
        for edge in imports {
            let target = if facades.contains_key(&edge.target) {
                facade_id(&edge.target)
            } else {
                edge.target.clone()
            };
            of_module.insert(edge.request.specifier.clone(), target);
        }
        for edge in requires {
            let specifier = &edge.request.specifier;
            match of_module.get(specifier) {
                Some(imported) if *imported != edge.target => {
                    of_module.insert(format!("require:{specifier}"), edge.target.clone());
                }
                _ => {
                    of_module.insert(specifier.clone(), edge.target.clone());
                }
            }
        }
    }
    for (id, names) in facades {
        let facade = facade(&id, &names);
        links.insert(facade.id.clone(), BTreeMap::from([(REQUIRE.to_owned(), REQUIRE.to_owned())]));
        modules.insert(facade.id.clone(), facade);
    }
    ModuleGraph { entry, modules, links }
}

fn facade_id(id: &str) -> String {
    format!("esm:{id}")
}

/// The CommonJS modules that are imported, with the names their facades must have.
fn facades(modules: &Modules, edges: &Edges) -> BTreeMap<String, BTreeSet<String>> {
    let mut facades: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let is_commonjs =
        |id: &str| modules.get(id).is_some_and(|compiled| compiled.format == ModuleFormat::CommonJs);
    let imports = || edges.values().flatten().filter(|edge| is_import(edge.request.kind));
    for edge in imports() {
        let wanted = edge.request.names.iter().chain(&edge.request.members);
        if is_commonjs(&edge.target) {
            let names =
                facades.entry(edge.target.clone()).or_insert_with(|| exported(&edge.target, modules, edges));
            names.extend(wanted.cloned());
            continue;
        }
        // `export * from 'cjs'` on the way: what no source shows must come from the only module that can have it.
        let stars = stars(&edge.target, modules, edges);
        if let (1, Some(only)) = (stars.len(), stars.first()) {
            let known = exported(&edge.target, modules, edges);
            let names = facades.entry(only.clone()).or_insert_with(|| exported(only, modules, edges));
            names.extend(wanted.filter(|name| !known.contains(*name)).cloned());
        }
    }
    for names in facades.values_mut() {
        names.retain(|name| name != "default" && is_identifier_name(name));
    }
    facades
}

/// Every name a module exports as far as sources show it, `default` only if it is its own.
fn exported(id: &str, modules: &Modules, edges: &Edges) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (index, id) in reexported(id, modules, edges).iter().enumerate() {
        let of_module = modules.get(id).map(|compiled| compiled.exports.as_slice()).unwrap_or_default();
        names.extend(of_module.iter().filter(|name| index == 0 || *name != "default").cloned());
    }
    names
}

/// The module and all whose exports it exports again, itself first.
fn reexported(id: &str, modules: &Modules, edges: &Edges) -> Vec<String> {
    let mut found = vec![id.to_owned()];
    let mut next = 0;
    while let Some(current) = found.get(next).cloned() {
        next += 1;
        for target in passed_on(&current, modules, edges) {
            if !found.contains(&target) {
                found.push(target);
            }
        }
    }
    found
}

/// The modules whose every export a module exports too.
fn passed_on(id: &str, modules: &Modules, edges: &Edges) -> Vec<String> {
    let specifiers = modules.get(id).map(|compiled| compiled.reexports.as_slice()).unwrap_or_default();
    let of_module = edges.get(id).into_iter().flatten();
    of_module
        .filter(|edge| specifiers.contains(&edge.request.specifier))
        .map(|edge| edge.target.clone())
        .collect()
}

/// The CommonJS modules directly behind the `export *` of an ES module and of those it passes on.
fn stars(id: &str, modules: &Modules, edges: &Edges) -> BTreeSet<String> {
    let is_commonjs =
        |id: &str| modules.get(id).is_some_and(|compiled| compiled.format == ModuleFormat::CommonJs);
    let (mut seen, mut open, mut found) = (BTreeSet::new(), vec![id.to_owned()], BTreeSet::new());
    while let Some(current) = open.pop() {
        if is_commonjs(&current) {
            found.insert(current);
        } else if seen.insert(current.clone()) {
            open.extend(passed_on(&current, modules, edges));
        }
    }
    found
}

/// The ES module that stands for a CommonJS module. As in Node, its default export is `module.exports`.
fn facade(id: &str, names: &BTreeSet<String>) -> CompiledModule {
    let mut code = format!(
        "import {{ load }} from \"tgp:require\";\nconst whole = load({});\nexport default whole;\n",
        quoted(id)
    );
    if !names.is_empty() {
        // A getter that throws must not keep the other names from being imported.
        code.push_str(
            "const read = (name) => { try { return whole?.[name]; } catch { return undefined; } };\n",
        );
    }
    for (index, name) in names.iter().enumerate() {
        code.push_str(&format!(
            "const n{index} = read({}); export {{ n{index} as {name} }};\n",
            quoted(name)
        ));
    }
    CompiledModule {
        id: facade_id(id),
        format: ModuleFormat::Module,
        shape: ToolShape::DefaultExport,
        code,
        map: SourceMap::default(),
        loops: crate::LoopTable::default(),
        requests: Vec::new(),
        exports: std::iter::once("default".to_owned()).chain(names.iter().cloned()).collect(),
        reexports: Vec::new(),
        needs_require: true,
        environment: Vec::new(),
        literal: None,
        declared: tgp_contract::DeclaredTypes::default(),
        errors: Vec::new(),
    }
}

/// Refuses a tool that imports a name which its target certainly does not have. The engine would refuse it too,
/// without saying where.
pub(super) fn check_names(
    modules: &Modules,
    edges: &Edges,
    is_tool: impl Fn(&str) -> bool,
) -> Result<(), ToolError> {
    for edge in edges.iter().filter(|(id, _)| is_tool(id)).flat_map(|(_, edges)| edges) {
        let is_module =
            modules.get(&edge.target).is_some_and(|compiled| compiled.format == ModuleFormat::Module);
        if edge.request.kind != RequestKind::Import
            || !is_module
            || !stars(&edge.target, modules, edges).is_empty()
        {
            continue;
        }
        let known = exported(&edge.target, modules, edges);
        let missing = edge.request.names.iter().find(|name| *name != "*" && !known.contains(*name));
        if let Some(name) = missing {
            return Err(missing_name(edge, name, &known));
        }
    }
    Ok(())
}

fn missing_name(edge: &Edge, name: &str, known: &BTreeSet<String>) -> ToolError {
    let (place, specifier) = (&edge.request.place, &edge.request.specifier);
    let near = nearest_names(name, known.iter().map(String::as_str), MAX_SUGGESTED);
    let near: Vec<String> = near.into_iter().map(str::to_owned).collect();
    let known: Vec<String> = known.iter().take(20).cloned().collect();
    let help = if !near.is_empty() {
        format!("did you mean {}?", listed(&near))
    } else if known.is_empty() {
        format!("export `{name}` there; if it is a type, write `import type` or `export type`")
    } else {
        format!("it exports {}; if `{name}` is a type, write `import type` or `export type`", listed(&known))
    };
    let what = if name == "default" { "default export".to_owned() } else { format!("export named `{name}`") };
    ToolError::new(Code::Compile, format!("{place}: `{specifier}` has no {what}")).place(place).help(help)
}
