//! From a Cypher query to SQL over the tables of `store`.
//!
//! The stages are `syntax` (caps and the parser), `compile` (names, types and one SQL statement), `execute` (bound
//! values, caps, an authorizer) and `output` (JSON). What SQL itself cannot say is in `functions`, over the values of
//! `value`.

mod compile;
mod dependence;
mod diagnostics;
mod error;
mod execute;
mod functions;
mod key;
mod order;
mod output;
mod probes;
mod spelling;
mod syntax;
mod temporal;
mod types;
mod value;

pub(crate) use compile::position;
pub use dependence::depends_on_contents;
pub use error::{CypherError, CypherResult, Phase};
pub(crate) use output::properties;
pub use probes::{PatternProbe, pattern_probes};
pub use syntax::function_name;

use std::sync::Arc;
use std::time::Duration;

use open_cypher::Span;
use open_cypher::ast::RegularQuery;
use rusqlite::Connection;
use serde_json::Value;
use tgp_contract::{GraphQuery, ToolError};

/// The moment that a query sees, and how it can name others.
pub(crate) struct View<'a> {
    /// The number of the moment.
    pub at: i64,
    /// The moment of a revision, for `exists_at`.
    pub moments: &'a dyn Fn(&str) -> Result<i64, ToolError>,
    /// The nodes that are hidden at a moment, as a JSON array; nothing where the whole graph may be seen.
    pub hidden: Option<&'a HiddenAt<'a>>,
}

/// The nodes that are hidden at a moment.
pub(crate) type HiddenAt<'a> = dyn Fn(i64) -> Result<Arc<str>, ToolError> + 'a;

/// What one answer may cost.
#[derive(Clone, Debug)]
pub struct QueryLimits {
    /// Rows that are given; what is beyond is said to be missing.
    pub rows: usize,
    /// Bytes of JSON that are given, for the same reason.
    pub bytes: usize,
    /// How long the database may work.
    pub time: Duration,
    /// The longest path that a variable length may walk.
    pub hops: u32,
    /// Whether the names of labels, types and properties are those of the code graph, and others are refused.
    pub vocabulary: bool,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { rows: 10_000, bytes: 16 << 20, time: Duration::from_secs(10), hops: 64, vocabulary: false }
    }
}

/// Rows of JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// Whether rows are missing because of a cap.
    pub truncated: bool,
}

/// Makes a connection fit for [`answer`]: the functions, the authorizer, the clock. Once for each connection.
pub(crate) fn prepare(connection: &mut Connection) -> Result<(), ToolError> {
    functions::register(connection).map_err(|error| execute::broken(&error))?;
    execute::guard(connection).map_err(|error| execute::broken(&error))
}

/// Answers a question about one moment. `question.commit` is not read: `view` replaces it.
///
/// # Errors
/// `EVALIDATION` with line, column and a suggestion for a query that cannot be used or meets a value that it cannot use,
/// `EBUDGET` for one that needs more than `limits` allow.
pub(crate) fn answer(
    connection: &Connection,
    question: &GraphQuery,
    view: &View<'_>,
    limits: &QueryLimits,
) -> Result<Table, ToolError> {
    let program = compile::program(&question.query, limits, view.hidden.is_some())?;
    for expected in &program.expected {
        let value = question.params.get(expected.parameter());
        expected.check(value).map_err(|refusal| refusal.into_error(&question.query, Phase::Run))?;
    }
    execute::run(connection, &program, question, view, limits)
}

/// The names of the columns that a query answers with. Nothing is asked, and no graph is needed.
///
/// # Errors
/// As [`answer`], as far as they can be known before a query runs.
pub fn query_columns(query: &str) -> Result<Vec<String>, ToolError> {
    let limits = QueryLimits { vocabulary: true, ..QueryLimits::default() };
    Ok(compile::program(query, &limits, false)?.columns.clone())
}

/// The tree of a query that [`answer`] would take, for who asks it elsewhere.
///
/// # Errors
/// As [`answer`], as far as they can be known before a query runs.
pub fn accepted(query: &str, limits: &QueryLimits) -> Result<RegularQuery, ToolError> {
    compile::program(query, limits, false)?;
    let refused = |refusal: Box<CypherError>| refusal.into_error(query, Phase::Compile);
    let parsed = compile::parse(query).map_err(refused)?;
    if !parsed.spelling.is_verbatim() {
        // The places in the tree would be those of another text.
        let refusal = CypherError::unsupported(
            Span::empty(0),
            "what this query uses (EXPLAIN, an option, CALL { ... }, or labels in EXISTS and COUNT without MATCH)",
        );
        return Err(refused(refusal.help("write it with MATCH, or ask the embedded store")));
    }
    Ok(parsed.tree)
}
