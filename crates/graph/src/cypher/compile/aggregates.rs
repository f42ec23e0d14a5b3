//! Where aggregates are allowed, and which names an expression uses.

use std::collections::BTreeSet;

use open_cypher::Span;
use open_cypher::ast::visit::{Visitor, walk_expr, walk_path_factor};
use open_cypher::ast::{
    Expr, ExprKind, FunctionInvocation, MapProjectionItemKind, PathFactor, PathFactorKind,
};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::syntax::function_name;

/// The aggregates and the SQL functions behind them.
pub(super) const AGGREGATES: [(&str, &str); 11] = [
    ("count", "cy_number"),
    ("collect", "cy_collect"),
    ("sum", "cy_sum"),
    ("avg", "cy_avg"),
    ("min", "cy_min"),
    ("max", "cy_max"),
    ("stDev", "cy_stdev"),
    ("stDevP", "cy_stdevp"),
    ("percentileCont", "cy_percentilecont"),
    ("percentileDisc", "cy_percentiledisc"),
    ("stdevp", "cy_stdevp"),
];

/// The SQL function of an aggregate.
pub(super) fn aggregate(call: &FunctionInvocation) -> Option<&'static str> {
    let [name] = call.name.parts.as_slice() else { return None };
    let name = function_name(&name.kind.text);
    AGGREGATES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, sql)| *sql)
}

/// The outermost aggregates of an expression.
pub(super) fn find(expression: &Expr) -> CypherResult<Vec<&Expr>> {
    let mut finder = Finder::default();
    finder.visit_expr(expression);
    match finder.refusal {
        Some(refusal) => Err(refusal),
        None => Ok(finder.found),
    }
}

/// Refuses an aggregate where there are no groups.
pub(super) fn refuse(expression: &Expr) -> CypherResult<()> {
    match find(expression)?.first() {
        Some(aggregate) => Err(misplaced(aggregate.span)),
        None => Ok(()),
    }
}

pub(super) fn misplaced(span: Span) -> Box<CypherError> {
    CypherError::new("InvalidAggregation", span, "an aggregate cannot be used here")
        .help("compute it in a WITH before, and use its name")
}

#[derive(Default)]
struct Finder<'a> {
    found: Vec<&'a Expr>,
    /// The aggregate that is being checked.
    inside: Option<Span>,
    refusal: Option<Box<CypherError>>,
}

impl<'a> Finder<'a> {
    /// Looks into a part that is computed once for each item of a list, where groups mean nothing.
    fn per_item(&mut self, expression: &'a Expr) {
        let before = self.found.len();
        self.visit_expr(expression);
        if let Some(aggregate) = self.found.get(before) {
            self.refusal.get_or_insert_with(|| misplaced(aggregate.span));
        }
    }
}

impl<'a> Visitor<'a> for Finder<'a> {
    fn visit_expr(&mut self, node: &'a Expr) {
        match &node.kind {
            // A separate query: its aggregates are about its own rows.
            ExprKind::Subquery(_) => {}
            ExprKind::ListComprehension(comprehension) => {
                self.visit_expr(&comprehension.list);
                for part in [&comprehension.predicate, &comprehension.projection].into_iter().flatten() {
                    self.per_item(part);
                }
            }
            ExprKind::Function(call) if aggregate(call).is_some() => {
                if self.inside.is_some() {
                    let refusal =
                        CypherError::new("NestedAggregation", node.span, "an aggregate is inside another");
                    self.refusal.get_or_insert(refusal);
                    return;
                }
                self.found.push(node);
                self.inside = Some(node.span);
                walk_expr(self, node);
                self.inside = None;
            }
            ExprKind::Function(call) if self.inside.is_some() && is_random(call) => {
                let refusal = CypherError::new(
                    "NonConstantExpression",
                    node.span,
                    "`rand` is not allowed in an aggregate",
                );
                self.refusal.get_or_insert(refusal);
            }
            _ => walk_expr(self, node),
        }
    }
}

fn is_random(call: &FunctionInvocation) -> bool {
    matches!(call.name.parts.as_slice(), [name] if name.kind.text.eq_ignore_ascii_case("rand"))
}

/// All names in an expression, also those that it binds itself.
pub(super) fn variables(expression: &Expr) -> BTreeSet<String> {
    let mut names = Names::default();
    names.visit_expr(expression);
    names.found
}

#[derive(Default)]
struct Names {
    found: BTreeSet<String>,
}

impl<'a> Visitor<'a> for Names {
    fn visit_expr(&mut self, node: &'a Expr) {
        match &node.kind {
            ExprKind::Variable(name) => {
                self.found.insert(name.kind.text.clone());
            }
            ExprKind::MapProjection(projection) => {
                for item in &projection.items {
                    if let MapProjectionItemKind::Variable(name) = &item.kind {
                        self.found.insert(name.kind.text.clone());
                    }
                }
            }
            _ => {}
        }
        walk_expr(self, node);
    }

    fn visit_path_factor(&mut self, node: &'a PathFactor) {
        let name = match &node.kind {
            PathFactorKind::Node(pattern) => pattern.variable.as_ref(),
            PathFactorKind::Relationship(pattern) => pattern.variable.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.found.insert(name.kind.text.clone());
        }
        walk_path_factor(self, node);
    }
}
