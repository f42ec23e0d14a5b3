//! Members of a type, its own and those of the types that it is made of.

use std::collections::BTreeSet;

use super::calls::Finder;
use super::interface;
use super::lookup::{self, Found};
use crate::ingest::parse::{Heritage, Parse};
use crate::tables::failure::GraphError;

/// How many types a member is looked for in.
const MAX_TYPES: usize = 64;

/// A member of the type with this qualified name in a file.
pub(super) fn member(
    finder: &Finder<'_, '_>,
    path: &str,
    parse: &Parse,
    class: &str,
    name: &str,
) -> Result<Option<Found>, GraphError> {
    let qualified = format!("{class}{}{name}", lookup::separator(finder.link, path));
    match parse.symbol(&qualified) {
        Some(index) => Ok(Some((path.to_owned(), index))),
        None => above(finder, path, parse, class, name),
    }
}

/// A member of one of the types that a type is made of: of the nearest one, and of what it extends before what it
/// implements.
pub(super) fn above(
    finder: &Finder<'_, '_>,
    path: &str,
    parse: &Parse,
    class: &str,
    name: &str,
) -> Result<Option<Found>, GraphError> {
    let link = finder.link;
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    let mut open = bases(finder, path, parse, class)?;
    // The first of them is the last that is looked at otherwise.
    open.reverse();
    while let Some((path, class)) = open.pop() {
        if seen.len() >= MAX_TYPES || !seen.insert((path.clone(), class.clone())) {
            continue;
        }
        let Some(parse) = link.name(&path, interface::head(link.language(&path), &class))? else { continue };
        let qualified = format!("{class}{}{name}", lookup::separator(link, &path));
        if let Some(index) = parse.symbol(&qualified) {
            return Ok(Some((path, index)));
        }
        let mut further = bases(finder, &path, &parse, &class)?;
        further.reverse();
        open.extend(further);
    }
    Ok(None)
}

/// The files and qualified names of the types that a type is made of.
fn bases(
    finder: &Finder<'_, '_>,
    path: &str,
    parse: &Parse,
    class: &str,
) -> Result<Vec<(String, String)>, GraphError> {
    let link = finder.link;
    let owner =
        |part: &&Heritage| parse.symbols.get(part.symbol as usize).filter(|owner| owner.qualified == class);
    let mut parts: Vec<_> = parse.heritage.iter().filter(|part| owner(part).is_some()).collect();
    parts.sort_by_key(|part| part.implements);
    let mut found = Vec::new();
    for part in parts.into_iter().take(MAX_TYPES) {
        let base = if path == link.path {
            finder.named(&part.name, owner(&part).and_then(|owner| owner.container))?
        } else {
            lookup::find_inside(link, path, &part.name)?
        };
        let Some((file, index)) = base else { continue };
        let other = if file == path { None } else { link.parse(&file)? };
        let symbol = other.as_deref().unwrap_or(parse).symbols.get(index as usize);
        if let Some(symbol) = symbol.filter(|symbol| file != path || symbol.qualified != class) {
            found.push((file, symbol.qualified.clone()));
        }
    }
    Ok(found)
}
