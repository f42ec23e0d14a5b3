//! Calls of functions by name, and tests of labels.

use open_cypher::Span;
use open_cypher::ast::{Expr, ExprKind, FunctionInvocation, LabelExpression, LabelExpressionKind};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::functions::{self, Named};
use crate::cypher::syntax::function_name;
use crate::cypher::types::Type;

use super::aggregates::{AGGREGATES, aggregate, misplaced};
use super::expression::Sql;
use super::graph_calls::GRAPH_CALLS;
use super::scope::Scope;
use super::{Compiler, visible};

/// Functions of Cypher whose types are not supported.
const FOREIGN: [&str; 11] = [
    "time",
    "localtime",
    "localdatetime",
    "duration",
    "timestamp",
    "point",
    "distance",
    "shortestPath",
    "allShortestPaths",
    "randomUUID",
    "linenumber",
];

impl Compiler<'_> {
    pub(super) fn call(&mut self, call: &FunctionInvocation, span: Span, scope: &Scope) -> CypherResult<Sql> {
        if aggregate(call).is_some() {
            return Err(misplaced(span));
        }
        let name: Vec<&str> = call.name.parts.iter().map(|part| function_name(&part.kind.text)).collect();
        let first = name.first().copied().unwrap_or_default();
        let is_temporal = matches!(first.to_lowercase().as_str(), "date" | "datetime");
        // The parts and the constructors of dates: `date.truncate`, `date()`, which is today, `date({year: 2026})`.
        let is_map = matches!(call.arguments.first(), Some(Expr { kind: ExprKind::Map(_), .. }));
        let is_other_date = is_temporal && (name.len() > 1 || call.arguments.is_empty() || is_map);
        if is_other_date || FOREIGN.iter().any(|known| known.eq_ignore_ascii_case(first)) {
            return Err(CypherError::unsupported(span, &format!("the function `{}`", name.join("."))));
        }
        if let Some(quantifier) = &call.quantifier {
            return Err(CypherError::new(
                "UnexpectedSyntax",
                quantifier.span,
                "only aggregates take DISTINCT",
            ));
        }
        let name = name.join(".");
        if let Some(sql) = self.graph_call(&name.to_lowercase(), call, span, scope)? {
            return Ok(sql);
        }
        let inner = scope.predicates(false);
        match functions::find(&name) {
            Some(function) => self.named_call(function, call, span, &inner),
            None => Err(unknown(&name, span)),
        }
    }

    fn named_call(
        &mut self,
        function: &'static Named,
        call: &FunctionInvocation,
        span: Span,
        scope: &Scope,
    ) -> CypherResult<Sql> {
        counted(call, function.least, function.most, span)?;
        self.site(&function.sql(), span);
        let mut arguments = Vec::new();
        for argument in &call.arguments {
            if let ExprKind::Pattern(_) = argument.kind {
                return Err(CypherError::new("UnexpectedSyntax", argument.span, "a pattern has no value")
                    .help("write a comprehension: size([(a)-->(b) | b])"));
            }
            arguments.push((self.expression(argument, scope)?, argument));
        }
        let kind = match arguments.first() {
            Some((first, argument)) => {
                suits(function.name, &first.kind, argument)?;
                gives(function, &first.kind)
            }
            None => function.gives.clone(),
        };
        let values: Vec<String> = arguments.into_iter().map(|(sql, _)| self.as_value(sql)).collect();
        Ok(Sql::value(kind, format!("{}({})", function.sql(), values.join(", "))))
    }

    /// A test of labels against the id of a node; nothing when `skipped` already holds and is all of it.
    pub(super) fn label_test(
        &mut self,
        labels: &LabelExpression,
        id: &str,
        skipped: Option<&str>,
    ) -> CypherResult<Option<String>> {
        Ok(match &labels.kind {
            LabelExpressionKind::Name(name) if skipped == Some(name.kind.text.as_str()) => None,
            LabelExpressionKind::And(parts) => {
                let mut tests = Vec::new();
                for part in parts {
                    tests.extend(self.label_test(part, id, skipped)?);
                }
                (!tests.is_empty()).then(|| format!("({})", tests.join(" AND ")))
            }
            _ => Some(self.labels(labels, &|compiler, name| {
                let name = compiler.text(name);
                visible::has_label(id, &name)
            })?),
        })
    }

    /// A label expression, with `test` for each name.
    pub(super) fn labels(
        &mut self,
        labels: &LabelExpression,
        test: &dyn Fn(&mut Self, &str) -> String,
    ) -> CypherResult<String> {
        Ok(match &labels.kind {
            LabelExpressionKind::Name(name) => test(self, &name.kind.text),
            LabelExpressionKind::Parenthesized(inner) => self.labels(inner, test)?,
            LabelExpressionKind::Not(inner) => format!("(NOT {})", self.labels(inner, test)?),
            LabelExpressionKind::And(parts) | LabelExpressionKind::Or(parts) => {
                let mut tests = Vec::new();
                for part in parts {
                    tests.push(self.labels(part, test)?);
                }
                let between =
                    if matches!(labels.kind, LabelExpressionKind::And(_)) { " AND " } else { " OR " };
                format!("({})", tests.join(between))
            }
            _ => return Err(CypherError::unsupported(labels.span, "this label expression")),
        })
    }
}

