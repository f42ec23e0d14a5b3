//! Which types a type is made of.

use super::Link;
use super::calls::Finder;
use crate::ingest::parse::Parse;
use crate::tables::facts::Fact;
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;

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
        // A type is looked for where the one that names it is.
        let enclosing = parse.symbols.get(part.symbol as usize).and_then(|symbol| symbol.container);
        let Some(found) = finder.named(&part.name, enclosing)? else { continue };
        let target = link.symbol(ids, symbols, &found)?;
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
