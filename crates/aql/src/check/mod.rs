//! From trees to plans: names, types, and everything that can be wrong before anything runs.

mod arguments;
mod block;
mod declarations;
mod embedded;
mod expression;
mod fields;
mod load;
mod merge;
mod options;
mod order;
mod query;
mod schema;
mod scope;
mod step_kinds;

use std::sync::Arc;

pub(crate) use self::embedded::is_select;
pub(crate) use self::expression::constant;

use self::declarations::Declarations;
use crate::problem::Findings;
use crate::syntax::Unit;
use crate::syntax::tree::Item;
use crate::{QueryCatalogue, QueryPlan, QueryProblems, Source};

/// What a source and all it imports came to.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledQuery {
    /// Those of the main file, in its order.
    pub queries: Vec<Arc<QueryPlan>>,
    /// The main file, then those it imports.
    pub sources: Vec<Source>,
}

/// Problems after which checking stops: the input is too large.
const STOPPING: [&str; 2] = ["too-many-steps", "too-many-files"];

/// Parses, resolves, checks and plans all queries of a file.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn compile(
    path: &str,
    text: &str,
    catalogue: &dyn QueryCatalogue,
) -> Result<CompiledQuery, QueryProblems> {
    let mut findings = Findings::default();
    let units = load::all(path, text, catalogue, &mut findings);
    let sources = units.iter().map(|unit| unit.text.to_source()).collect();
    let stops = findings.has(0, &STOPPING);
    let plans = if stops { Vec::new() } else { plans(&units, catalogue, &mut findings) };
    if findings.is_empty() {
        return Ok(CompiledQuery { queries: plans, sources });
    }
    Err(findings.into_problems(sources))
}

/// The plans of the main file.
fn plans(units: &[Unit], catalogue: &dyn QueryCatalogue, findings: &mut Findings) -> Vec<Arc<QueryPlan>> {
    let mut declarations = Declarations::new(units, findings);
    declarations.types(findings);
    let checked = query::all(units, &declarations, catalogue, findings);
    let main = units.first().into_iter().flat_map(|unit| unit.file.items.iter().enumerate());
    let queries = main.filter(|(_, item)| matches!(item, Item::Query(_)));
    queries.filter_map(|(at, _)| checked.get(&(0, at)).cloned()).collect()
}
