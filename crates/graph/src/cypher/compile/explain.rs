//! EXPLAIN: what a query does, step by step, in words that do not depend on the SQL it becomes.

use open_cypher::Span;
use open_cypher::ast::ProjectionClause;
use serde_json::{Value, json};

use super::Compiler;
use super::pattern::{Direction, Graph, Length, Link, Node};
use super::scope::HIDDEN;

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// How many subqueries and patterns inside expressions are around it.
    pub level: usize,
    pub operation: &'static str,
    /// What it is done to, in the query's own names.
    pub detail: String,
    span: Option<Span>,
}

/// The longest detail. A longer one is a condition that nobody reads in a plan.
const MAX_DETAIL: usize = 200;

/// The columns of a plan.
pub(super) fn columns() -> Vec<String> {
    ["step", "level", "operation", "detail"].map(str::to_owned).to_vec()
}

/// A plan as rows.
pub(crate) fn rows(steps: &[Step]) -> Vec<Vec<Value>> {
    let row = |(at, step): (usize, &Step)| {
        vec![json!(at + 1), json!(step.level), json!(step.operation), json!(step.detail)]
    };
    steps.iter().enumerate().map(row).collect()
}

impl Compiler<'_> {
    /// Notes a step of the plan.
    pub(super) fn step_of(&mut self, operation: &'static str, detail: impl Into<String>) {
        let detail = tgp_text::one_line(&detail.into(), MAX_DETAIL);
        self.steps.push(Step { level: self.level, operation, detail, span: None });
    }

    /// Notes SKIP and LIMIT.
    pub(super) fn step_of_limit(&mut self, projection: &ProjectionClause) {
        let parts = [("SKIP", &projection.skip), ("SKIP", &projection.offset), ("LIMIT", &projection.limit)];
        let shown = parts
            .iter()
            .filter_map(|(word, part)| part.as_ref().map(|part| format!("{word} {}", self.words(part.span))));
        let shown: Vec<String> = shown.collect();
        if !shown.is_empty() {
            self.step_of("Limit", shown.join(" "));
        }
    }

    /// Compiles a query inside an expression, whose steps are one level further in. Where the same one was compiled before,
    /// as columns beside aggregates are, its steps are there already.
    pub(super) fn nested<T>(
        &mut self,
        operation: &'static str,
        span: Span,
        part: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let known = self.steps.iter().any(|step| step.span == Some(span));
        let before = self.steps.len();
        self.step_of(operation, "");
        if let Some(step) = self.steps.last_mut() {
            step.span = Some(span);
        }
        self.level += 1;
        let done = part(self);
        self.level -= 1;
        if known {
            self.steps.truncate(before);
        }
        done
    }

    /// `(f:File)`, as the query has it.
    pub(super) fn shown_node(&self, node: &Node<'_>) -> String {
        let name = if node.key.starts_with(HIDDEN) { "" } else { &node.key };
        let labels: Vec<String> =
            node.labels.iter().map(|labels| format!(":{}", self.words(labels.span))).collect();
        format!("({name}{})", labels.concat())
    }

    /// `(f:File)-[:IMPORTS*1..3]->(g)`, from the end where the search is.
    pub(super) fn shown_link(&self, graph: &Graph<'_>, link: &Link<'_>, from: usize) -> String {
        let to = if from == link.left { link.right } else { link.left };
        let node =
            |at: usize| graph.nodes.get(at).map_or_else(|| "()".to_owned(), |node| self.shown_node(node));
        let name = if link.key.starts_with(HIDDEN) { "" } else { &link.key };
        let types = link.types.as_ref().map(|types| format!(":{}", types.join("|"))).unwrap_or_default();
        let length = link.length.map(shown_length).unwrap_or_default();
        let forward = (link.direction == Direction::Right) == (from == link.left);
        let (before, after) = match link.direction {
            Direction::Either => ("-", "-"),
            _ if forward => ("-", "->"),
            _ => ("<-", "-"),
        };
        format!("{}{before}[{name}{types}{length}]{after}{}", node(from), node(to))
    }
}

fn shown_length(length: Length) -> String {
    match (length.least, length.most) {
        (1, None) => "*".to_owned(),
        (least, None) => format!("*{least}.."),
        (least, Some(most)) if least == most => format!("*{least}"),
        (least, Some(most)) => format!("*{least}..{most}"),
    }
}
