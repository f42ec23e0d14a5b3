//! WITH and RETURN: groups, columns, order, and what is left out.

use std::collections::BTreeSet;

use open_cypher::Span;
use open_cypher::ast::visit::{Visitor, walk_expr};
use open_cypher::ast::{
    Expr, ExprKind, FunctionInvocation, OrderBy, ParameterName, ProjectionClause, ProjectionItemKind,
    SetQuantifier, SortDirection,
};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;

use super::aggregates::{self, aggregate, misplaced};
use super::expression::{Form, Sql};
use super::query::Answer;
use super::scope::{Chain, HIDDEN, Kind, Scope, Stage, Variable, from_where};
use super::{Bind, Compiler};

/// A column of a projection.
struct Item<'a> {
    name: String,
    /// `None` for the columns of `*`.
    expression: Option<&'a Expr>,
    span: Span,
    aggregates: Vec<&'a Expr>,
}

/// Which of the two clauses it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clause {
    With,
    Return,
}

/// A projection whose columns are made, before they are ordered.
struct Projected {
    names: Vec<String>,
    spellings: Vec<(String, String, bool)>,
    /// Whether rows were put together, so that only the columns are left.
    closed: bool,
    grouped: bool,
}

impl Compiler<'_> {
    /// WITH: the chain continues with the columns alone.
    pub(super) fn with(
        &mut self,
        chain: &mut Chain,
        projection: &ProjectionClause,
        filter: Option<&Expr>,
    ) -> CypherResult<()> {
        let projected = self.columns(chain, projection, Clause::With, filter.is_some())?;
        let order = self.order(&projected, projection, &chain.scope)?;
        if !order.is_empty() {
            let rest = format!("{}{order}", from_where(&chain.sources(), &[]));
            self.stage(chain, &rest, Stage::Passing);
        }
        if let Some(filter) = filter {
            aggregates::refuse(filter)?;
            let mut scope = chain.scope.predicates(true);
            if projected.closed {
                scope.spellings = spelled(&projected, &chain.scope, false);
            }
            let filter = self.truth_of(filter, &scope)?;
            chain.scope.variables.retain(|variable| projected.names.contains(&variable.name));
            self.stage(chain, &from_where(&chain.sources(), &[filter]), Stage::Passing);
        }
        chain.scope.variables.retain(|variable| projected.names.contains(&variable.name));
        Ok(())
    }

    /// RETURN: the last SELECT, with whole values.
    pub(super) fn returned(
        &mut self,
        chain: &mut Chain,
        projection: &ProjectionClause,
    ) -> CypherResult<Answer> {
        let projected = self.columns(chain, projection, Clause::Return, false)?;
        let order = self.order(&projected, projection, &chain.scope)?;
        let mut columns = Vec::new();
        for (at, name) in projected.names.iter().enumerate() {
            if let Some(variable) = chain.scope.find(name) {
                columns.push(format!("{} AS r{}", self.as_value(Sql::variable(variable)), at + 1));
            }
        }
        let select = format!("SELECT {}{}{order}", columns.join(", "), from_where(&chain.sources(), &[]));
        Ok(Answer { sql: chain.close(&select), columns: projected.names })
    }

    fn items<'a>(
        &mut self,
        projection: &'a ProjectionClause,
        clause: Clause,
        scope: &Scope,
    ) -> CypherResult<Vec<Item<'a>>> {
        let mut items: Vec<Item<'a>> = Vec::new();
        for item in &projection.items {
            match &item.kind {
                ProjectionItemKind::Wildcard => {
                    let names: BTreeSet<&str> = scope.names().collect();
                    if names.is_empty() && clause == Clause::Return {
                        let message = "there are no variables that `*` could return";
                        return Err(CypherError::new("NoVariablesInScope", item.span, message));
                    }
                    items.extend(names.into_iter().map(|name| Item {
                        name: name.to_owned(),
                        expression: None,
                        span: item.span,
                        aggregates: Vec::new(),
                    }));
                }
                ProjectionItemKind::Expression { expression, alias } => {
                    let name = match (alias, &expression.kind, clause) {
                        (Some(alias), _, _) => alias.kind.text.clone(),
                        (None, ExprKind::Variable(name), _) => name.kind.text.clone(),
                        (None, _, Clause::Return) => self.words(expression.span).to_owned(),
                        (None, _, Clause::With) => {
                            let message = "an expression in WITH needs a name";
                            return Err(CypherError::new("NoExpressionAlias", expression.span, message)
                                .help(format!("write {} AS name", self.words(expression.span))));
                        }
                    };
                    let aggregates = aggregates::find(expression)?;
                    items.push(Item { name, expression: Some(expression), span: item.span, aggregates });
                }
                _ => return Err(CypherError::unsupported(item.span, "this column")),
            }
        }
        let mut seen = BTreeSet::new();
        for item in &items {
            if !seen.insert(item.name.as_str()) {
                let message = format!("two columns have the name `{}`", item.name);
                return Err(CypherError::new("ColumnNameConflict", item.span, message)
                    .help("give one another name by AS"));
            }
        }
        Ok(items)
    }

    /// Makes the columns: groups first, when there are aggregates.
    fn columns(
        &mut self,
        chain: &mut Chain,
        projection: &ProjectionClause,
        clause: Clause,
        filtered: bool,
    ) -> CypherResult<Projected> {
        let items = self.items(projection, clause, &chain.scope)?;
        let grouped = items.iter().any(|item| !item.aggregates.is_empty());
        let distinct = projection
            .quantifier
            .as_ref()
            .is_some_and(|quantifier| quantifier.kind == SetQuantifier::Distinct);
        if grouped {
            // An aggregate of a value from around would be one of the query around.
            if chain.scope.variables.iter().any(|variable| variable.outer) {
                chain.scope.variables.iter_mut().for_each(|variable| variable.outer = false);
                let rest = from_where(&chain.sources(), &[]);
                self.stage(chain, &rest, Stage::Passing);
            }
            self.group(chain, &items)?;
        }
        let words: Vec<&str> = items.iter().map(|item| self.words(item.span)).collect();
        let operation = match (clause, grouped, distinct) {
            (_, true, _) => "Aggregate",
            (_, _, true) => "Distinct",
            (Clause::With, ..) => "With",
            (Clause::Return, ..) => "Return",
        };
        self.step_of(operation, words.join(", "));
        let mut columns = Vec::new();
        let mut spellings = Vec::new();
        let mut shared = false;
        for item in &items {
            let sql = match item.expression {
                Some(expression) => {
                    spellings.push((
                        self.spelling(expression.span),
                        item.name.clone(),
                        is_simple(expression) || matches!(&expression.kind, ExprKind::Function(call) if aggregate(call).is_some()),
                    ));
                    shared = shared || self.is_shared(expression, item);
                    self.expression(expression, &chain.scope)?
                }
                None => match chain.scope.find(&item.name) {
                    Some(variable) => Sql::variable(variable),
                    None => return Err(self.undefined(&item.name, item.span, &chain.scope)),
                },
            };
            columns.push(variable(&item.name, self, sql));
        }
        let closed = grouped || distinct;
        let ordered = projection.order_by.is_some();
        let mut scope = Scope::default();
        if !closed && (ordered || filtered) {
            scope.variables.clone_from(&chain.scope.variables);
        }
        let mut rest = from_where(&chain.sources(), &[]);
        if distinct {
            let keys: Vec<String> = columns.iter().map(Variable::group).collect();
            rest = format!("{rest} GROUP BY {}", keys.join(", "));
        }
        let names = items.iter().map(|item| item.name.clone()).collect();
        columns.into_iter().for_each(|column| scope.set(column));
        // Values of a query around this one need no column; they are what they were.
        chain.scope = scope;
        self.stage(chain, &rest, if shared { Stage::Kept } else { Stage::Passing });
        Ok(Projected { names, spellings, closed, grouped })
    }

    /// Whether a computed column is used more than once further on: then it is computed once, in a table, since SQLite
    /// would put the whole expression in each place, and the places of that one into the next.
    fn is_shared(&self, expression: &Expr, item: &Item<'_>) -> bool {
        if is_simple(expression) || matches!(expression.kind, ExprKind::Literal(_) | ExprKind::Parameter(_)) {
            return false;
        }
        // What is random is the same wherever it is used.
        if self.words(expression.span).to_lowercase().contains("rand") {
            return true;
        }
        let rest = self.source.get(item.span.end..).unwrap_or("");
        let tokens = open_cypher::lex(rest).tokens;
        let quoted = format!("`{}`", item.name);
        tokens
            .iter()
            .filter(|token| token.text(rest).is_some_and(|text| text == item.name || text == quoted))
            .count()
            > 1
            || rest.contains('*')
    }

    /// One row for each group: the aggregates and the columns that make the groups, as hidden variables.
    fn group(&mut self, chain: &mut Chain, items: &[Item<'_>]) -> CypherResult<()> {
        let mut keys = Vec::new();
        let mut hidden: Vec<(Span, Variable)> = Vec::new();
        let simple: BTreeSet<String> = items
            .iter()
            .filter(|item| item.aggregates.is_empty())
            .filter_map(|item| match item.expression {
                Some(expression) if is_simple(expression) => Some(self.spelling(expression.span)),
                Some(_) => None,
                None => Some(item.name.clone()),
            })
            .collect();
        for item in items {
            match item.expression {
                Some(expression) if item.aggregates.is_empty() => {
                    let sql = self.expression(expression, &chain.scope)?;
                    let key = variable(&self.name(&HIDDEN.to_string()), self, sql);
                    keys.push(key.group());
                    hidden.push((expression.span, key));
                }
                Some(expression) => self.check_groups(expression, &simple, &chain.scope)?,
                None => keys.extend(chain.scope.find(&item.name).map(Variable::group)),
            }
            for found in &item.aggregates {
                if let ExprKind::Function(call) = &found.kind {
                    let sql = self.aggregated(call, found.span, &chain.scope)?;
                    hidden.push((found.span, variable(&self.name(&HIDDEN.to_string()), self, sql)));
                }
            }
        }
        let mut rest = from_where(&chain.sources(), &[]);
        if !keys.is_empty() {
            rest = format!("{rest} GROUP BY {}", keys.join(", "));
        }
        let mut spans = Vec::new();
        for (span, variable) in hidden {
            spans.push((span, variable.name.clone()));
            chain.scope.set(variable);
        }
        self.stage(chain, &rest, Stage::Passing);
        let found =
            spans.into_iter().filter_map(|(span, name)| Some((span, chain.scope.find(&name)?.clone())));
        chain.scope.spans = found.collect();
        chain.scope.variables.retain(|variable| !variable.name.starts_with(HIDDEN));
        Ok(())
    }

    /// What is beside an aggregate must be the same for the whole group.
    fn check_groups(&self, expression: &Expr, keys: &BTreeSet<String>, scope: &Scope) -> CypherResult<()> {
        let mut check = Groups { compiler: self, keys, scope, refusal: None };
        check.visit_expr(expression);
        check.refusal.map_or(Ok(()), Err)
    }

    fn aggregated(&mut self, call: &FunctionInvocation, span: Span, scope: &Scope) -> CypherResult<Sql> {
        let function = aggregate(call).unwrap_or_default();
        let distinct =
            call.quantifier.as_ref().is_some_and(|quantifier| quantifier.kind == SetQuantifier::Distinct);
        let wanted = if function.contains("percentile") { 2 } else { 1 };
        super::calls::counted(call, wanted, wanted, span)?;
        let Some(argument) = call.arguments.first() else { return Err(misplaced(span)) };
        if let ExprKind::Wildcard = argument.kind {
            return Ok(Sql::value(Type::Int, "COUNT(*)"));
        }
        let sql = self.expression(argument, scope)?;
        let known = sql.kind.clone();
        if function == "cy_number" {
            let text = match (&sql.form, distinct) {
                (Form::Entity { .. }, true) => format!("COUNT(DISTINCT {})", sql.text),
                (Form::Entity { .. } | Form::Truth, false) => format!("COUNT({})", sql.text),
                (_, true) => format!("cy_number_d({})", self.as_value(sql)),
                (_, false) => format!("COUNT({})", self.as_value(sql)),
            };
            return Ok(Sql::value(Type::Int, text));
        }
        self.site(function, span);
        let mut values = vec![self.as_value(sql)];
        for argument in call.arguments.iter().skip(1) {
            values.push(self.value_of(argument, scope)?);
        }
        let kind = match function {
            "cy_collect" => Type::list(known),
            "cy_min" | "cy_max" => known,
            "cy_sum" => {
                if known == Type::Int {
                    Type::Int
                } else {
                    Type::Number
                }
            }
            _ => Type::Number,
        };
        let ending = if distinct { "_d" } else { "" };
        Ok(Sql::value(kind, format!("{function}{ending}({})", values.join(", "))))
    }

    /// ORDER BY, SKIP and LIMIT.
    fn order(
        &mut self,
        projected: &Projected,
        projection: &ProjectionClause,
        scope: &Scope,
    ) -> CypherResult<String> {
        let mut sql = match &projection.order_by {
            Some(order) => {
                let items: Vec<&str> = order.items.iter().map(|item| self.words(item.span)).collect();
                self.step_of("Sort", items.join(", "));
                self.sorted(projected, order, scope)?
            }
            None => String::new(),
        };
        let skip = projection.skip.as_ref().or(projection.offset.as_ref());
        let limit = projection.limit.as_ref().map(|limit| self.number(limit, "LIMIT")).transpose()?;
        let skip = skip.map(|skip| self.number(skip, "SKIP")).transpose()?;
        self.step_of_limit(projection);
        match (limit, skip) {
            (Some(limit), Some(skip)) => sql.push_str(&format!(" LIMIT {limit} OFFSET {skip}")),
            (Some(limit), None) => sql.push_str(&format!(" LIMIT {limit}")),
            (None, Some(skip)) => sql.push_str(&format!(" LIMIT -1 OFFSET {skip}")),
            // Without a limit SQLite may forget the order of a table that others read.
            (None, None) if !sql.is_empty() => sql.push_str(" LIMIT -1"),
            (None, None) => {}
        }
        Ok(sql)
    }

    fn sorted(&mut self, projected: &Projected, order: &OrderBy, scope: &Scope) -> CypherResult<String> {
        let mut keys = Vec::new();
        for item in &order.items {
            if let Some(nulls) = &item.nulls {
                return Err(CypherError::unsupported(nulls.span, "NULLS FIRST or NULLS LAST"));
            }
            let found = aggregates::find(&item.expression)?;
            if let (Some(aggregate), false) = (found.first(), projected.grouped) {
                return Err(misplaced(aggregate.span));
            }
            let mut scope = scope.clone();
            if projected.closed {
                let whole = self.spelling(item.expression.span);
                let is_column = projected.spellings.iter().any(|(spelling, _, _)| *spelling == whole);
                scope.spellings = spelled(projected, &scope, !found.is_empty() && !is_column);
                let misses = |found: &&Expr| {
                    let spelling = self.spelling(found.span);
                    !projected.spellings.iter().any(|(known, _, _)| *known == spelling)
                };
                if let (Some(missing), false) = (found.iter().find(|found| misses(found)), is_column) {
                    let message = "an aggregate in ORDER BY has to be one of the columns";
                    return Err(CypherError::new("UndefinedVariable", missing.span, message));
                }
            }
            let value = self.value_of(&item.expression, &scope)?;
            let down =
                item.direction.as_ref().is_some_and(|direction| direction.kind == SortDirection::Descending);
            keys.push(format!("cy_key({value}){}", if down { " DESC" } else { "" }));
        }
        Ok(format!(" ORDER BY {}", keys.join(", ")))
    }

    /// The number of SKIP or LIMIT.
    fn number(&mut self, expression: &Expr, clause: &'static str) -> CypherResult<String> {
        if !aggregates::variables(expression).is_empty() {
            let message = format!("{clause} cannot depend on a row");
            return Err(CypherError::new("NonConstantExpression", expression.span, message));
        }
        if let ExprKind::Parameter(parameter) = &expression.kind
            && let ParameterName::Named(name) | ParameterName::Positional(name) = &parameter.name
        {
            return Ok(self.bind_at(Bind::Count { clause, name: name.clone() }, expression.span));
        }
        let sql = self.expression(expression, &Scope::default())?;
        if !matches!(sql.kind, Type::Any | Type::Null | Type::Int | Type::Number) {
            let message = format!("{clause} needs an integer, this is {}", sql.kind.noun());
            return Err(CypherError::new("InvalidArgumentType", expression.span, message));
        }
        if let ExprKind::Unary { operand, .. } = &expression.kind
            && let ExprKind::Literal(_) = operand.kind
            && self.words(expression.span).starts_with('-')
        {
            let message = format!("{clause} needs a number that is not negative");
            return Err(CypherError::new("NegativeIntegerArgument", expression.span, message));
        }
        self.site("cy_limit", expression.span);
        Ok(format!("cy_limit({})", self.as_value(sql)))
    }
}

