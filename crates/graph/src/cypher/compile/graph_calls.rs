//! Functions that read the graph, and those that decide what is computed.

use open_cypher::Span;
use open_cypher::ast::{Expr, ExprKind, FunctionInvocation, LabelExpression, LiteralKind, ParameterName};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;
use crate::cypher::value::kind;

use super::calls::counted;
use super::expression::{Form, Sql, by_kind, rows_of};
use super::scope::Scope;
use super::vocabulary::Sort;
use super::{Bind, Compiler, visible};

/// Their names, for suggestions.
pub(super) const GRAPH_CALLS: [&str; 13] = [
    "labels",
    "type",
    "id",
    "properties",
    "keys",
    "startNode",
    "endNode",
    "exists",
    "exists_at",
    "coalesce",
    "nullIf",
    "rand",
    "elementId",
];

impl Compiler<'_> {
    /// The call, if it is one of these.
    pub(super) fn graph_call(
        &mut self,
        name: &str,
        call: &FunctionInvocation,
        span: Span,
        scope: &Scope,
    ) -> CypherResult<Option<Sql>> {
        let inner = scope.predicates(false);
        Ok(Some(match name {
            "coalesce" => {
                counted(call, 1, 100, span)?;
                let mut kind = Type::Null;
                let mut values = Vec::new();
                for argument in &call.arguments {
                    let sql = self.expression(argument, &inner)?;
                    kind = kind.or(sql.kind.clone());
                    values.push(self.as_value(sql));
                }
                // SQLite's own wants two.
                values.push("NULL".to_owned());
                Sql::value(kind, format!("COALESCE({})", values.join(", ")))
            }
            "nullif" => {
                counted(call, 2, 2, span)?;
                let (Some(one), Some(other)) = (call.arguments.first(), call.arguments.get(1)) else {
                    return Ok(None);
                };
                let (one, other) = (self.value_of(one, &inner)?, self.value_of(other, &inner)?);
                let sql = self.once(&one, |_, value| {
                    format!("CASE WHEN cy_eq({value}, {other}) THEN NULL ELSE {value} END")
                });
                Sql::value(Type::Any, sql)
            }
            "rand" => {
                counted(call, 0, 0, span)?;
                Sql::value(Type::Float, "cy_rand()")
            }
            "exists" => {
                let argument = only(call, span)?;
                if let ExprKind::Pattern(pattern) = &argument.kind {
                    return Ok(Some(self.pattern_exists(pattern, &inner)?));
                }
                let value = self.value_of(argument, &inner)?;
                Sql::truth(format!("({value} IS NOT NULL)"))
            }
            "exists_at" => self.exists_at(call, span, &inner)?,
            "labels" => {
                let (subject, argument) = self.subject(call, span, &inner)?;
                let id = self.id_of(subject, &[Type::Node], "labels", argument)?;
                let sql = self.once(&id, |_, id| {
                    format!("CASE WHEN {id} IS NOT NULL THEN cy_json({}) END", visible::labels(id))
                });
                Sql::value(Type::list(Type::Text), sql)
            }
            "type" => {
                let (subject, argument) = self.subject(call, span, &inner)?;
                let row = self.row_of(subject, "type", argument)?;
                Sql::value(Type::Text, visible::edge_column(&row, "type"))
            }
            "id" => {
                let (subject, argument) = self.subject(call, span, &inner)?;
                let id = self.id_of(subject, &[Type::Node, Type::Relationship], "id", argument)?;
                Sql::value(Type::Int, id)
            }
            "elementid" => {
                let (subject, argument) = self.subject(call, span, &inner)?;
                let id = self.id_of(subject, &[Type::Node, Type::Relationship], "elementId", argument)?;
                Sql::value(Type::Text, format!("CAST({id} AS TEXT)"))
            }
            "startnode" | "endnode" => {
                let (subject, argument) = self.subject(call, span, &inner)?;
                let row = self.row_of(subject, name, argument)?;
                let column = if name == "startnode" { "source" } else { "target" };
                let (edge, node) = (self.name("e"), self.name("n"));
                Sql::value(Type::Node, visible::edge_end(&row, column, &edge, &node, &self.sight()))
            }
            "properties" => {
                let (subject, argument) = self.subject(call, span, &inner)?;
                self.properties(subject, argument.span)?
            }
            "keys" => {
                let (subject, argument) = self.subject(call, span, &inner)?;
                let map = self.properties(subject, argument.span)?;
                Sql::value(Type::list(Type::Text), format!("cy_keys({})", map.text))
            }
            _ => return Ok(None),
        }))
    }

    fn subject<'a>(
        &mut self,
        call: &'a FunctionInvocation,
        span: Span,
        scope: &Scope,
    ) -> CypherResult<(Sql, &'a Expr)> {
        let argument = only(call, span)?;
        Ok((self.expression(argument, scope)?, argument))
    }

    /// All properties of a node, a relationship or a map, as a map.
    pub(super) fn properties(&mut self, subject: Sql, span: Span) -> CypherResult<Sql> {
        if !subject.kind.may_have_properties() {
            let message = format!(
                "only nodes, relationships and maps have properties, this is {}",
                subject.kind.noun()
            );
            return Err(CypherError::new("InvalidArgumentType", span, message));
        }
        if let Form::Entity { props, .. } = &subject.form {
            return Ok(Sql::value(Type::Map, props.map()));
        }
        let text = self.as_value(subject);
        let sql = self.once(&text, |_, value| {
            let [node, edge] = rows_of(value);
            by_kind(value, &node.map(), &edge.map(), &format!("cy_properties({value})"))
        });
        Ok(Sql::value(Type::Map, sql))
    }

    /// The id of a node or a relationship of one of the kinds `wanted`.
    fn id_of(
        &mut self,
        subject: Sql,
        wanted: &[Type],
        function: &str,
        argument: &Expr,
    ) -> CypherResult<String> {
        suits(&subject.kind, wanted, function, argument)?;
        if let Form::Entity { id, .. } = subject.form {
            return Ok(id);
        }
        let number = if wanted.len() > 1 { kind::OTHER } else { kind::NODE };
        Ok(format!("cy_id({}, {number})", self.as_value(subject)))
    }

    /// The row of a relationship.
    fn row_of(&mut self, subject: Sql, function: &str, argument: &Expr) -> CypherResult<String> {
        suits(&subject.kind, &[Type::Relationship], function, argument)?;
        if let Form::Entity { .. } = subject.form {
            return Ok(subject.text);
        }
        Ok(format!("cy_row({}, {})", self.as_value(subject), kind::RELATIONSHIP))
    }

    /// Whether something has labels, or a type.
    pub(super) fn labelled(
        &mut self,
        subject: Sql,
        labels: &LabelExpression,
        span: Span,
    ) -> CypherResult<String> {
        suits_span(&subject.kind, &[Type::Node, Type::Relationship], "a label test", span)?;
        let sort = match subject.kind {
            Type::Node => Sort::Node,
            Type::Relationship => Sort::Relationship,
            _ => Sort::Either,
        };
        self.check_labels(labels, sort)?;
        let of_node = |compiler: &mut Self, id: &str| {
            let id = id.to_owned();
            compiler.labels(labels, &move |compiler, name| {
                let name = compiler.text(name);
                visible::has_label(&id, &name)
            })
        };
        let of_edge = |compiler: &mut Self, row: &str| {
            let row = row.to_owned();
            compiler.labels(labels, &move |compiler, name| {
                let name = compiler.text(name);
                format!("({} = {name})", visible::edge_column(&row, "type"))
            })
        };
        if let Form::Entity { id, .. } = &subject.form {
            let row = subject.text.clone();
            let test = match subject.kind {
                Type::Relationship => of_edge(self, &row)?,
                _ => of_node(self, id)?,
            };
            return Ok(format!("CASE WHEN {row} IS NOT NULL THEN {test} END"));
        }
        let text = self.as_value(subject);
        let mut refusal = None;
        let sql = self.once(&text, |compiler, value| {
            let node = of_node(compiler, &format!("cy_id({value}, {})", kind::NODE));
            let edge = of_edge(compiler, &format!("cy_row({value}, {})", kind::RELATIONSHIP));
            match (node, edge) {
                (Ok(node), Ok(edge)) => {
                    by_kind(value, &node, &edge, &format!("cy_id({value}, {})", kind::OTHER))
                }
                (Err(error), _) | (_, Err(error)) => {
                    refusal = Some(error);
                    String::new()
                }
            }
        });
        refusal.map_or(Ok(sql), Err)
    }

    /// `exists_at(thing, 'revision')`.
    fn exists_at(&mut self, call: &FunctionInvocation, span: Span, scope: &Scope) -> CypherResult<Sql> {
        counted(call, 2, 2, span)?;
        let (Some(thing), Some(revision)) = (call.arguments.first(), call.arguments.get(1)) else {
            return Err(CypherError::new(
                "InvalidNumberOfArguments",
                span,
                "`exists_at` takes two arguments",
            ));
        };
        let bind = match &revision.kind {
            ExprKind::Literal(literal) => match &literal.kind {
                LiteralKind::String(text) => Some(Bind::Revision(text.value.clone())),
                _ => None,
            },
            ExprKind::Parameter(parameter) => match &parameter.name {
                ParameterName::Named(name) | ParameterName::Positional(name) => {
                    Some(Bind::RevisionParameter(name.clone()))
                }
                _ => None,
            },
            _ => None,
        };
        let Some(bind) = bind else {
            let message = "the revision of `exists_at` is a string or a parameter";
            return Err(CypherError::new("InvalidArgumentType", revision.span, message)
                .help("write exists_at(n, 'v1') or exists_at(n, $revision)"));
        };
        let sight = self.sight_at(bind, revision.span);
        let subject = self.expression(thing, scope)?;
        suits(&subject.kind, &[Type::Node, Type::Relationship], "exists_at", thing)?;
        let (node, edge) = (self.name("n"), self.name("e"));
        if let Form::Entity { id, props } = &subject.form {
            let test = match subject.kind {
                Type::Relationship => visible::edge_at(id, props, &sight, &edge),
                _ => visible::node_at(id, &sight, &node),
            };
            return Ok(Sql::truth(format!("CASE WHEN {} IS NOT NULL THEN {test} END", subject.text)));
        }
        let text = self.as_value(subject);
        let sql = self.once(&text, |_, value| {
            let id = format!("cy_id({value}, {})", kind::OTHER);
            let [_, row] = rows_of(value);
            let of_edge = visible::edge_at(&id, &row, &sight, &edge);
            by_kind(value, &visible::node_at(&id, &sight, &node), &of_edge, &id)
        });
        Ok(Sql::truth(sql))
    }
}

fn only(call: &FunctionInvocation, span: Span) -> CypherResult<&Expr> {
    counted(call, 1, 1, span)?;
    call.arguments
        .first()
        .ok_or_else(|| CypherError::new("InvalidNumberOfArguments", span, "an argument is missing"))
}

fn suits(kind: &Type, wanted: &[Type], function: &str, argument: &Expr) -> CypherResult<()> {
    suits_span(kind, wanted, &format!("`{function}`"), argument.span)
}

fn suits_span(kind: &Type, wanted: &[Type], what: &str, span: Span) -> CypherResult<()> {
    if matches!(kind, Type::Any | Type::Null) || wanted.contains(kind) {
        return Ok(());
    }
    let message = format!("{what} cannot be used with {}", kind.noun());
    Err(CypherError::new("InvalidArgumentType", span, message))
}
