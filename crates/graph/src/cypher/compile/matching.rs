//! MATCH and OPTIONAL MATCH: in which order the elements of a pattern are found, and which condition is asked when.

use open_cypher::ast::{self, BinaryOperator, Expr, ExprKind, FunctionInvocation, MapEntry};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;

use super::Compiler;
use super::aggregates;
use super::joins::Building;
use super::pattern::{Graph, Names};
use super::scope::{Chain, HIDDEN, Scope, Stage, Variable, from_where};

/// Properties that have an index, see `store::schema`.
pub(super) const INDEXED: [&str; 2] = ["path", "name"];

/// A condition of a pattern or of its WHERE, with the names of the pattern that it needs.
pub(super) struct Condition<'a> {
    pub what: What<'a>,
    pub needs: Vec<String>,
    pub done: bool,
}

pub(super) enum What<'a> {
    /// A conjunct of WHERE.
    Holds(&'a Expr),
    /// A property of an element, given in the pattern.
    Property(String, &'a MapEntry),
}

/// An element's property or id that must equal a value, so that it can be looked up.
pub(super) struct Lookup<'a> {
    pub element: String,
    /// Nothing is the id.
    pub property: Option<String>,
    pub value: &'a Expr,
    pub needs: Vec<String>,
}

impl Compiler<'_> {
    /// Adds a MATCH to the chain.
    pub(super) fn matched(
        &mut self,
        chain: &mut Chain,
        pattern: &ast::Pattern,
        filter: Option<&Expr>,
        names: Names,
    ) -> CypherResult<()> {
        let graph = self.graph(pattern, &chain.scope, names)?;
        if let Some(filter) = filter {
            aggregates::refuse(filter)?;
        }
        let mut conditions = Vec::new();
        for node in &graph.nodes {
            collect(&mut conditions, &graph, &node.key, &node.properties, &node.wheres);
        }
        for link in graph.links.iter().filter(|link| link.length.is_none()) {
            collect(&mut conditions, &graph, &link.key, &link.properties, &link.wheres);
        }
        for conjunct in filter.map(conjuncts).unwrap_or_default() {
            conditions.push(Condition {
                needs: needed(&graph, conjunct),
                what: What::Holds(conjunct),
                done: false,
            });
        }
        refuse_filters(&conditions, &graph)?;
        let lookups = lookups(&conditions, &graph);
        let kept: Vec<Variable> = chain.scope.variables.clone();
        let mut building = Building::new(chain, &graph, conditions, lookups);
        self.place_all(&mut building)?;
        self.finish_match(building, &kept)
    }

    /// Paths and lists of relationships, the conditions that waited for them, and the last SELECT.
    fn finish_match(&mut self, mut building: Building<'_, '_>, kept: &[Variable]) -> CypherResult<()> {
        let graph = building.graph;
        for (at, link) in graph.links.iter().enumerate() {
            if link.length.is_some() && !link.key.starts_with(HIDDEN) && link.bound.is_none() {
                let list = building.walked(at);
                building.chain.scope.set(Variable::value(&link.key, Type::list(Type::Relationship), list));
            }
        }
        for path in &graph.paths {
            let sql = building.path(path);
            building.chain.scope.set(Variable::value(&path.name, Type::Path, sql));
        }
        self.settle(&mut building, true)?;
        // What the pattern has no name for is no longer needed.
        let known = |variable: &Variable| kept.iter().any(|old| old.name == variable.name);
        building
            .chain
            .scope
            .variables
            .retain(|variable| !variable.name.starts_with(HIDDEN) || known(variable));
        building.stage(self);
        Ok(())
    }

    /// Adds an OPTIONAL MATCH: rows without a match stay, with nulls.
    pub(super) fn optionally_matched(
        &mut self,
        chain: &mut Chain,
        pattern: &ast::Pattern,
        filter: Option<&Expr>,
    ) -> CypherResult<()> {
        let number = self.name(&HIDDEN.to_string());
        let count = if chain.from.is_some() { "row_number() OVER ()" } else { "1" };
        chain.scope.set(Variable::value(&number, Type::Int, count));
        let sources = chain.sources();
        self.stage(chain, &from_where(&sources, &[]), Stage::Kept);
        let numbered = chain.clone();
        self.matched(chain, pattern, filter, Names::New)?;
        self.stage(chain, &from_where(&chain.sources(), &[]), Stage::Kept);

        let (Some(old), Some(new)) = (&numbered.from, &chain.from) else { return Ok(()) };
        let find = |name: &str| numbered.scope.find(name);
        let mut found = Vec::new();
        let mut missing = Vec::new();
        let mut result = Scope::default();
        let union = self.name("u");
        let mut rows = (String::new(), String::new());
        for variable in &chain.scope.variables {
            if variable.outer {
                result.variables.push(variable.clone());
                continue;
            }
            let column = self.name("c");
            found.extend(variable.columns(&column));
            match find(&variable.name) {
                Some(old) => missing.extend(old.clone().into_kind(&variable.kind).columns(&column)),
                None => missing.extend(variable.nulls()),
            }
            if variable.name == number {
                rows =
                    (find(&number).map(|old| old.value.clone()).unwrap_or_default(), variable.value.clone());
                continue;
            }
            result.variables.push(variable.moved(&union, &column));
        }
        let body = format!(
            "{union} AS (SELECT {} FROM {new} UNION ALL SELECT {} FROM {old} WHERE {} NOT IN (SELECT {} FROM {new}))",
            found.join(", "),
            missing.join(", "),
            rows.0,
            rows.1
        );
        chain.tables.push(body);
        chain.from = Some(union);
        chain.scope.variables = result.variables;
        Ok(())
    }

    /// Makes a table of everything in scope. `rest` is what follows the columns.
    pub(super) fn stage(&mut self, chain: &mut Chain, rest: &str, stage: Stage) {
        let table = self.name("s");
        let mut columns = Vec::new();
        let mut moved = Vec::new();
        for variable in &chain.scope.variables {
            if variable.outer {
                moved.push(variable.clone());
                continue;
            }
            let column = self.name("c");
            columns.extend(variable.columns(&column));
            moved.push(variable.moved(&table, &column));
        }
        if columns.is_empty() {
            columns.push("1".to_owned());
        }
        let hint = match stage {
            Stage::Kept => " MATERIALIZED",
            Stage::Passing => "",
        };
        chain.tables.push(format!("{table} AS{hint} (SELECT {}{rest})", columns.join(", ")));
        chain.from = Some(table);
        chain.scope.variables = moved;
    }
}

