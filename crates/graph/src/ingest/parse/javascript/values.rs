//! What expressions and types are, as far as it is known before the code runs.

use oxc::ast::ast::{
    Argument, CallExpression, ChainElement, Expression, MemberExpression, PropertyKey, TSType,
    TSTypeAnnotation, TSTypeOperatorOperator,
};
use oxc::span::{GetSpan, Span};
use oxc::syntax::operator::BinaryOperator;

use crate::ingest::parse::constant::constant as text_of;
use crate::ingest::parse::names::{TypeName, plain_type};

/// Returns an expression without what changes nothing about its value; `(0, f)` is `f`.
pub(super) fn plain<'e, 'a>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    let mut plain = expression;
    // Each step goes one level down.
    loop {
        plain = match plain {
            Expression::ParenthesizedExpression(outer) => &outer.expression,
            Expression::TSAsExpression(outer) => &outer.expression,
            Expression::TSSatisfiesExpression(outer) => &outer.expression,
            Expression::TSTypeAssertion(outer) => &outer.expression,
            Expression::TSNonNullExpression(outer) => &outer.expression,
            Expression::TSInstantiationExpression(outer) => &outer.expression,
            Expression::SequenceExpression(list) => match list.expressions.last() {
                Some(last) => last,
                None => return plain,
            },
            _ => return plain,
        };
    }
}

/// Returns the text that an expression is, where that is known before the code runs.
pub(super) fn constant(expression: &Expression<'_>) -> Option<String> {
    text_of(expression, |part, rest| match part {
        Expression::StringLiteral(literal) => Some(literal.value.as_str().into()),
        Expression::TemplateLiteral(template) => match template.quasis.as_slice() {
            [quasi] if template.expressions.is_empty() => Some(quasi.value.cooked.as_ref()?.as_str().into()),
            _ => None,
        },
        Expression::BinaryExpression(sum) if sum.operator == BinaryOperator::Addition => {
            rest.extend([&sum.right, &sum.left]);
            Some("".into())
        }
        Expression::ParenthesizedExpression(_)
        | Expression::TSAsExpression(_)
        | Expression::TSSatisfiesExpression(_)
        | Expression::TSTypeAssertion(_)
        | Expression::TSNonNullExpression(_) => {
            rest.push(plain(part));
            Some("".into())
        }
        _ => None,
    })
}

/// Returns the call that an expression is, also in an optional chain.
pub(super) fn call<'e, 'a>(expression: &'e Expression<'a>) -> Option<&'e CallExpression<'a>> {
    match expression {
        Expression::CallExpression(call) => Some(call),
        Expression::ChainExpression(chain) => match &chain.expression {
            ChainElement::CallExpression(call) => Some(call),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the object and the name of a member, written with a dot or in brackets.
pub(super) fn member<'e, 'a>(expression: &'e Expression<'a>) -> Option<(&'e Expression<'a>, String)> {
    let member = match expression {
        Expression::ChainExpression(chain) => chain.expression.as_member_expression()?,
        _ => expression.as_member_expression()?,
    };
    match member {
        MemberExpression::ComputedMemberExpression(member) => {
            Some((&member.object, constant(&member.expression)?))
        }
        MemberExpression::StaticMemberExpression(member) => {
            Some((&member.object, member.property.name.as_str().to_owned()))
        }
        MemberExpression::PrivateFieldExpression(member) => {
            Some((&member.object, format!("#{}", member.field.name)))
        }
    }
}

pub(super) fn is_function(expression: &Expression<'_>) -> bool {
    matches!(expression, Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_))
}

/// Returns an argument of a call; none where it is the rest of a list.
pub(super) fn argument<'e, 'a>(arguments: &'e [Argument<'a>], index: usize) -> Option<&'e Expression<'a>> {
    arguments.get(index)?.as_expression()
}

/// The code of a file, of which a tree knows the bytes.
#[derive(Clone, Copy)]
pub(super) struct Source<'a>(pub(super) &'a str);

impl<'a> Source<'a> {
    /// Returns the code between two bytes, as it is written.
    pub(super) fn written(self, span: Span) -> &'a str {
        self.0.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// Returns the name of a member of a class or a type.
    pub(super) fn key(self, key: &PropertyKey<'a>, is_computed: bool) -> String {
        match key {
            PropertyKey::StaticIdentifier(name) => name.name.as_str().to_owned(),
            _ if is_computed => format!("[{}]", self.written(key.span())),
            _ => self.written(key.span()).to_owned(),
        }
    }

    /// Returns the type that a declaration gives.
    pub(super) fn declared(self, annotation: Option<&TSTypeAnnotation<'a>>) -> TypeName {
        self.type_name(&annotation?.type_annotation)
    }

    fn type_name(self, of: &TSType<'a>) -> TypeName {
        let mut of = of;
        loop {
            of = match of {
                TSType::TSTypeReference(reference) => {
                    return plain_type(self.written(reference.type_name.span()));
                }
                TSType::TSTypeOperatorType(operator)
                    if operator.operator == TSTypeOperatorOperator::Readonly =>
                {
                    &operator.type_annotation
                }
                TSType::TSParenthesizedType(inner) => &inner.type_annotation,
                TSType::TSArrayType(_) | TSType::TSTupleType(_) => return Some("Array".to_owned()),
                TSType::TSBigIntKeyword(_)
                | TSType::TSBooleanKeyword(_)
                | TSType::TSNeverKeyword(_)
                | TSType::TSNumberKeyword(_)
                | TSType::TSStringKeyword(_)
                | TSType::TSSymbolKeyword(_)
                | TSType::TSVoidKeyword(_) => return Some(self.written(of.span()).to_owned()),
                // `A | undefined` is `A` where something is called on it.
                TSType::TSUnionType(union) => {
                    let mut parts = union.types.iter().filter(|part| {
                        !matches!(part, TSType::TSUndefinedKeyword(_) | TSType::TSNullKeyword(_))
                    });
                    let only = parts.next()?;
                    if parts.next().is_some() {
                        return None;
                    }
                    only
                }
                _ => return None,
            };
        }
    }

    /// Returns the type of what an expression makes.
    pub(super) fn created(self, value: Option<&Expression<'a>>) -> TypeName {
        match value? {
            Expression::NewExpression(new) => plain_type(self.written(new.callee.span())),
            Expression::TSAsExpression(cast) => self.type_name(&cast.type_annotation),
            Expression::TSSatisfiesExpression(check) => self.type_name(&check.type_annotation),
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Some("string".to_owned()),
            Expression::ArrayExpression(_) => Some("Array".to_owned()),
            Expression::RegExpLiteral(_) => Some("RegExp".to_owned()),
            _ => None,
        }
    }
}
