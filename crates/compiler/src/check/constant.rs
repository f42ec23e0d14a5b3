//! Which strings an expression can be, when the source alone decides it.
//!
//! `globalThis['pro' + 'cess']` names `process` as plainly as `process` does; so do templates, constants, joined
//! arrays and character codes. The answer is a small set, because a condition may choose between constants.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    Argument, ArrayExpression, ArrayExpressionElement, BinaryExpression, BinaryOperator, CallExpression,
    Expression, ObjectPropertyKind, PropertyKey, Statement, TemplateLiteral,
};

use super::tree::{Tree, peel};

const MAX_DEPTH: usize = 24;
const MAX_VALUES: usize = 8;
const MAX_LENGTH: usize = 4096;
const MAX_TERMS: usize = 512;
const MAX_FOLDS: usize = 2048;

/// The strings an expression can be; empty when the source does not decide it.
pub(super) fn strings<'a>(tree: &Tree<'_, 'a>, expression: &'a Expression<'a>) -> Vec<String> {
    strings_of(tree, peel(expression))
}

/// The same for the node of an expression.
pub(super) fn strings_of<'a>(tree: &Tree<'_, 'a>, kind: AstKind<'a>) -> Vec<String> {
    tree.fold_budget.set(MAX_FOLDS);
    fold_kind(tree, kind, MAX_DEPTH).unwrap_or_default()
}

/// The strings a property key can be.
pub(super) fn keys<'a>(tree: &Tree<'_, 'a>, key: &'a PropertyKey<'a>, computed: bool) -> Vec<String> {
    match key.as_expression() {
        Some(expression) if computed => strings(tree, expression),
        _ => key.static_name().map(|name| vec![name.into_owned()]).unwrap_or_default(),
    }
}

fn fold<'a>(tree: &Tree<'_, 'a>, expression: &'a Expression<'a>, depth: usize) -> Option<Vec<String>> {
    fold_kind(tree, peel(expression), depth)
}

fn fold_kind<'a>(tree: &Tree<'_, 'a>, kind: AstKind<'a>, depth: usize) -> Option<Vec<String>> {
    let depth = depth.checked_sub(1)?;
    // Constants made of constants double with every step, so their number is bounded as well as their depth.
    tree.fold_budget.set(tree.fold_budget.get().checked_sub(1)?);
    match kind {
        AstKind::StringLiteral(literal) => Some(vec![literal.value.to_string()]),
        AstKind::NumericLiteral(literal) if literal.value.fract() == 0.0 => {
            Some(vec![literal.value.to_string()])
        }
        AstKind::TemplateLiteral(template) => fold_template(tree, template, depth),
        AstKind::BinaryExpression(binary) if binary.operator == BinaryOperator::Addition => {
            fold_sum(tree, binary, depth)
        }
        AstKind::ConditionalExpression(condition) => {
            union(fold(tree, &condition.consequent, depth), fold(tree, &condition.alternate, depth))
        }
        AstKind::LogicalExpression(logical) => {
            union(fold(tree, &logical.left, depth), fold(tree, &logical.right, depth))
        }
        AstKind::SequenceExpression(sequence) => fold(tree, sequence.expressions.last()?, depth),
        AstKind::AssignmentExpression(assignment) => fold(tree, &assignment.right, depth),
        AstKind::AwaitExpression(waiting) => fold(tree, &waiting.argument, depth),
        AstKind::IdentifierReference(reference) => fold(tree, tree.initial_value(reference)?, depth),
        AstKind::StaticMemberExpression(member) => {
            fold_member(tree, &member.object, member.property.name.as_str(), depth)
        }
        AstKind::ComputedMemberExpression(member) => {
            let keys = fold(tree, &member.expression, depth)?;
            let [key] = keys.as_slice() else { return None };
            fold_member(tree, &member.object, key, depth)
        }
        AstKind::CallExpression(call) => fold_call(tree, call, depth),
        AstKind::TaggedTemplateExpression(tagged) => match peel(&tagged.tag) {
            AstKind::StaticMemberExpression(member)
                if member.property.name == "raw"
                    && tree.global_expression(&member.object) == Some("String") =>
            {
                fold_template(tree, &tagged.quasi, depth)
            }
            _ => None,
        },
        _ => None,
    }
}

/// A sum leans to the left and can be as long as the source, so its left spine is walked in a loop.
fn fold_sum<'a>(tree: &Tree<'_, 'a>, sum: &'a BinaryExpression<'a>, depth: usize) -> Option<Vec<String>> {
    let mut terms = vec![&sum.right];
    let mut rest = &sum.left;
    while let AstKind::BinaryExpression(binary) = peel(rest) {
        if binary.operator != BinaryOperator::Addition || terms.len() >= MAX_TERMS {
            return None;
        }
        terms.push(&binary.right);
        rest = &binary.left;
    }
    let mut values = fold(tree, rest, depth)?;
    for term in terms.into_iter().rev() {
        values = product(&values, &fold(tree, term, depth)?)?;
    }
    Some(values)
}

