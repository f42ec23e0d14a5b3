//! Operators between two expressions.

use open_cypher::Span;
use open_cypher::ast::{BinaryOperator, Expr, ExprKind, LiteralKind, Node};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::functions;
use crate::cypher::types::Type;

use super::Compiler;
use super::expression::{Form, Sql};
use super::scope::Scope;

/// What to do about a pattern that is none.
const PATTERN_HELP: &str =
    "a sign that is meant as itself is written with two backslashes, '\\\\(', or use CONTAINS";

impl Compiler<'_> {
    pub(super) fn binary(
        &mut self,
        left: &Expr,
        operator: &Node<BinaryOperator>,
        right: &Expr,
        span: Span,
        scope: &Scope,
    ) -> CypherResult<Sql> {
        let inner = if scope.predicate { &scope.predicates(false) } else { scope };
        if let Some(function) = may_refuse(operator.kind) {
            self.site(function, operator.span);
        }
        match operator.kind {
            BinaryOperator::And => self.logic(left, "AND", right, scope),
            BinaryOperator::Or => self.logic(left, "OR", right, scope),
            BinaryOperator::Xor => self.logic(left, "<>", right, scope),
            kind if is_comparison(kind) => {
                if matches!(kind, BinaryOperator::Equal | BinaryOperator::NotEqual) {
                    self.check_comparison(left, right, inner)?;
                }
                self.comparisons(left, kind, right, inner)
            }
            BinaryOperator::In => {
                self.check_comparison(left, right, inner)?;
                let list = self.expression(right, inner)?;
                if !list.kind.may_be_list() {
                    let message = format!("IN needs a list, this is {}", list.kind.noun());
                    return Err(CypherError::new("InvalidArgumentType", right.span, message));
                }
                let item = self.value_of(left, inner)?;
                Ok(Sql::truth(format!("cy_in({item}, {})", self.as_value(list))))
            }
            BinaryOperator::RegexMatch => {
                checked_pattern(right)?;
                self.test("cy_regex", left, right, inner)
            }
            BinaryOperator::StartsWith => self.test("cy_starts", left, right, inner),
            BinaryOperator::EndsWith => self.test("cy_ends", left, right, inner),
            BinaryOperator::Contains => self.test("cy_contains", left, right, inner),
            BinaryOperator::Add | BinaryOperator::Concat => {
                let (one, other) = (self.expression(left, inner)?, self.expression(right, inner)?);
                let kind = sum(&one.kind, &other.kind);
                Ok(Sql::value(kind, format!("cy_add({}, {})", self.as_value(one), self.as_value(other))))
            }
            BinaryOperator::Subtract => self.arithmetic("cy_sub", left, right, inner),
            BinaryOperator::Multiply => self.arithmetic("cy_mul", left, right, inner),
            BinaryOperator::Divide => self.arithmetic("cy_div", left, right, inner),
            BinaryOperator::Remainder => self.arithmetic("cy_mod", left, right, inner),
            BinaryOperator::Power => {
                let sql = self.arithmetic("cy_pow", left, right, inner)?;
                Ok(Sql { kind: Type::Float, ..sql })
            }
            _ => Err(CypherError::unsupported(span, "this operator")),
        }
    }

    fn logic(&mut self, left: &Expr, operator: &str, right: &Expr, scope: &Scope) -> CypherResult<Sql> {
        let (one, other) = (self.truth_of(left, scope)?, self.truth_of(right, scope)?);
        Ok(Sql::truth(format!("({one} {operator} {other})")))
    }

    fn test(&mut self, function: &str, left: &Expr, right: &Expr, scope: &Scope) -> CypherResult<Sql> {
        let (one, other) = (self.value_of(left, scope)?, self.value_of(right, scope)?);
        Ok(Sql::truth(format!("{function}({one}, {other})")))
    }

    fn arithmetic(&mut self, function: &str, left: &Expr, right: &Expr, scope: &Scope) -> CypherResult<Sql> {
        let (one, other) = (self.expression(left, scope)?, self.expression(right, scope)?);
        for (sql, span) in [(&one, left.span), (&other, right.span)] {
            if !sql.kind.may_be_number() {
                let message = format!("a number is needed, this is {}", sql.kind.noun());
                return Err(CypherError::new("InvalidArgumentType", span, message));
            }
        }
        let kind = number(&one.kind, &other.kind);
        Ok(Sql::value(kind, format!("{function}({}, {})", self.as_value(one), self.as_value(other))))
    }

    /// `a < b <= c` is `a < b AND b <= c`.
    fn comparisons(
        &mut self,
        left: &Expr,
        operator: BinaryOperator,
        right: &Expr,
        scope: &Scope,
    ) -> CypherResult<Sql> {
        let mut pairs = vec![(operator, right)];
        let mut first = left;
        while let ExprKind::Binary { left, operator, right } = &first.kind
            && is_comparison(operator.kind)
        {
            pairs.push((operator.kind, right));
            first = left;
        }
        let mut before = self.expression(first, scope)?;
        let mut tests = Vec::new();
        for (operator, next) in pairs.into_iter().rev() {
            let next = self.expression(next, scope)?;
            tests.push(self.compared(before, operator, next.clone()));
            before = next;
        }
        match tests.as_slice() {
            [only] => Ok(Sql::truth(only.clone())),
            all => Ok(Sql::truth(format!("({})", all.join(" AND ")))),
        }
    }

    fn compared(&mut self, one: Sql, operator: BinaryOperator, other: Sql) -> String {
        let function = match operator {
            BinaryOperator::Less => "cy_lt",
            BinaryOperator::LessEqual => "cy_le",
            BinaryOperator::Greater => "cy_gt",
            BinaryOperator::GreaterEqual => "cy_ge",
            _ => "cy_eq",
        };
        let same = match (&one.form, &other.form) {
            // Rows of one kind: their ids decide, and an index can.
            (Form::Entity { id: one_id, .. }, Form::Entity { id: other_id, .. })
                if one.kind == other.kind && function == "cy_eq" =>
            {
                format!("({one_id} = {other_id})")
            }
            _ => format!("{function}({}, {})", self.as_value(one), self.as_value(other)),
        };
        if operator == BinaryOperator::NotEqual { format!("(NOT {same})") } else { same }
    }
}

