//! Clauses in a row, and UNION between such rows. What is not in the list of clauses is refused.

use open_cypher::Span;
use open_cypher::ast::{
    Clause, ClauseKind, ExprKind, MatchClause, ProjectionClause, ProjectionItemKind, RegularQuery,
    SingleQuery, UnionOperator, UnwindClause,
};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;

use super::pattern::Names;
use super::scope::{Chain, Scope, Variable, from_where};
use super::{Compiler, Rows, aggregates};

/// A whole query: its SQL, whose columns are `r1`, `r2`, ..., and their names.
pub(super) struct Answer {
    pub sql: String,
    pub columns: Vec<String>,
}

impl Compiler<'_> {
    pub(super) fn regular(&mut self, query: &RegularQuery, outer: &Scope) -> CypherResult<Answer> {
        let inside = outer.inside;
        let first = self.single(&query.head, outer, inside)?;
        if query.unions.is_empty() {
            return Ok(first);
        }
        let mut branches = vec![format!("SELECT * FROM ({})", first.sql)];
        let mut keeps_all = None;
        for union in &query.unions {
            let all = union.operator.kind == UnionOperator::All;
            self.step_of(if all { "UnionAll" } else { "Union" }, "");
            if *keeps_all.get_or_insert(all) != all {
                let message = "UNION and UNION ALL cannot be mixed in one query";
                return Err(CypherError::new("InvalidClauseComposition", union.operator.span, message));
            }
            let branch = self.single(&union.query, outer, inside)?;
            let mut order = Vec::new();
            for column in &first.columns {
                let at = branch.columns.iter().position(|name| name == column);
                order.extend(at.map(|at| format!("r{}", at + 1)));
            }
            if order.len() != first.columns.len() || branch.columns.len() != first.columns.len() {
                let message = "the parts of a UNION have different columns";
                return Err(CypherError::new("DifferentColumnsInUnion", union.query.span, message)
                    .help("give their columns the same names by AS"));
            }
            let order = if order.is_empty() { "1".to_owned() } else { order.join(", ") };
            branches.push(format!("SELECT {order} FROM ({})", branch.sql));
        }
        let mut sql = branches.join(" UNION ALL ");
        if keeps_all == Some(false) {
            let names: Vec<String> = (1..=first.columns.len()).map(|at| format!("r{at}")).collect();
            let keys: Vec<String> = names.iter().map(|name| format!("cy_key({name})")).collect();
            sql = format!("SELECT {} FROM ({sql}) GROUP BY {}", names.join(", "), keys.join(", "));
        }
        Ok(Answer { sql, columns: first.columns })
    }

    fn single(&mut self, query: &SingleQuery, outer: &Scope, inside: bool) -> CypherResult<Answer> {
        let mut chain = Chain { scope: outer.clone(), ..Chain::default() };
        let mut clauses = query.kind.clauses.as_slice();
        if outer.imports {
            chain.scope.imports = false;
            clauses = imported(&mut chain.scope, clauses);
        }
        for (at, clause) in clauses.iter().enumerate() {
            self.rows = rows(clauses.get(at..).unwrap_or_default(), outer.exists);
            match &clause.kind {
                ClauseKind::Match(matching) => self.match_clause(&mut chain, matching, clause.span)?,
                ClauseKind::Unwind(unwind) => self.unwind(&mut chain, unwind)?,
                ClauseKind::With(with) => {
                    self.with(&mut chain, &with.projection, with.where_clause.as_ref())?;
                    for variable in &outer.lasting {
                        if chain.scope.find(&variable.name).is_none() {
                            chain.scope.variables.push(variable.clone());
                        }
                    }
                }
                ClauseKind::Return(done) if at + 1 == clauses.len() => {
                    return self.returned(&mut chain, &done.projection);
                }
                ClauseKind::Return(_) => {
                    let message = "RETURN is the last clause";
                    return Err(CypherError::new("InvalidClauseComposition", clause.span, message));
                }
                _ => return Err(refused(clause, inside)),
            }
        }
        if inside && !clauses.is_empty() {
            let from = chain.from.clone().map(|from| format!(" FROM {from}")).unwrap_or_default();
            return Ok(Answer { sql: chain.close(&format!("SELECT 1 AS r1{from}")), columns: Vec::new() });
        }
        Err(CypherError::new(
            "InvalidClauseComposition",
            Span::empty(query.span.end),
            "the query returns nothing",
        )
        .help("end it with RETURN"))
    }

    fn match_clause(&mut self, chain: &mut Chain, clause: &MatchClause, span: Span) -> CypherResult<()> {
        if let Some(mode) = &clause.mode {
            return Err(CypherError::unsupported(mode.span, "a path mode such as WALK"));
        }
        if !clause.hints.is_empty() {
            return Err(CypherError::unsupported(span, "a hint with USING"));
        }
        let filter = clause.where_clause.as_ref();
        if clause.optional {
            self.step_of("Optional", self.words(clause.pattern.span));
            return self.optionally_matched(chain, &clause.pattern, filter);
        }
        self.matched(chain, &clause.pattern, filter, Names::New)
    }

    fn unwind(&mut self, chain: &mut Chain, unwind: &UnwindClause) -> CypherResult<()> {
        if let Some(call) = self.spelling.call(unwind.variable.span) {
            return self.subquery_call(chain, unwind, call);
        }
        let name = &unwind.variable.kind.text;
        if chain.scope.find(name).is_some() {
            let message = format!("`{name}` is bound already");
            return Err(CypherError::new("VariableAlreadyBound", unwind.variable.span, message));
        }
        aggregates::refuse(&unwind.expression)?;
        let list = self.expression(&unwind.expression, &chain.scope)?;
        let item = match &list.kind {
            Type::List(item) => item.as_ref().clone(),
            Type::Any | Type::Null => Type::Any,
            other => {
                let message = format!("UNWIND needs a list, this is {}", other.noun());
                return Err(CypherError::new("InvalidArgumentType", unwind.expression.span, message));
            }
        };
        self.step_of("Unwind", self.words(unwind.expression.span));
        self.site("cy_each", unwind.expression.span);
        let list = self.as_value(list);
        let items = self.name("j");
        let mut sources = chain.sources();
        sources.push(format!("json_each(cy_each({list})) AS {items}"));
        chain.scope.set(Variable::value(name, item, format!("cy_item({items}.value)")));
        let stage = chain.join(1);
        self.stage(chain, &from_where(&sources, &[]), stage);
        Ok(())
    }
}

