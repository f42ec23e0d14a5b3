//! Whether the parts of a pattern can match at all: one small query for each node that a query names and restricts.

use open_cypher::Span;
use open_cypher::ast::visit::{Visitor, walk_expr};
use open_cypher::ast::{
    BinaryOperator, ClauseKind, Expr, ExprKind, MatchClause, NodePattern, ParameterName, PathFactorKind,
    PathPattern,
};
use tgp_contract::ToolError;

use super::compile;
use super::error::Phase;
use super::syntax::Parsed;

/// Probes of one query: a rule about more nodes says nothing with one of them.
const MAX_PROBES: usize = 20;

/// A question whether anything is what a node of a pattern has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternProbe {
    /// The node with its conditions, as the query has them.
    pub shown: String,
    /// A query with one row where there is such a node. It has the parameters of the query that it is about.
    pub query: String,
}

/// The probes of a query. Conditions with one of the parameters `without` are left out, and so are nodes that are
/// restricted by nothing but their label.
///
/// # Errors
/// `EVALIDATION` for a text that is not a query.
pub fn pattern_probes(query: &str, without: &[&str]) -> Result<Vec<PatternProbe>, ToolError> {
    let parsed = compile::parse(query).map_err(|refusal| refusal.into_error(query, Phase::Compile))?;
    let mut probes = Vec::new();
    let branches =
        std::iter::once(&parsed.tree.head).chain(parsed.tree.unions.iter().map(|union| &union.query));
    for branch in branches {
        let mut known: Vec<&str> = Vec::new();
        for clause in &branch.kind.clauses {
            // What follows is about other rows.
            let ClauseKind::Match(matching) = &clause.kind else { break };
            if !matching.optional {
                of_match(query, &parsed, matching, &known, without, &mut probes);
            }
            known.extend(nodes(matching).filter_map(|node| Some(node.variable.as_ref()?.kind.text.as_str())));
        }
    }
    probes.dedup();
    probes.truncate(MAX_PROBES);
    Ok(probes)
}

fn nodes(matching: &MatchClause) -> impl Iterator<Item = &NodePattern> {
    fn of(path: &PathPattern) -> Vec<&NodePattern> {
        let factors = path.kind.factors.iter();
        factors
            .flat_map(|factor| match &factor.kind {
                PathFactorKind::Node(node) => vec![node],
                PathFactorKind::LegacyShortest { pattern, .. } => of(pattern),
                _ => Vec::new(),
            })
            .collect()
    }
    matching.pattern.parts.iter().flat_map(|part| of(&part.kind.path))
}

fn of_match(
    query: &str,
    parsed: &Parsed,
    matching: &MatchClause,
    known: &[&str],
    without: &[&str],
    probes: &mut Vec<PatternProbe>,
) {
    let words = |span: Span| parsed.spelling.original_span(span).text(query).unwrap_or_default();
    for node in nodes(matching) {
        let Some(name) = node.variable.as_ref().filter(|name| !known.contains(&name.kind.text.as_str()))
        else {
            continue;
        };
        let mut names = Names::default();
        let properties = node.properties.as_deref().filter(|map| {
            names.visit_expr(map);
            names.variables.is_empty()
                && names.parameters.iter().all(|name| !without.contains(&name.as_str()))
        });
        let filters: Vec<&str> = matching
            .where_clause
            .iter()
            .flat_map(conjuncts)
            .filter(|filter| {
                let mut names = Names::default();
                names.visit_expr(filter);
                names.is_plain
                    && names.variables.iter().all(|used| *used == name.kind.text)
                    && !names.variables.is_empty()
                    && names.parameters.iter().all(|name| !without.contains(&name.as_str()))
            })
            .map(|filter| words(filter.span))
            .collect();
        if properties.is_none() && filters.is_empty() {
            continue;
        }
        let labels =
            node.labels.as_ref().map(|labels| format!(":{}", words(labels.span))).unwrap_or_default();
        let map = properties.map(|map| format!(" {}", words(map.span))).unwrap_or_default();
        let filter = match filters.as_slice() {
            [] => String::new(),
            filters => format!(" WHERE {}", filters.join(" AND ")),
        };
        let shown = format!("({}{labels}{map}){filter}", words(name.span));
        let query = format!("MATCH {shown} RETURN 1 AS found LIMIT 1");
        probes.push(PatternProbe { shown, query });
    }
}

/// The parts of a condition that all have to hold.
fn conjuncts(filter: &Expr) -> Vec<&Expr> {
    match &filter.kind {
        ExprKind::Binary { left, operator, right } if operator.kind == BinaryOperator::And => {
            [conjuncts(left), conjuncts(right)].concat()
        }
        _ => vec![filter],
    }
}

/// What an expression uses.
struct Names {
    variables: Vec<String>,
    parameters: Vec<String>,
    /// Whether it has no pattern, no subquery and no names of its own.
    is_plain: bool,
}

impl Default for Names {
    fn default() -> Self {
        Self { variables: Vec::new(), parameters: Vec::new(), is_plain: true }
    }
}

impl<'a> Visitor<'a> for Names {
    fn visit_expr(&mut self, node: &'a Expr) {
        match &node.kind {
            ExprKind::Variable(name) => self.variables.push(name.kind.text.clone()),
            ExprKind::Parameter(parameter) => match &parameter.name {
                ParameterName::Named(name) | ParameterName::Positional(name) => {
                    self.parameters.push(name.clone());
                }
                _ => self.is_plain = false,
            },
            ExprKind::Pattern(_)
            | ExprKind::Subquery(_)
            | ExprKind::PatternComprehension(_)
            | ExprKind::ListComprehension(_)
            | ExprKind::Reduce(_)
            | ExprKind::QuantifiedPredicate(_) => self.is_plain = false,
            _ => {}
        }
        walk_expr(self, node);
    }
}