fn fold_template<'a>(
    tree: &Tree<'_, 'a>,
    template: &'a TemplateLiteral<'a>,
    depth: usize,
) -> Option<Vec<String>> {
    let mut values = vec![String::new()];
    let mut expressions = template.expressions.iter();
    for quasi in &template.quasis {
        let text = quasi.value.cooked.as_ref().unwrap_or(&quasi.value.raw);
        values = product(&values, &[text.to_string()])?;
        if let Some(expression) = expressions.next() {
            values = product(&values, &fold(tree, expression, depth)?)?;
        }
    }
    Some(values)
}

/// `table.key` of an object literal, `list[0]` of an array literal, `text[0]` of a string.
fn fold_member<'a>(
    tree: &Tree<'_, 'a>,
    object: &'a Expression<'a>,
    key: &str,
    depth: usize,
) -> Option<Vec<String>> {
    let holder = match peel(object) {
        AstKind::IdentifierReference(reference) => {
            let declaration = tree.kind(tree.scoping().symbol_declaration(tree.symbol(reference)?));
            match declaration {
                AstKind::TSEnumDeclaration(_) => declaration,
                _ => peel(tree.initial_value(reference)?),
            }
        }
        other => other,
    };
    match holder {
        AstKind::TSEnumDeclaration(declaration) => {
            let member = declaration.body.members.iter().find(|member| member.id.static_name() == key)?;
            fold(tree, member.initializer.as_ref()?, depth)
        }
        AstKind::ObjectExpression(literal) => {
            literal.properties.iter().rev().find_map(|property| match property {
                ObjectPropertyKind::ObjectProperty(property) if property.key.is_specific_static_name(key) => {
                    fold(tree, &property.value, depth)
                }
                _ => None,
            })
        }
        AstKind::ArrayExpression(literal) => {
            let index: usize = key.parse().ok()?;
            fold(tree, literal.elements.get(index)?.as_expression()?, depth)
        }
        AstKind::StringLiteral(literal) => {
            let index: usize = key.parse().ok()?;
            Some(vec![literal.value.chars().nth(index)?.to_string()])
        }
        _ => None,
    }
}

fn fold_call<'a>(tree: &Tree<'_, 'a>, call: &'a CallExpression<'a>, depth: usize) -> Option<Vec<String>> {
    match peel(&call.callee) {
        AstKind::IdentifierReference(reference) => match tree.global_name(reference) {
            Some("String") => fold(tree, call.arguments.first()?.as_expression()?, depth),
            Some(_) => None,
            None => {
                let declaration = tree.kind(tree.scoping().symbol_declaration(tree.symbol(reference)?));
                match declaration {
                    AstKind::Function(_) => fold_result(tree, declaration, depth),
                    _ => fold_result(tree, peel(tree.initial_value(reference)?), depth),
                }
            }
        },
        callee @ (AstKind::Function(_) | AstKind::ArrowFunctionExpression(_)) => {
            fold_result(tree, callee, depth)
        }
        AstKind::StaticMemberExpression(member) => {
            let method = member.property.name.as_str();
            if tree.global_expression(&member.object) == Some("String") {
                return matches!(method, "fromCharCode" | "fromCodePoint")
                    .then(|| from_char_codes(tree, &call.arguments))
                    .flatten();
            }
            fold_method(tree, &member.object, method, &call.arguments, depth)
        }
        AstKind::ComputedMemberExpression(member) => {
            let methods = fold(tree, &member.expression, depth)?;
            let [method] = methods.as_slice() else { return None };
            fold_method(tree, &member.object, method, &call.arguments, depth)
        }
        _ => None,
    }
}

/// What a function returns when it has nothing else to do.
fn fold_result<'a>(tree: &Tree<'_, 'a>, function: AstKind<'a>, depth: usize) -> Option<Vec<String>> {
    let body = match function {
        AstKind::ArrowFunctionExpression(arrow) => match arrow.get_expression() {
            Some(expression) => return fold(tree, expression, depth),
            None => arrow.get_function_body()?,
        },
        AstKind::Function(function) => function.body.as_deref()?,
        _ => return None,
    };
    let [Statement::ReturnStatement(statement)] = body.statements.as_slice() else { return None };
    fold(tree, statement.argument.as_ref()?, depth)
}

fn from_char_codes<'a>(tree: &Tree<'_, 'a>, arguments: &'a [Argument<'a>]) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for argument in arguments {
        match argument {
            Argument::SpreadElement(spread) => {
                let AstKind::ArrayExpression(list) = (match peel(&spread.argument) {
                    AstKind::IdentifierReference(reference) => peel(tree.initial_value(reference)?),
                    other => other,
                }) else {
                    return None;
                };
                for element in &list.elements {
                    numbers.push(number(element.as_expression()?)?);
                }
            }
            other => numbers.push(number(other.as_expression()?)?),
        }
    }
    let text: Option<String> = numbers.into_iter().map(char::from_u32).collect();
    Some(vec![text?])
}

