//! `CALL { ... }`: for each row the rows of a query inside it.

use open_cypher::ast::{ClauseKind, ExprKind, ProjectionItemKind, QueryKind, RegularQuery, UnwindClause};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::spelling::{Import, SubqueryCall};
use crate::cypher::types::Type;

use super::scope::{Chain, Variable, from_where};
use super::{Compiler, Rows};

/// Columns of one subquery: what a function of SQLite takes.
const MAX_COLUMNS: usize = 100;

impl Compiler<'_> {
    /// Adds the rows of a subquery. Its clause was written as `UNWIND COLLECT { ... } AS name` for the parser.
    pub(super) fn subquery_call(
        &mut self,
        chain: &mut Chain,
        unwind: &UnwindClause,
        call: &SubqueryCall,
    ) -> CypherResult<()> {
        let span = unwind.expression.span;
        let ExprKind::Subquery(subquery) = &unwind.expression.kind else {
            return Err(CypherError::unsupported(span, "this form of CALL"));
        };
        let QueryKind::Regular(query) = &subquery.query.kind else {
            return Err(CypherError::new("UnexpectedSyntax", span, "this is not a query"));
        };
        check_columns(query)?;
        let mut outer = chain.scope.as_outer();
        match &call.import {
            Import::ByWith => outer.imports = true,
            Import::All => outer.lasting = outer.variables.clone(),
            Import::Names(names) => {
                for (name, _) in names {
                    if chain.scope.find(name).is_none() {
                        return Err(self.undefined(name, span, &chain.scope));
                    }
                }
                outer.variables.retain(|known| names.iter().any(|(name, _)| *name == known.name));
                outer.lasting = outer.variables.clone();
            }
        }
        let answer = self.nested("Call", span, |compiler| {
            compiler.for_rows(Rows::Bag, |compiler| compiler.regular(query, &outer))
        })?;
        if answer.columns.is_empty() || answer.columns.len() > MAX_COLUMNS {
            let message = format!("a subquery has from 1 to {MAX_COLUMNS} columns");
            return Err(CypherError::new("InvalidClauseComposition", span, message)
                .help("end it with RETURN: the graph is read-only, so without rows it does nothing"));
        }
        if let Some(taken) = answer.columns.iter().find(|name| chain.scope.find(name).is_some()) {
            let message = format!("`{taken}` is bound already");
            return Err(CypherError::new("VariableAlreadyBound", span, message)
                .help("give the column of the subquery another name by AS"));
        }
        let cells: Vec<String> = (1..=answer.columns.len()).map(|at| format!("r{at}")).collect();
        let mut list = format!("(SELECT cy_gather(cy_list({})) FROM ({}))", cells.join(", "), answer.sql);
        if call.optional {
            let table = self.name("t");
            list = format!(
                "(SELECT CASE WHEN cy_count({table}.v) = 0 THEN cy_list(cy_list()) ELSE {table}.v END FROM (SELECT {list} AS v) AS {table})"
            );
        }
        let items = self.name("j");
        let mut sources = chain.sources();
        sources.push(format!("json_each(cy_each({list})) AS {items}"));
        for (at, name) in answer.columns.iter().enumerate() {
            let value = format!("cy_at(cy_item({items}.value), {at})");
            chain.scope.set(Variable::value(name, Type::Any, value));
        }
        let stage = chain.join(1);
        self.stage(chain, &from_where(&sources, &[]), stage);
        Ok(())
    }
}

/// Refuses a column without a name: what follows could not say which it means.
fn check_columns(query: &RegularQuery) -> CypherResult<()> {
    let Some(ClauseKind::Return(done)) = query.head.kind.clauses.last().map(|clause| &clause.kind) else {
        return Ok(());
    };
    for item in &done.projection.items {
        if let ProjectionItemKind::Expression { expression, alias: None } = &item.kind
            && !matches!(expression.kind, ExprKind::Variable(_))
        {
            return Err(CypherError::new(
                "NoExpressionAlias",
                expression.span,
                "an expression that a subquery returns needs a name",
            )
            .help("write AS name behind it"));
        }
    }
    Ok(())
}
