//! Which types a type is made of.

use super::calls::Finder;
use super::{Link, symbol_id};
use crate::ingest::parse::{Call, Parse};
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;
use crate::tables::write::Fact;

/// `EXTENDS` and `IMPLEMENTS`, where the other type is in the tree.
pub(super) fn heritage(
    link: &Link<'_>,
    ids: &Identities,
    parse: &Parse,
    finder: &Finder<'_, '_>,
    symbols: &[i64],
) -> Result<Vec<Fact>, GraphError> {
    let mut facts: Vec<Fact> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for part in &parse.heritage {
        let Some(source) = symbols.get(part.symbol as usize) else { continue };
        let line = parse.symbols.get(part.symbol as usize).map_or(0, |symbol| symbol.line);
        // A type is looked for where the one that names it is: the same as a call there.
        let separator = super::interface::separator(link.language(link.path));
        let (receiver, name) = match part.name.rsplit_once(separator) {
            Some((receiver, name)) => (Some(receiver.to_owned()), name.to_owned()),
            None => (None, part.name.clone()),
        };
        let enclosing = parse.symbols.get(part.symbol as usize).and_then(|symbol| symbol.container);
        let Some((path, index)) = finder.found(&Call { name, receiver, line, enclosing })? else { continue };
        let target = if path == link.path {
            symbols.get(index as usize).copied()
        } else {
            let theirs = link.parse(&path)?;
            theirs.and_then(|parse| Some(symbol_id(ids, &path, parse.symbols.get(index as usize)?)))
        };
        let kind = if part.implements { "IMPLEMENTS" } else { "EXTENDS" };
        if let Some(target) = target
            && target != *source
            && seen.insert((kind, *source, target))
        {
            facts.push(Fact::edge(kind, *source, target, 0, super::empty()));
        }
    }
    Ok(facts)
}
