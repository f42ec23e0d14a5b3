//! Names in modules: what a file defines, and what it gives on from others.

use super::imports::{Module, resolve};
use super::memo::Question;
use super::{Link, interface};
use crate::ingest::language::Language;
use crate::ingest::parse::ImportKind;
use crate::tables::failure::GraphError;

/// How many files a name is followed through.
const MAX_HOPS: usize = 8;

/// How many modules a search through `export *` may visit.
pub(super) const MAX_VISITS: usize = 200;

/// A symbol of a file.
pub(super) type Found = (String, u32);

/// Finds `name` (with its containers) in a module.
pub(super) fn find(link: &Link<'_>, module: &Module, name: &str) -> Result<Option<Found>, GraphError> {
    for file in &module.files {
        let question = (file.clone(), wanted(link, module, file, name), false);
        if let Some(found) = ask(link, question)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Finds what `name` means inside of a file: what is defined there, or was imported.
pub(super) fn find_inside(link: &Link<'_>, file: &str, name: &str) -> Result<Option<Found>, GraphError> {
    ask(link, (file.to_owned(), name.to_owned(), true))
}

fn ask(link: &Link<'_>, question: Question) -> Result<Option<Found>, GraphError> {
    link.answer(question, |(file, name, is_inside)| {
        let view = if *is_inside { View::Inside } else { View::Outside };
        find_in_file(link, file, name, view, 0, &mut Vec::new())
    })
}

/// A name of a module as its file has it.
fn wanted(link: &Link<'_>, module: &Module, file: &str, name: &str) -> String {
    if module.inner.is_empty() {
        name.to_owned()
    } else {
        format!("{}{}{name}", module.inner, separator(link, file))
    }
}

/// Who asks for a name of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// The file itself, for which everything counts that it imports.
    Inside,
    /// Another file, for which only that counts which is given on.
    Outside,
}

fn find_in_module(
    link: &Link<'_>,
    module: &Module,
    name: &str,
    hops: usize,
    visits: &mut Vec<(String, String)>,
) -> Result<Option<Found>, GraphError> {
    for file in &module.files {
        let wanted = wanted(link, module, file, name);
        if let Some(found) = find_in_file(link, file, &wanted, View::Outside, hops, visits)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

pub(super) fn separator(link: &Link<'_>, file: &str) -> &'static str {
    interface::separator(link.language(file))
}

fn find_in_file(
    link: &Link<'_>,
    file: &str,
    name: &str,
    view: View,
    hops: usize,
    visits: &mut Vec<(String, String)>,
) -> Result<Option<Found>, GraphError> {
    let visit = (file.to_owned(), name.to_owned());
    if hops > MAX_HOPS || visits.len() >= MAX_VISITS || visits.contains(&visit) {
        return Ok(None);
    }
    visits.push(visit);
    let Some(parse) = link.name(file, name)? else {
        // It may be there later, and give on everything of another one.
        link.stars(file);
        return Ok(None);
    };
    let separator = separator(link, file);
    let (head, rest) = match name.split_once(separator) {
        Some((head, rest)) => (head, Some(rest)),
        None => (name, None),
    };
    let with_rest = |head: &str| rest.map_or(head.to_owned(), |rest| format!("{head}{separator}{rest}"));
    // A name that is given to others under another one.
    let renamed = parse.exports.iter().find(|(theirs, _)| theirs == head).map(|(_, ours)| ours.as_str());
    let ours = renamed.unwrap_or(head);
    if renamed.is_some() {
        link.name(file, ours)?;
    }
    if let Some(index) = parse.symbol(&with_rest(ours)) {
        return Ok(Some((file.to_owned(), index)));
    }
    link.stars(file);
    let binds = view == View::Inside || link.language(file) == Language::Python || renamed.is_some();
    for import in &parse.imports {
        if import.kind != ImportKind::ReExport && !(import.kind == ImportKind::Bind && binds) {
            continue;
        }
        for given in &import.names {
            let everything = given.there == "*" && given.here.is_empty();
            if given.here != ours && !everything {
                continue;
            }
            let resolved = resolve(link, file, import)?;
            let part = resolved.parts.iter().find(|(there, _)| *there == given.there);
            let found = match (part, rest) {
                // The name is a module, and something of it is wanted.
                (Some((_, module)), Some(rest)) => find_in_module(link, module, rest, hops + 1, visits)?,
                (Some(_), None) => None,
                (None, _) if everything => find_in_module(link, &resolved.module, name, hops + 1, visits)?,
                (None, Some(rest)) if given.there == "*" => {
                    find_in_module(link, &resolved.module, rest, hops + 1, visits)?
                }
                (None, _) => {
                    find_in_module(link, &resolved.module, &with_rest(&given.there), hops + 1, visits)?
                }
            };
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}
