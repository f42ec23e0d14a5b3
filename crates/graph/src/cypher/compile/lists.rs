//! Expressions that bind their own names: comprehensions, quantifiers, folds, and queries inside expressions.

use open_cypher::ast::{
    Expr, ListComprehension, Name, Pattern, PatternComprehension, QuantifiedPredicate,
    QuantifiedPredicateKind, QueryKind, ReduceExpression, SubqueryExpression, SubqueryExpressionKind,
};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;

use super::expression::Sql;
use super::pattern::Names;
use super::scope::{Chain, Scope, Variable};
use super::{Compiler, Rows, aggregates};

/// A list whose items are walked: the SQL of the list, the aliases, and the scope in which the item has its name.
///
/// SQL takes an aggregate for one of the outermost query that all its columns are from. So each aggregate here has a
/// column of its own query among its arguments, for the case that what it is about has none.
struct Walk {
    list: String,
    table: String,
    items: String,
    scope: Scope,
}

impl Walk {
    /// Gives `body`, computed over all items, or null when the list is null.
    fn over(&self, body: &str, filter: &str) -> String {
        let Self { list, table, items, .. } = self;
        format!(
            "(SELECT CASE WHEN {table}.v IS NOT NULL THEN (SELECT {body} FROM json_each(cy_steps({table}.v)) AS {items}{filter}) END FROM (SELECT {list} AS v) AS {table})"
        )
    }
}

