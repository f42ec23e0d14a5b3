//! Expressions, word for word as the tree has them. Brackets are in the tree, so none are added.

use open_cypher::ast::{
    BinaryOperator, CaseExpression, Expr, ExprKind, FunctionInvocation, IntegerLiteral, IntegerRadix,
    IsPredicate, Literal, LiteralKind, MapEntry, MapProjection, MapProjectionItemKind, Name, Parameter,
    ParameterName, PatternComprehension, QuantifiedPredicateKind, SetQuantifier, SubqueryExpressionKind,
    UnaryOperator,
};

use super::pattern::conjunction;
use super::{OWN_NAMES, Writer, name, unsupported, word};
use tgp_graph::mirroring::{CypherError, CypherResult, function_name};

impl Writer<'_> {
    pub(super) fn expression(&mut self, expression: &Expr) -> CypherResult<String> {
        let span = expression.span;
        match &expression.kind {
            ExprKind::Literal(value) => literal(value),
            ExprKind::Variable(variable) => name(variable),
            ExprKind::Parameter(found) => parameter(found, expression),
            ExprKind::Wildcard => Ok("*".to_owned()),
            ExprKind::List(items) => Ok(format!("[{}]", self.list(items)?)),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::MapProjection(projection) => self.map_projection(projection),
            ExprKind::Unary { operator, operand } => {
                let operand = self.expression(operand)?;
                match operator.kind {
                    UnaryOperator::Plus => Ok(format!("+ {operand}")),
                    UnaryOperator::Minus => Ok(format!("- {operand}")),
                    UnaryOperator::Not => Ok(format!("NOT {operand}")),
                    _ => unsupported(operator.span, "this operator"),
                }
            }
            ExprKind::Binary { left, operator, right } => {
                let Some(word) = operator_word(operator.kind) else {
                    return unsupported(operator.span, "this operator");
                };
                Ok(format!("{} {word} {}", self.expression(left)?, self.expression(right)?))
            }
            ExprKind::Is { expression, negated, predicate } => self.is(expression, *negated, predicate),
            ExprKind::Property { expression, key } => {
                let of = self.expression(expression)?;
                Ok(format!("{of}.{}", property(key)?))
            }
            ExprKind::Index { expression, index } => {
                Ok(format!("{}[{}]", self.expression(expression)?, self.expression(index)?))
            }
            ExprKind::Slice { expression, lower, upper } => {
                let of = self.expression(expression)?;
                let lower =
                    lower.as_ref().map(|lower| self.expression(lower)).transpose()?.unwrap_or_default();
                let upper =
                    upper.as_ref().map(|upper| self.expression(upper)).transpose()?.unwrap_or_default();
                Ok(format!("{of}[{lower}..{upper}]"))
            }
            ExprKind::Function(call) => self.call(call, expression),
            ExprKind::Case(case) => self.case(case),
            ExprKind::ListComprehension(found) => {
                let (variable, list) = (name(&found.variable)?, self.expression(&found.list)?);
                let condition = self.part(" WHERE ", found.predicate.as_deref())?;
                let projection = self.part(" | ", found.projection.as_deref())?;
                Ok(format!("[{variable} IN {list}{condition}{projection}]"))
            }
            ExprKind::PatternComprehension(found) => self.pattern_comprehension(found),
            ExprKind::Reduce(found) => {
                let (total, initial) = (name(&found.accumulator)?, self.expression(&found.initial)?);
                let (variable, list) = (name(&found.variable)?, self.expression(&found.list)?);
                Ok(format!(
                    "reduce({total} = {initial}, {variable} IN {list} | {})",
                    self.expression(&found.expression)?
                ))
            }
            ExprKind::QuantifiedPredicate(found) => {
                let word = match found.kind.kind {
                    QuantifiedPredicateKind::All => "all",
                    QuantifiedPredicateKind::Any => "any",
                    QuantifiedPredicateKind::None => "none",
                    QuantifiedPredicateKind::Single => "single",
                    _ => return unsupported(found.kind.span, "this quantifier"),
                };
                let (variable, list) = (name(&found.variable)?, self.expression(&found.list)?);
                Ok(format!("{word}({variable} IN {list} WHERE {})", self.expression(&found.predicate)?))
            }
            ExprKind::Subquery(found) => {
                let word = match found.kind.kind {
                    SubqueryExpressionKind::Exists => "EXISTS",
                    SubqueryExpressionKind::Count => "COUNT",
                    SubqueryExpressionKind::Collect => "COLLECT",
                    _ => return unsupported(found.kind.span, "this subquery"),
                };
                Ok(format!("{word} {{ {} }}", self.nested(&found.query)?))
            }
            // A pattern as a condition has no place for another condition, so it becomes a query that has.
            ExprKind::Pattern(pattern) => Ok(format!("EXISTS {{ MATCH {} }}", self.seen(pattern, None)?)),
            ExprKind::Parenthesized(inner) => Ok(format!("({})", self.expression(inner)?)),
            _ => unsupported(span, "this expression"),
        }
    }

    fn list(&mut self, items: &[Expr]) -> CypherResult<String> {
        Ok(items.iter().map(|item| self.expression(item)).collect::<CypherResult<Vec<_>>>()?.join(", "))
    }

    fn part(&mut self, before: &str, expression: Option<&Expr>) -> CypherResult<String> {
        expression
            .map_or_else(|| Ok(String::new()), |found| Ok(format!("{before}{}", self.expression(found)?)))
    }

    fn map(&mut self, entries: &[MapEntry]) -> CypherResult<String> {
        let mut pairs = Vec::new();
        for entry in entries {
            pairs.push(format!("{}: {}", property(&entry.key)?, self.expression(&entry.value)?));
        }
        Ok(format!("{{{}}}", pairs.join(", ")))
    }

    fn map_projection(&mut self, projection: &MapProjection) -> CypherResult<String> {
        let base = self.expression(&projection.base)?;
        let mut items = Vec::new();
        for item in &projection.items {
            items.push(match &item.kind {
                MapProjectionItemKind::Property(key) => format!(".{}", property(key)?),
                MapProjectionItemKind::Variable(variable) => name(variable)?,
                MapProjectionItemKind::Entry(entry) => {
                    format!("{}: {}", property(&entry.key)?, self.expression(&entry.value)?)
                }
                _ => return unsupported(item.span, "a map of all properties over Bolt"),
            });
        }
        Ok(format!("{base} {{{}}}", items.join(", ")))
    }

    fn is(&mut self, expression: &Expr, negated: bool, predicate: &IsPredicate) -> CypherResult<String> {
        let of = self.expression(expression)?;
        match (predicate, negated) {
            (IsPredicate::Null, false) => Ok(format!("{of} IS NULL")),
            (IsPredicate::Null, true) => Ok(format!("{of} IS NOT NULL")),
            (IsPredicate::Label(labels), false) => Ok(format!("{of}{}", conjunction(labels)?)),
            _ => unsupported(expression.span, "this test"),
        }
    }

    fn call(&mut self, call: &FunctionInvocation, whole: &Expr) -> CypherResult<String> {
        let [part] = call.name.parts.as_slice() else { return unsupported(call.name.span, "this function") };
        let called = function_name(&part.kind.text);
        let is_plain = called.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        if !is_plain || called.is_empty() {
            return unsupported(call.name.span, "this function");
        }
        let lower = called.to_ascii_lowercase();
        match (lower.as_str(), call.arguments.as_slice()) {
            // The server's own numbers of nodes mean nothing outside of it.
            ("id", [of]) => return Ok(format!("({})._id", self.expression(of)?)),
            ("exists", [of]) if matches!(of.kind, ExprKind::Pattern(_)) => return self.expression(of),
            ("exists", [of]) => return Ok(format!("(({}) IS NOT NULL)", self.expression(of)?)),
            ("keys", [of]) => {
                let key = self.fresh();
                return Ok(format!(
                    "[{key} IN keys({}) WHERE NOT {key} STARTS WITH '_']",
                    self.expression(of)?
                ));
            }
            ("exists_at" | "properties" | "elementid", _) => {
                return unsupported(whole.span, &format!("{called}() over Bolt"));
            }
            _ => {}
        }
        let distinct = match call.quantifier.as_ref().map(|quantifier| quantifier.kind) {
            None | Some(SetQuantifier::All) => "",
            Some(SetQuantifier::Distinct) => "DISTINCT ",
            Some(_) => return unsupported(whole.span, "this quantifier"),
        };
        Ok(format!("{called}({distinct}{})", self.list(&call.arguments)?))
    }

    fn case(&mut self, case: &CaseExpression) -> CypherResult<String> {
        let mut text = format!("CASE{}", self.part(" ", case.operand.as_deref())?);
        for alternative in &case.alternatives {
            let when = self.list(&alternative.when)?;
            text.push_str(&format!(" WHEN {when} THEN {}", self.expression(&alternative.then)?));
        }
        text.push_str(&self.part(" ELSE ", case.else_expression.as_deref())?);
        text.push_str(" END");
        Ok(text)
    }

    fn pattern_comprehension(&mut self, found: &PatternComprehension) -> CypherResult<String> {
        let condition = found.predicate.as_ref().map(|condition| self.expression(condition)).transpose()?;
        let pattern = self.seen(&found.pattern, condition)?;
        let binding = match &found.binding {
            Some(binding) => format!("{} = ", name(binding)?),
            None => String::new(),
        };
        Ok(format!("[{binding}{pattern} | {}]", self.expression(&found.projection)?))
    }
}

