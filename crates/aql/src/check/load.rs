//! The main file and everything it imports.

use std::collections::{BTreeMap, BTreeSet};

use super::order::ordered;
use crate::QueryCatalogue;
use crate::problem::Findings;
use crate::syntax::text::Span;
use crate::syntax::tree::{Import, Item};
use crate::syntax::{Unit, parse};
use crate::types::quoted;

/// Files of one compilation. A project of queries that needs more is more than one project.
const MAX_FILES: usize = 64;

/// All files, the main one first, each once.
pub(super) fn all(
    path: &str,
    text: &str,
    catalogue: &dyn QueryCatalogue,
    findings: &mut Findings,
) -> Vec<Unit> {
    let mut units = vec![parse(path, text, findings)];
    let mut numbers: BTreeMap<String, usize> = BTreeMap::from([(normal(path), 0)]);
    let mut needs: Vec<BTreeMap<usize, Span>> = Vec::new();
    let mut at = 0;
    while at < units.len() {
        let mut found = Vec::new();
        if let Some(unit) = units.get(at) {
            for import in imports(unit) {
                if let Some(wanted) = wanted(unit, import, findings) {
                    found.push((wanted, import.path.span));
                }
            }
        }
        let mut needed = BTreeMap::new();
        for (wanted, span) in found {
            let number = match numbers.get(&wanted) {
                Some(number) => *number,
                None => {
                    let Some(text) = read(units.get(at), &wanted, span, units.len(), catalogue, findings)
                    else {
                        continue;
                    };
                    units.push(parse(&wanted, &text, findings));
                    numbers.insert(wanted, units.len() - 1);
                    units.len() - 1
                }
            };
            needed.entry(number).or_insert(span);
        }
        needs.push(needed);
        at += 1;
    }
    let keys: Vec<BTreeSet<usize>> = needs.iter().map(|needed| needed.keys().copied().collect()).collect();
    for circle in ordered(&keys).circles {
        let members = circle.iter().zip(circle.iter().cycle().skip(1));
        let places: Vec<_> = members
            .filter_map(|(from, to)| {
                let (unit, other) = (units.get(*from)?, units.get(*to)?);
                let span = needs.get(*from)?.get(to)?;
                Some((unit, other, *span))
            })
            .collect();
        let Some((unit, _, span)) = places.first() else { continue };
        let mut problem =
            unit.text.problem(*span, "import-cycle", "these files import each other in a circle");
        for (unit, other, span) in &places {
            let said = format!("`{}` imports `{}`", unit.text.path, other.text.path);
            problem = problem.label(unit.text.range(*span), said);
        }
        findings.add(problem.help("put what both need into a third file"));
    }
    units
}

pub(super) fn imports(unit: &Unit) -> impl Iterator<Item = &Import> {
    unit.file.items.iter().filter_map(|item| match item {
        Item::Import(import) => Some(import),
        _ => None,
    })
}

/// The path that an import means, relative to the project.
fn wanted(unit: &Unit, import: &Import, findings: &mut Findings) -> Option<String> {
    let Some(path) = import.path.constant() else {
        let span = import.path.hole().unwrap_or(import.span);
        let problem = unit.text.problem(span, "hole-in-path", "the path of an import holds no `{{…}}`");
        findings.add(problem.help("write the path out"));
        return None;
    };
    let target = target(unit, &path.text);
    if target.is_none() {
        let message = format!("{} is not a path below the project", quoted(&path.text));
        let problem = unit.text.problem(import.path.span, "wrong-path", message);
        findings.add(problem.help("write a path relative to this file, such as \"./shared.aql\""));
    }
    target
}

/// The path of an imported file relative to the project.
pub(super) fn target(unit: &Unit, path: &str) -> Option<String> {
    let folder = unit.text.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let root = if unit.text.path.starts_with('/') { "/" } else { "" };
    joined(folder, path).map(|path| format!("{root}{path}"))
}

/// A path as imports name it.
pub(super) fn normal(path: &str) -> String {
    joined("", path).unwrap_or_else(|| path.to_owned())
}

/// `None` when it leaves the project, is absolute, or names nothing.
fn joined(folder: &str, path: &str) -> Option<String> {
    if path.is_empty() || path.starts_with('/') || path.contains(['\\', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn read(
    unit: Option<&Unit>,
    wanted: &str,
    span: Span,
    files: usize,
    catalogue: &dyn QueryCatalogue,
    findings: &mut Findings,
) -> Option<String> {
    let unit = unit?;
    if files >= MAX_FILES {
        let message = format!("more than {MAX_FILES} files are imported");
        let problem = unit.text.problem(span, "too-many-files", message);
        findings.add(problem.help("put queries that belong together into one file"));
        return None;
    }
    match catalogue.source(wanted) {
        Ok(text) => Some(text),
        Err(error) => {
            let message = format!("`{wanted}` cannot be imported: {}", error.message);
            let help = error.help_of().unwrap_or("the path is relative to the file that imports").to_owned();
            findings.add(unit.text.problem(span, "unknown-file", message).help(help));
            None
        }
    }
}
