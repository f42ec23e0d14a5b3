//! Whether the answer to a query can depend on what files contain, or only on which files and commits there are.

use open_cypher::ast::visit::{Visitor, walk_clause, walk_expr, walk_path_factor};
use open_cypher::ast::{
    Clause, ClauseKind, Expr, ExprKind, LabelExpression, LabelExpressionKind, PathFactor, PathFactorKind,
};

use super::compile;

/// Labels of nodes that are there whatever the files contain.
const LABELS: [&str; 3] = ["File", "Commit", "Tool"];
/// Relationships between them that no file's content makes.
const TYPES: [&str; 3] = ["CHANGED_IN", "PARENT", "WAS_RENAMED_FROM"];
/// The property of a file that is missing where its content was not read.
const LINES: &str = "lines";

/// Returns whether the answer to `query` can depend on the content of a file. It cannot where every node has one of the labels
/// `File`, `Commit` and `Tool`, and every relationship one of the types between them. A text that is not a query can.
#[must_use]
pub fn depends_on_contents(query: &str) -> bool {
    let Ok(parsed) = compile::parse(query) else { return true };
    let mut dependence = Dependence { found: false };
    dependence.visit_single_query(&parsed.tree.head);
    for branch in &parsed.tree.unions {
        dependence.visit_single_query(&branch.query);
    }
    dependence.found
}

struct Dependence {
    found: bool,
}

impl<'a> Visitor<'a> for Dependence {
    fn visit_clause(&mut self, node: &'a Clause) {
        self.found |= !matches!(
            node.kind,
            ClauseKind::Match(_) | ClauseKind::Unwind(_) | ClauseKind::With(_) | ClauseKind::Return(_)
        );
        walk_clause(self, node);
    }

    fn visit_path_factor(&mut self, node: &'a PathFactor) {
        self.found |= match &node.kind {
            PathFactorKind::Node(pattern) => !is_one_of(pattern.labels.as_ref(), &LABELS),
            PathFactorKind::Relationship(pattern) => !is_one_of(pattern.labels.as_ref(), &TYPES),
            _ => true,
        };
        walk_path_factor(self, node);
    }

    fn visit_expr(&mut self, node: &'a Expr) {
        self.found |= match &node.kind {
            ExprKind::Property { key, .. } => key.kind.text.contains(LINES),
            // A computed name of a property can be any, and so can the names in a subquery or a projection.
            ExprKind::DynamicProperty { .. }
            | ExprKind::Index { .. }
            | ExprKind::MapProjection(_)
            | ExprKind::Subquery(_)
            | ExprKind::Is { .. }
            | ExprKind::Error(_) => !is_null_test(node),
            // A map in a node pattern: `(f:File {lines: 3})`.
            ExprKind::Map(entries) => entries.iter().any(|entry| entry.key.kind.text.contains(LINES)),
            _ => false,
        };
        walk_expr(self, node);
    }
}

/// Whether a test is `IS NULL` or `IS NOT NULL` of an expression that is looked at itself.
fn is_null_test(node: &Expr) -> bool {
    matches!(&node.kind, ExprKind::Is { predicate: open_cypher::ast::IsPredicate::Null, .. })
}

/// Whether a pattern has labels or types, and all of them are among `known`.
fn is_one_of(labels: Option<&LabelExpression>, known: &[&str]) -> bool {
    labels.is_some_and(|labels| all_known(labels, known))
}

fn all_known(labels: &LabelExpression, known: &[&str]) -> bool {
    match &labels.kind {
        LabelExpressionKind::Name(name) => known.contains(&name.kind.text.as_str()),
        LabelExpressionKind::Parenthesized(inner) => all_known(inner, known),
        LabelExpressionKind::And(parts) | LabelExpressionKind::Or(parts) => {
            parts.iter().all(|part| all_known(part, known))
        }
        _ => false,
    }
}