/// The columns by how they were written, for expressions that say them again.
fn spelled(projected: &Projected, scope: &Scope, only_simple: bool) -> Vec<(String, Variable)> {
    let columns = projected.spellings.iter().filter(|(_, _, simple)| *simple || !only_simple);
    columns.filter_map(|(spelling, name, _)| Some((spelling.clone(), scope.find(name)?.clone()))).collect()
}

/// A compiled expression as a variable of that name.
fn variable(name: &str, compiler: &Compiler<'_>, sql: Sql) -> Variable {
    match sql.form {
        Form::Entity { id, props } => Variable {
            name: name.to_owned(),
            kind: if sql.kind == Type::Relationship { Kind::Relationship } else { Kind::Node },
            value: sql.text,
            id,
            props: Some(props),
            labels: Vec::new(),
            outer: false,
        },
        _ => Variable::value(name, sql.kind.clone(), compiler.as_value(sql)),
    }
}

/// A variable or a property of one: what is allowed beside an aggregate when it makes the groups.
fn is_simple(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Variable(_) => true,
        ExprKind::Property { expression, .. } => is_simple(expression),
        ExprKind::Parenthesized(inner) => is_simple(inner),
        _ => false,
    }
}

/// Whether a projection is the same however often a row comes; `exists` says that only the presence of rows is asked.
pub(super) fn ignores_duplicates(projection: &ProjectionClause, exists: bool) -> bool {
    let mut grouped = false;
    for item in &projection.items {
        let ProjectionItemKind::Expression { expression, .. } = &item.kind else { continue };
        let Ok(found) = aggregates::find(expression) else { return false };
        for aggregate in found {
            grouped = true;
            let ExprKind::Function(call) = &aggregate.kind else { return false };
            let distinct = call.quantifier.as_ref().is_some_and(|kind| kind.kind == SetQuantifier::Distinct);
            if !distinct && !matches!(self::aggregate(call), Some("cy_min" | "cy_max")) {
                return false;
            }
        }
    }
    let distinct = projection.quantifier.as_ref().is_some_and(|kind| kind.kind == SetQuantifier::Distinct);
    let counted = projection.skip.is_some() || projection.offset.is_some() || projection.limit.is_some();
    grouped || distinct || (exists && !counted)
}

struct Groups<'c, 'q> {
    compiler: &'c Compiler<'q>,
    keys: &'c BTreeSet<String>,
    scope: &'c Scope,
    refusal: Option<Box<CypherError>>,
}

impl<'a> Visitor<'a> for Groups<'_, '_> {
    fn visit_expr(&mut self, node: &'a Expr) {
        match &node.kind {
            ExprKind::Function(call) if aggregate(call).is_some() => {}
            _ if is_simple(node) && self.keys.contains(&self.compiler.spelling(node.span)) => {}
            ExprKind::Variable(name) if self.scope.find(&name.kind.text).is_some() => {
                let message =
                    format!("`{}` is used beside an aggregate but is not a grouping column", name.kind.text);
                let refusal = CypherError::new("AmbiguousAggregationExpression", name.span, message)
                    .help("give it a column of its own, in a WITH before");
                self.refusal.get_or_insert(refusal);
            }
            _ => walk_expr(self, node),
        }
    }
}