/// The SQL function of an operator that does not take all values.
fn may_refuse(operator: BinaryOperator) -> Option<&'static str> {
    Some(match operator {
        BinaryOperator::In => "cy_in",
        BinaryOperator::RegexMatch => "cy_regex",
        BinaryOperator::Add | BinaryOperator::Concat => "cy_add",
        BinaryOperator::Subtract => "cy_sub",
        BinaryOperator::Multiply => "cy_mul",
        BinaryOperator::Divide => "cy_div",
        BinaryOperator::Remainder => "cy_mod",
        BinaryOperator::Power => "cy_pow",
        _ => return None,
    })
}

/// Refuses a pattern that is in the query and cannot be used.
fn checked_pattern(pattern: &Expr) -> CypherResult<()> {
    match &pattern.kind {
        ExprKind::Parenthesized(within) => checked_pattern(within),
        ExprKind::Literal(literal) => match &literal.kind {
            LiteralKind::String(text) => functions::regex(&text.value).map(|_| ()).map_err(|message| {
                CypherError::new("InvalidArgument", pattern.span, message).help(PATTERN_HELP)
            }),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn is_comparison(operator: BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Equal
            | BinaryOperator::NotEqual
            | BinaryOperator::Less
            | BinaryOperator::LessEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterEqual
    )
}

fn number(one: &Type, other: &Type) -> Type {
    match (one, other) {
        (Type::Int, Type::Int) => Type::Int,
        (Type::Float, Type::Int | Type::Float | Type::Number) | (Type::Int | Type::Number, Type::Float) => {
            Type::Float
        }
        _ => Type::Number,
    }
}

fn sum(one: &Type, other: &Type) -> Type {
    match (one, other) {
        (Type::Text, Type::Text) => Type::Text,
        (Type::Int | Type::Float | Type::Number, Type::Int | Type::Float | Type::Number) => {
            number(one, other)
        }
        (Type::List(one), Type::List(other)) => Type::list(one.as_ref().clone().or(other.as_ref().clone())),
        (Type::List(_), Type::Any) | (Type::Any, Type::List(_)) => Type::list(Type::Any),
        (Type::List(item), other) | (other, Type::List(item)) => {
            Type::list(item.as_ref().clone().or(other.clone()))
        }
        _ => Type::Any,
    }
}
