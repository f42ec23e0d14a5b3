//! A query as it is sent to a server: rewritten from its syntax tree, with the moment it sees in every pattern.
//!
//! INVARIANT: whatever a query matches comes out of `pattern`, which gives every node and every relationship a name and
//! a condition. A part of the tree that is not known here is refused, so nothing of the query's own text gets through.

mod expression;
mod pattern;

use open_cypher::Span;
use open_cypher::ast::{
    Clause, ClauseKind, Identifier, MatchClause, Name, Pattern, ProjectionClause, ProjectionItemKind, Query,
    QueryKind, RegularQuery, SetQuantifier, SingleQuery, SortDirection, UnionOperator,
};

use tgp_graph::mirroring::{CypherError, CypherResult};

/// The parameter that holds the moment.
pub(super) const MOMENT: &str = "tgp_moment";
/// How the names begin that are given to what a query leaves unnamed. No query may use such names.
pub(super) const OWN_NAMES: &str = "tgp_";

/// A query that can be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// The names of the columns; nothing when the query returns all that it knows, and the server says what that is.
    pub(super) columns: Option<Vec<String>>,
}

/// Rewrites a query. `hops` is the longest path that a variable length may walk.
pub(super) fn rewrite(source: &str, query: &RegularQuery, hops: u32) -> CypherResult<Rewritten> {
    let mut writer = Writer { source, hops, names: 0 };
    let text = writer.regular(query)?;
    let columns = writer.columns(&query.head)?;
    Ok(Rewritten { text, columns })
}

struct Writer<'q> {
    source: &'q str,
    hops: u32,
    /// How many names were given.
    names: usize,
}

/// What Cypher has, and what cannot be asked of a server.
fn unsupported<T>(span: Span, what: &str) -> CypherResult<T> {
    Err(CypherError::unsupported(span, what)
        .help("ask the embedded store, which knows it, or say it in other words"))
}

/// A name as it was written: in backticks where it had them, or where it needs them. Not every server takes them
/// everywhere.
fn word(name: &Identifier) -> String {
    let mut characters = name.text.chars();
    let is_plain = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_');
    if is_plain && !name.escaped { name.text.clone() } else { format!("`{}`", name.text.replace('`', "``")) }
}