fn number(expression: &Expression<'_>) -> Option<u32> {
    let Expression::NumericLiteral(literal) = expression.get_inner_expression() else { return None };
    let value = literal.value;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked first")]
    (value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value)).then_some(value as u32)
}

fn fold_method<'a>(
    tree: &Tree<'_, 'a>,
    object: &'a Expression<'a>,
    method: &str,
    arguments: &'a [Argument<'a>],
    depth: usize,
) -> Option<Vec<String>> {
    let depth = depth.checked_sub(1)?;
    let argument = |index: usize| arguments.get(index).and_then(Argument::as_expression);
    if method == "join" {
        let separators = match argument(0) {
            Some(expression) => fold(tree, expression, depth)?,
            None => vec![",".to_owned()],
        };
        let [separator] = separators.as_slice() else { return None };
        return Some(vec![list(tree, object, depth)?.join(separator)]);
    }
    let values = fold(tree, object, depth)?;
    match method {
        "toString" | "valueOf" | "trim" | "normalize" => Some(values),
        "toLowerCase" => Some(values.iter().map(|value| value.to_lowercase()).collect()),
        "toUpperCase" => Some(values.iter().map(|value| value.to_uppercase()).collect()),
        "concat" => {
            let mut values = values;
            for index in 0..arguments.len() {
                values = product(&values, &fold(tree, argument(index)?, depth)?)?;
            }
            Some(values)
        }
        "replace" | "replaceAll" => {
            let (from, to) = (fold(tree, argument(0)?, depth)?, fold(tree, argument(1)?, depth)?);
            let ([from], [to]) = (from.as_slice(), to.as_slice()) else { return None };
            let count = if method == "replace" { 1 } else { usize::MAX };
            Some(values.iter().map(|value| value.replacen(from.as_str(), to, count)).collect())
        }
        "slice" | "substring" => {
            let start = argument(0).map_or(Some(0), number)? as usize;
            let end = argument(1).map_or(Some(u32::MAX), number)? as usize;
            Some(
                values
                    .iter()
                    .map(|value| value.chars().skip(start).take(end.saturating_sub(start)).collect())
                    .collect(),
            )
        }
        _ => None,
    }
}

/// The elements of an array whose content the source decides.
fn list<'a>(tree: &Tree<'_, 'a>, expression: &'a Expression<'a>, depth: usize) -> Option<Vec<String>> {
    let depth = depth.checked_sub(1)?;
    match peel(expression) {
        AstKind::ArrayExpression(literal) => literal_list(tree, literal, depth),
        AstKind::IdentifierReference(reference) => list(tree, tree.initial_value(reference)?, depth),
        AstKind::CallExpression(call) => {
            let AstKind::StaticMemberExpression(member) = peel(&call.callee) else { return None };
            match member.property.name.as_str() {
                "reverse" | "toReversed" => {
                    let mut elements = list(tree, &member.object, depth)?;
                    elements.reverse();
                    Some(elements)
                }
                "split" => {
                    let texts = fold(tree, &member.object, depth)?;
                    let separators = fold(tree, call.arguments.first()?.as_expression()?, depth)?;
                    let ([text], [separator]) = (texts.as_slice(), separators.as_slice()) else {
                        return None;
                    };
                    Some(if separator.is_empty() {
                        text.chars().map(String::from).collect()
                    } else {
                        text.split(separator.as_str()).map(str::to_owned).collect()
                    })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn literal_list<'a>(
    tree: &Tree<'_, 'a>,
    literal: &'a ArrayExpression<'a>,
    depth: usize,
) -> Option<Vec<String>> {
    if literal.elements.len() > MAX_TERMS {
        return None;
    }
    let mut elements = Vec::new();
    for element in &literal.elements {
        match element {
            ArrayExpressionElement::SpreadElement(spread) => match fold(tree, &spread.argument, depth) {
                Some(texts) => elements.extend(texts.first()?.chars().map(String::from)),
                None => elements.extend(list(tree, &spread.argument, depth)?),
            },
            other => elements.push(fold(tree, other.as_expression()?, depth)?.into_iter().next()?),
        }
    }
    Some(elements)
}

/// Both branches when both are known; one known branch is still a value the expression can have.
fn union(left: Option<Vec<String>>, right: Option<Vec<String>>) -> Option<Vec<String>> {
    match (left, right) {
        (Some(mut left), Some(right)) => {
            left.extend(right);
            left.truncate(MAX_VALUES);
            Some(left)
        }
        (one, other) => one.or(other),
    }
}

fn product(left: &[String], right: &[String]) -> Option<Vec<String>> {
    if left.len() * right.len() > MAX_VALUES {
        return None;
    }
    let joined: Vec<String> =
        left.iter().flat_map(|head| right.iter().map(move |tail| format!("{head}{tail}"))).collect();
    joined.iter().all(|text| text.len() <= MAX_LENGTH).then_some(joined)
}