/// A label that every node of an expression has.
pub(super) fn simple_label(labels: &LabelExpression) -> Option<String> {
    match &labels.kind {
        LabelExpressionKind::Name(name) => Some(name.kind.text.clone()),
        LabelExpressionKind::Parenthesized(inner) => simple_label(inner),
        LabelExpressionKind::And(parts) => parts.iter().find_map(simple_label),
        _ => None,
    }
}

/// Refuses a wrong number of arguments.
pub(super) fn counted(call: &FunctionInvocation, least: usize, most: usize, span: Span) -> CypherResult<()> {
    let count = call.arguments.len();
    if (least..=most).contains(&count) {
        return Ok(());
    }
    let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let name = call.name.parts.last().map_or("", |part| function_name(&part.kind.text));
    let message = format!("`{name}` takes {wanted} arguments, here are {count}");
    Err(CypherError::new("InvalidNumberOfArguments", span, message))
}

/// The names of all functions, for suggestions.
pub(super) fn function_names() -> Vec<&'static str> {
    let known = functions::FUNCTIONS.iter().map(|function| function.name);
    known.chain(AGGREGATES.iter().map(|(name, _)| *name)).chain(GRAPH_CALLS).collect()
}

fn unknown(name: &str, span: Span) -> Box<CypherError> {
    let refusal = CypherError::new("UnknownFunction", span, format!("there is no function `{name}`"));
    match tgp_text::nearest(name, function_names()) {
        Some(near) => refusal.help(format!("did you mean `{near}`?")),
        None => refusal.help("docs/cypher.md lists the functions"),
    }
}

/// Refuses an argument that can only be wrong.
fn suits(function: &str, kind: &Type, argument: &Expr) -> CypherResult<()> {
    let fits = match function {
        "length" | "nodes" | "relationships" => matches!(kind, Type::Any | Type::Null | Type::Path),
        "size" => matches!(kind, Type::Any | Type::Null | Type::Text | Type::List(_)),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let message = format!("`{function}` cannot be used with {}", kind.noun());
    Err(CypherError::new("InvalidArgumentType", argument.span, message))
}

/// What a function gives for a first argument of this type.
fn gives(function: &Named, first: &Type) -> Type {
    match (function.name, first) {
        ("split", _) => Type::list(Type::Text),
        ("range", _) => Type::list(Type::Int),
        ("nodes", _) => Type::list(Type::Node),
        ("relationships", _) => Type::list(Type::Relationship),
        ("tail" | "reverse", known) => known.clone(),
        ("head" | "last", Type::List(item)) => item.as_ref().clone(),
        _ => function.gives.clone(),
    }
}
