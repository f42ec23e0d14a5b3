//! Which symbol uses which without calling it: types, constants, functions that are passed on.

use std::collections::BTreeSet;

use super::Link;
use super::calls::Finder;
use crate::ingest::parse::{Call, Parse};
use crate::tables::facts::Fact;
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;

/// One relationship for each pair, where the name leads to a symbol of the tree.
pub(super) fn references(
    link: &Link<'_>,
    ids: &Identities,
    parse: &Parse,
    finder: &Finder<'_, '_>,
    file: i64,
    symbols: &[i64],
) -> Result<Vec<Fact>, GraphError> {
    let mut seen = BTreeSet::new();
    let mut facts = Vec::new();
    for reference in &parse.references {
        let (name, receiver) = (reference.name.clone(), reference.receiver.clone());
        let wanted = Call { name, receiver, of: None, line: 0, enclosing: reference.enclosing };
        let Some(found) = finder.found(&wanted)? else { continue };
        let Some(target) = link.symbol(ids, symbols, &found)? else { continue };
        let source =
            reference.enclosing.and_then(|symbol| symbols.get(symbol as usize)).copied().unwrap_or(file);
        if source != target && seen.insert((source, target)) {
            facts.push(Fact::edge("REFERENCES", source, target, 0, super::empty()));
        }
    }
    Ok(facts)
}