fn literal(literal: &Literal) -> CypherResult<String> {
    match &literal.kind {
        LiteralKind::Null => Ok("null".to_owned()),
        LiteralKind::Boolean(value) => Ok(value.to_string()),
        LiteralKind::Integer(value) => match integer(value) {
            Some(digits) => Ok(digits),
            None => unsupported(literal.span, "this number"),
        },
        LiteralKind::Float(value) if value.text.parse::<f64>().is_ok() => Ok(value.text.clone()),
        LiteralKind::String(value) => Ok(string(&value.value)),
        _ => unsupported(literal.span, "this literal"),
    }
}

/// In decimal digits. The sign is a separate operator, so the smallest integer has digits that no integer has.
fn integer(literal: &IntegerLiteral) -> Option<String> {
    let text = literal.text.replace('_', "");
    let (digits, radix) = match literal.radix {
        IntegerRadix::Decimal => (text.as_str(), 10),
        IntegerRadix::Hexadecimal => (text.get(2..)?, 16),
        IntegerRadix::Octal => (text.get(2..)?, 8),
        _ => return None,
    };
    u64::from_str_radix(digits, radix).ok().map(|number| number.to_string())
}

/// A text in quotes, with nothing in it that could end it or mean something else.
fn string(text: &str) -> String {
    let mut quoted = String::from("'");
    for character in text.chars() {
        match character {
            '\'' => quoted.push_str("\\'"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

fn parameter(parameter: &Parameter, expression: &Expr) -> CypherResult<String> {
    let (ParameterName::Named(text) | ParameterName::Positional(text)) = &parameter.name else {
        return unsupported(expression.span, "this parameter");
    };
    let is_plain = text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !is_plain || text.is_empty() || text.starts_with(OWN_NAMES) {
        return unsupported(expression.span, &format!("a parameter called `{text}`"));
    }
    Ok(format!("${text}"))
}

/// The name of a property. Those that begin with `_` are the graph's own.
fn property(key: &Name) -> CypherResult<String> {
    if key.kind.text.starts_with('_') {
        let message =
            format!("`{}` is not a property: names that begin with `_` are the graph's own", key.kind.text);
        return Err(
            CypherError::new("InvalidArgument", key.span, message).help("use id(), labels() and type()")
        );
    }
    Ok(word(&key.kind))
}

fn operator_word(operator: BinaryOperator) -> Option<&'static str> {
    Some(match operator {
        BinaryOperator::Or => "OR",
        BinaryOperator::Xor => "XOR",
        BinaryOperator::And => "AND",
        BinaryOperator::Equal => "=",
        BinaryOperator::NotEqual => "<>",
        BinaryOperator::Less => "<",
        BinaryOperator::LessEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterEqual => ">=",
        BinaryOperator::RegexMatch => "=~",
        BinaryOperator::In => "IN",
        BinaryOperator::StartsWith => "STARTS WITH",
        BinaryOperator::EndsWith => "ENDS WITH",
        BinaryOperator::Contains => "CONTAINS",
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Remainder => "%",
        BinaryOperator::Power => "^",
        _ => return None,
    })
}