impl Writer<'_> {
    fn regular(&mut self, query: &RegularQuery) -> CypherResult<String> {
        let mut text = self.single(&query.head)?;
        for branch in &query.unions {
            text.push_str(match branch.operator.kind {
                UnionOperator::Default | UnionOperator::Distinct => " UNION ",
                UnionOperator::All => " UNION ALL ",
                _ => return unsupported(branch.operator.span, "this kind of UNION"),
            });
            text.push_str(&self.single(&branch.query)?);
        }
        Ok(text)
    }

    /// A query inside of another one.
    fn nested(&mut self, query: &Query) -> CypherResult<String> {
        match &query.kind {
            QueryKind::Regular(regular) => self.regular(regular),
            _ => unsupported(query.span, "this query"),
        }
    }

    fn single(&mut self, query: &SingleQuery) -> CypherResult<String> {
        let clauses = query.kind.clauses.iter().map(|clause| self.clause(clause));
        Ok(clauses.collect::<CypherResult<Vec<_>>>()?.join(" "))
    }

    fn clause(&mut self, clause: &Clause) -> CypherResult<String> {
        match &clause.kind {
            ClauseKind::Match(matched) => self.matched(matched),
            ClauseKind::Unwind(unwind) => {
                let list = self.expression(&unwind.expression)?;
                Ok(format!("UNWIND {list} AS {}", name(&unwind.variable)?))
            }
            ClauseKind::With(with) => {
                let projection = self.projection(&with.projection)?;
                match &with.where_clause {
                    Some(condition) => Ok(format!("WITH {projection} WHERE {}", self.expression(condition)?)),
                    None => Ok(format!("WITH {projection}")),
                }
            }
            ClauseKind::Return(returned) => Ok(format!("RETURN {}", self.projection(&returned.projection)?)),
            _ => {
                let word =
                    clause.span.text(self.source).unwrap_or("").split_whitespace().next().unwrap_or("");
                unsupported(clause.span, &format!("the clause {}", word.to_uppercase()))
            }
        }
    }

    fn matched(&mut self, matched: &MatchClause) -> CypherResult<String> {
        if let Some(mode) = &matched.mode {
            return unsupported(mode.span, "a path mode");
        }
        if let Some(hint) = matched.hints.first() {
            return unsupported(hint.span, "a hint to the planner");
        }
        let word = if matched.optional { "OPTIONAL MATCH" } else { "MATCH" };
        let condition =
            matched.where_clause.as_ref().map(|condition| self.expression(condition)).transpose()?;
        Ok(format!("{word} {}", self.seen(&matched.pattern, condition)?))
    }

    /// A pattern with what must hold of it: the query's own condition, and that it is visible.
    fn seen(&mut self, pattern: &Pattern, condition: Option<String>) -> CypherResult<String> {
        let mut conditions: Vec<String> =
            condition.map(|condition| format!("({condition})")).into_iter().collect();
        let text = self.pattern(pattern, &mut conditions)?;
        Ok(format!("{text} WHERE {}", conditions.join(" AND ")))
    }

    fn projection(&mut self, projection: &ProjectionClause) -> CypherResult<String> {
        let mut text = String::new();
        let distinct = match projection.quantifier.as_ref().map(|quantifier| quantifier.kind) {
            None | Some(SetQuantifier::All) => false,
            Some(SetQuantifier::Distinct) => true,
            Some(_) => return unsupported(projection.span, "this quantifier"),
        };
        if distinct {
            text.push_str("DISTINCT ");
        }
        let mut items = Vec::new();
        for item in &projection.items {
            items.push(match &item.kind {
                // All names would be those too that were given to what has none.
                ProjectionItemKind::Wildcard if distinct || projection.items.len() > 1 => {
                    return unsupported(item.span, "`*` with DISTINCT or beside other columns");
                }
                ProjectionItemKind::Wildcard => "*".to_owned(),
                ProjectionItemKind::Expression { expression, alias } => {
                    let value = self.expression(expression)?;
                    match alias {
                        Some(alias) => format!("{value} AS {}", name(alias)?),
                        None => value,
                    }
                }
                _ => return unsupported(item.span, "this column"),
            });
        }
        text.push_str(&items.join(", "));
        if let Some(order) = &projection.order_by {
            let mut keys = Vec::new();
            for item in &order.items {
                if item.nulls.is_some() {
                    return unsupported(item.span, "an order of nulls");
                }
                let key = self.expression(&item.expression)?;
                keys.push(match item.direction.as_ref().map(|direction| direction.kind) {
                    None | Some(SortDirection::Ascending) => key,
                    Some(SortDirection::Descending) => format!("{key} DESC"),
                    Some(_) => return unsupported(item.span, "this direction"),
                });
            }
            text.push_str(&format!(" ORDER BY {}", keys.join(", ")));
        }
        for skip in [&projection.offset, &projection.skip].into_iter().flatten() {
            text.push_str(&format!(" SKIP {}", self.expression(skip)?));
        }
        if let Some(limit) = &projection.limit {
            text.push_str(&format!(" LIMIT {}", self.expression(limit)?));
        }
        Ok(text)
    }

    /// The names of what a query returns: those it gives, or its own words.
    fn columns(&self, query: &SingleQuery) -> CypherResult<Option<Vec<String>>> {
        let Some(ClauseKind::Return(returned)) = query.kind.clauses.last().map(|clause| &clause.kind) else {
            return unsupported(query.span, "a query without RETURN");
        };
        let mut columns = Vec::new();
        for item in &returned.projection.items {
            match &item.kind {
                ProjectionItemKind::Expression { alias: Some(alias), .. } => {
                    columns.push(alias.kind.text.clone())
                }
                ProjectionItemKind::Expression { expression, .. } => {
                    columns.push(match &expression.kind {
                        open_cypher::ast::ExprKind::Variable(name) => name.kind.text.clone(),
                        _ => expression.span.text(self.source).unwrap_or_default().to_owned(),
                    });
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(columns))
    }

    /// A name that no query has.
    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("{OWN_NAMES}{}", self.names)
    }
}

/// A name of the query.
fn name(name: &Name) -> CypherResult<String> {
    if name.kind.text.starts_with(OWN_NAMES) {
        let message = format!("names that begin with `{OWN_NAMES}` are taken");
        return Err(CypherError::new("InvalidArgument", name.span, message).help("give it another name"));
    }
    Ok(word(&name.kind))
}