/// Refuses a condition on a shortest path: it would be asked of a path that was chosen before, and not decide which one
/// is chosen.
fn refuse_filters(conditions: &[Condition<'_>], graph: &Graph<'_>) -> CypherResult<()> {
    let chosen = |name: &String| {
        let of = |at: usize| graph.links.get(at).is_some_and(|link| link.shortest.is_some());
        graph.links.iter().any(|link| link.shortest.is_some() && link.key == *name)
            || graph.paths.iter().any(|path| path.name == *name && path.links.iter().any(|at| of(*at)))
    };
    for condition in conditions {
        if let (What::Holds(expression), true) = (&condition.what, condition.needs.iter().any(chosen)) {
            return Err(CypherError::unsupported(expression.span, "a condition on a shortest path")
                .help("filter the paths that are found: WITH p WHERE ..."));
        }
    }
    Ok(())
}

fn collect<'a>(
    conditions: &mut Vec<Condition<'a>>,
    graph: &Graph<'_>,
    key: &str,
    properties: &[&'a MapEntry],
    wheres: &[&'a Expr],
) {
    for entry in properties {
        let mut needs = needed(graph, &entry.value);
        needs.push(key.to_owned());
        conditions.push(Condition { what: What::Property(key.to_owned(), entry), needs, done: false });
    }
    for filter in wheres {
        for conjunct in conjuncts(filter) {
            let mut needs = needed(graph, conjunct);
            needs.push(key.to_owned());
            conditions.push(Condition { what: What::Holds(conjunct), needs, done: false });
        }
    }
}

/// The parts of a condition that all have to hold.
fn conjuncts(filter: &Expr) -> Vec<&Expr> {
    match &filter.kind {
        ExprKind::Binary { left, operator, right } if operator.kind == BinaryOperator::And => {
            let mut parts = conjuncts(left);
            parts.extend(conjuncts(right));
            parts
        }
        ExprKind::Parenthesized(inner) => conjuncts(inner),
        _ => vec![filter],
    }
}

/// The names of the pattern that an expression uses.
fn needed(graph: &Graph<'_>, expression: &Expr) -> Vec<String> {
    aggregates::variables(expression).into_iter().filter(|name| graph.has(name)).collect()
}

fn lookups<'a>(conditions: &[Condition<'a>], graph: &Graph<'_>) -> Vec<Lookup<'a>> {
    let mut found = Vec::new();
    for condition in conditions {
        match &condition.what {
            What::Property(key, entry) => found.push(Lookup {
                element: key.clone(),
                property: Some(entry.key.kind.text.clone()),
                value: &entry.value,
                needs: needed(graph, &entry.value),
            }),
            What::Holds(expression) => {
                if let ExprKind::Binary { left, operator, right } = &expression.kind
                    && operator.kind == BinaryOperator::Equal
                {
                    for (subject, value) in [(left, right), (right, left)] {
                        if let Some((element, property)) = subject_of(subject) {
                            let needs = needed(graph, value);
                            if !needs.contains(&element) {
                                found.push(Lookup { element, property, value, needs });
                            }
                        }
                    }
                }
            }
        }
    }
    found
}

/// The element and the property of `n.path`, or the element of `id(n)`.
fn subject_of(expression: &Expr) -> Option<(String, Option<String>)> {
    match &expression.kind {
        ExprKind::Property { expression, key } => match &expression.kind {
            ExprKind::Variable(name) => Some((name.kind.text.clone(), Some(key.kind.text.clone()))),
            _ => None,
        },
        ExprKind::Function(FunctionInvocation { name, arguments, .. }) => {
            match (name.parts.as_slice(), arguments.as_slice()) {
                ([function], [argument]) if function.kind.text.eq_ignore_ascii_case("id") => {
                    match &argument.kind {
                        ExprKind::Variable(name) => Some((name.kind.text.clone(), None)),
                        _ => None,
                    }
                }
                _ => None,
            }
        }
        _ => None,
    }
}