/// Takes the first WITH of a subquery for what it is there: the variables that the subquery has.
fn imported<'a>(scope: &mut Scope, clauses: &'a [Clause]) -> &'a [Clause] {
    let names = clauses.first().and_then(|clause| match &clause.kind {
        ClauseKind::With(with) if with.where_clause.is_none() => plain_names(&with.projection),
        _ => None,
    });
    match names {
        Some(names) => {
            scope.variables.retain(|known| {
                names.as_ref().is_none_or(|names| names.iter().any(|name| *name == known.name))
            });
            clauses.get(1..).unwrap_or_default()
        }
        None => {
            scope.variables.clear();
            clauses
        }
    }
}

/// The names of a projection that does nothing else; none of them where it is `*`.
fn plain_names(projection: &ProjectionClause) -> Option<Option<Vec<&str>>> {
    let ProjectionClause { quantifier: None, order_by: None, offset: None, skip: None, limit: None, .. } =
        projection
    else {
        return None;
    };
    let mut names = Vec::new();
    for item in &projection.items {
        match &item.kind {
            ProjectionItemKind::Wildcard => return (projection.items.len() == 1).then_some(None),
            ProjectionItemKind::Expression { expression, alias: None } => match &expression.kind {
                ExprKind::Variable(name) => names.push(name.kind.text.as_str()),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(Some(names))
}

/// Whether it matters how often a row comes out of the first of these clauses.
fn rows(clauses: &[Clause], exists: bool) -> Rows {
    let next = clauses.iter().find_map(|clause| match &clause.kind {
        ClauseKind::With(with) => Some((&with.projection, false)),
        ClauseKind::Return(done) => Some((&done.projection, exists)),
        _ => None,
    });
    let ignored = match next {
        Some((projection, exists)) => super::projection::ignores_duplicates(projection, exists),
        None => exists,
    };
    if ignored { Rows::Set } else { Rows::Bag }
}

/// Refuses a clause by its name.
fn refused(clause: &Clause, inside: bool) -> Box<CypherError> {
    let (name, writes) = match &clause.kind {
        ClauseKind::Create(_) => ("CREATE", true),
        ClauseKind::Insert(_) => ("INSERT", true),
        ClauseKind::Merge(_) => ("MERGE", true),
        ClauseKind::Delete(_) => ("DELETE", true),
        ClauseKind::Set(_) => ("SET", true),
        ClauseKind::Remove(_) => ("REMOVE", true),
        ClauseKind::Foreach(_) => ("FOREACH", true),
        ClauseKind::LoadCsv(_) => ("LOAD CSV", false),
        ClauseKind::Call(_) => ("CALL of a procedure", false),
        ClauseKind::Use(_) => ("USE", false),
        ClauseKind::Let(_) => ("LET", false),
        ClauseKind::Select(_) => ("SELECT", false),
        ClauseKind::Next(_) => ("NEXT", false),
        ClauseKind::Filter(_) => ("FILTER", false),
        ClauseKind::Finish => ("FINISH", false),
        _ => ("this clause", false),
    };
    if writes && inside {
        let message = format!("{name} is not allowed in a query inside an expression");
        return CypherError::new("InvalidClauseComposition", clause.span, message);
    }
    let refusal = CypherError::unsupported(clause.span, name);
    if writes {
        refusal.help("the graph is read-only: it follows the files and commits of the project")
    } else {
        refusal
    }
}