impl Compiler<'_> {
    fn list_of(&mut self, list: &Expr, scope: &Scope) -> CypherResult<(String, Type)> {
        let sql = self.expression(list, scope)?;
        let item = match &sql.kind {
            Type::List(item) => item.as_ref().clone(),
            Type::Any | Type::Null => Type::Any,
            other => {
                let message = format!("a list is needed, this is {}", other.noun());
                return Err(CypherError::new("InvalidArgumentType", list.span, message));
            }
        };
        Ok((self.as_value(sql), item))
    }

    fn walk(&mut self, list: &Expr, variable: &Name, scope: &Scope) -> CypherResult<Walk> {
        self.site("cy_steps", list.span);
        let (list, item) = self.list_of(list, scope)?;
        let (table, items) = (self.name("t"), self.name("j"));
        let value = format!("cy_at({table}.v, {items}.key)");
        let scope = scope.with(Variable::value(&variable.kind.text, item, value));
        Ok(Walk { list, table, items, scope })
    }

    pub(super) fn comprehension(
        &mut self,
        comprehension: &ListComprehension,
        scope: &Scope,
    ) -> CypherResult<Sql> {
        let walk = self.walk(&comprehension.list, &comprehension.variable, scope)?;
        let filter = self.filter(comprehension.predicate.as_deref(), &walk.scope)?;
        let item = match &comprehension.projection {
            Some(projection) => self.expression(projection, &walk.scope)?,
            None => match walk.scope.find(&comprehension.variable.kind.text) {
                Some(variable) => Sql::variable(variable),
                None => Sql::value(Type::Null, "NULL"),
            },
        };
        let kind = Type::list(item.kind.clone());
        let item = self.as_value(item);
        Ok(Sql::value(kind, walk.over(&format!("cy_gather({item}, {}.key)", walk.items), &filter)))
    }

    fn filter(&mut self, predicate: Option<&Expr>, scope: &Scope) -> CypherResult<String> {
        match predicate {
            Some(predicate) => Ok(format!(" WHERE {}", self.truth_of(predicate, &scope.predicates(true))?)),
            None => Ok(String::new()),
        }
    }

    pub(super) fn quantified(
        &mut self,
        quantified: &QuantifiedPredicate,
        scope: &Scope,
    ) -> CypherResult<Sql> {
        aggregates::refuse(&quantified.predicate)?;
        let function = match quantified.kind.kind {
            QuantifiedPredicateKind::All => "cy_all",
            QuantifiedPredicateKind::Any => "cy_any",
            QuantifiedPredicateKind::None => "cy_none",
            QuantifiedPredicateKind::Single => "cy_single",
            _ => return Err(CypherError::unsupported(quantified.kind.span, "this quantifier")),
        };
        let walk = self.walk(&quantified.list, &quantified.variable, scope)?;
        let test = self.truth_of(&quantified.predicate, &walk.scope.predicates(true))?;
        Ok(Sql::truth(walk.over(&format!("{function}({test}, {}.key)", walk.items), "")))
    }

    pub(super) fn reduce(&mut self, reduce: &ReduceExpression, scope: &Scope) -> CypherResult<Sql> {
        aggregates::refuse(&reduce.expression)?;
        let (list, item) = self.list_of(&reduce.list, scope)?;
        let initial = self.value_of(&reduce.initial, scope)?;
        let (table, fold) = (self.name("t"), self.name("f"));
        let value = format!("cy_at({table}.v, {fold}.i)");
        let scope = scope
            .with(Variable::value(&reduce.variable.kind.text, item, value))
            .with(Variable::value(&reduce.accumulator.kind.text, Type::Any, format!("{fold}.a")));
        let next = self.value_of(&reduce.expression, &scope)?;
        Ok(Sql::value(
            Type::Any,
            format!(
                "(SELECT CASE WHEN {table}.v IS NOT NULL THEN (WITH RECURSIVE {fold}(i, a) AS (SELECT 0, {initial} UNION ALL SELECT {fold}.i + 1, {next} FROM {fold} WHERE {fold}.i < cy_count({table}.v)) SELECT a FROM {fold} WHERE i = cy_count({table}.v)) END FROM (SELECT {list} AS v) AS {table})"
            ),
        ))
    }

    /// Whether a pattern has a match. It names only what there is.
    pub(super) fn pattern_exists(&mut self, pattern: &Pattern, scope: &Scope) -> CypherResult<Sql> {
        let mut chain = Chain { scope: scope.as_outer(), ..Chain::default() };
        self.nested("Exists", pattern.span, |compiler| {
            compiler.for_rows(Rows::Set, |compiler| compiler.matched(&mut chain, pattern, None, Names::Known))
        })?;
        let from = chain.from.clone().unwrap_or_default();
        Ok(Sql::truth(format!("EXISTS ({})", chain.close(&format!("SELECT 1 FROM {from}")))))
    }

    pub(super) fn pattern_comprehension(
        &mut self,
        comprehension: &PatternComprehension,
        scope: &Scope,
    ) -> CypherResult<Sql> {
        let mut pattern = comprehension.pattern.clone();
        if let (Some(binding), Some(part)) = (&comprehension.binding, pattern.parts.first_mut()) {
            part.kind.binding = Some(binding.clone());
        }
        aggregates::refuse(&comprehension.projection)?;
        let mut chain = Chain { scope: scope.as_outer(), ..Chain::default() };
        self.nested("Collect", pattern.span, |compiler| {
            compiler.for_rows(Rows::Bag, |compiler| {
                compiler.matched(&mut chain, &pattern, comprehension.predicate.as_deref(), Names::New)
            })
        })?;
        let item = self.expression(&comprehension.projection, &chain.scope)?;
        let kind = Type::list(item.kind.clone());
        let item = self.as_value(item);
        let from = chain.from.clone().unwrap_or_default();
        Ok(Sql::value(
            kind,
            format!(
                "({})",
                chain.close(&format!("SELECT cy_gather(g.v) FROM (SELECT {item} AS v FROM {from}) AS g"))
            ),
        ))
    }

    /// `EXISTS { ... }`, `COUNT { ... }` and `COLLECT { ... }`.
    pub(super) fn subquery(&mut self, subquery: &SubqueryExpression, scope: &Scope) -> CypherResult<Sql> {
        let QueryKind::Regular(query) = &subquery.query.kind else {
            return Err(CypherError::new("UnexpectedSyntax", subquery.query.span, "this is not a query"));
        };
        let mut outer = scope.as_outer();
        outer.exists = subquery.kind.kind == SubqueryExpressionKind::Exists;
        let operation = match subquery.kind.kind {
            SubqueryExpressionKind::Exists => "Exists",
            SubqueryExpressionKind::Count => "Count",
            _ => "Collect",
        };
        let answer = self.nested(operation, subquery.query.span, |compiler| {
            compiler.for_rows(Rows::Bag, |compiler| compiler.regular(query, &outer))
        })?;
        let sql = answer.sql;
        Ok(match subquery.kind.kind {
            SubqueryExpressionKind::Exists => Sql::truth(format!("EXISTS ({sql})")),
            SubqueryExpressionKind::Count => Sql::value(Type::Int, format!("(SELECT COUNT(*) FROM ({sql}))")),
            SubqueryExpressionKind::Collect => match answer.columns.len() {
                1 => Sql::value(Type::list(Type::Any), format!("(SELECT cy_gather(r1) FROM ({sql}))")),
                _ => {
                    let message = "COLLECT needs a query with one column";
                    return Err(CypherError::new("InvalidClauseComposition", subquery.query.span, message));
                }
            },
            _ => return Err(CypherError::unsupported(subquery.kind.span, "this subquery")),
        })
    }
}
