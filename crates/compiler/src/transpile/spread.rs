//! Long lists in `Math.max(...list)`, `Math.min(...list)` and `list.push(...others)`.
//!
//! The engine refuses a call with more than 65,535 arguments. Of these three the result is the same when the arguments
//! come in parts, so a spread argument passes a helper that hands over a long list in parts and any other value as it is.

use oxc::allocator::{Allocator, TakeIn};
use oxc::ast::ast::*;
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{VisitMut, walk_mut};
use oxc::semantic::Scoping;
use oxc::span::{GetSpan, SPAN};

use super::shape::is_free;

/// All parts but the last are pushed, and the last is what the call itself pushes. Of the others the call gets the
/// result of each part. It uses no global, because a source may have its own of the same name.
const HELPER: &str = "function $(target, name, values) { \
    if (name === \"push\" && target?.push !== [].push) return values; \
    const count = values === null || values === undefined ? 0 : values.length ?? values.size; \
    if (!(count > 50000)) return values; \
    const items = [...values]; \
    const parts = []; \
    for (let start = 0; start < items.length; start += 50000) parts.push(items.slice(start, start + 50000)); \
    if (name !== \"push\") return parts.map((part) => target[name](...part)); \
    const last = parts.pop(); \
    for (const part of parts) target.push(...part); \
    return last; \
} ";

/// Rewrites the calls and gives the helper that they need; nothing when there is no such call.
pub(super) fn protect<'a>(program: &mut Program<'a>, scoping: &Scoping, allocator: &'a Allocator) -> String {
    if !program.source_text.contains("...") {
        return String::new();
    }
    let mut name = "__spread".to_owned();
    while program.source_text.contains(&name) {
        name.push('_');
    }
    let helper = allocator.alloc_str(&name);
    let mut protector = Protector { scoping, builder: AstBuilder::new(allocator), helper, used: false };
    protector.visit_program(program);
    if protector.used { HELPER.replacen('$', &name, 1) } else { String::new() }
}

struct Protector<'a, 's> {
    scoping: &'s Scoping,
    builder: AstBuilder<'a>,
    helper: &'a str,
    used: bool,
}

impl<'a> Protector<'a, '_> {
    /// The object and the method of a call whose arguments may come in parts. The object is a plain name, which can be
    /// read twice.
    fn callee(&self, call: &CallExpression<'a>) -> Option<(&'a str, &'static str)> {
        let Expression::StaticMemberExpression(member) = &call.callee else { return None };
        let Expression::Identifier(object) = &member.object else { return None };
        if call.optional || member.optional {
            return None;
        }
        let method = match member.property.name.as_str() {
            "max" => "max",
            "min" => "min",
            // What comes before or after the list would be pushed in another order.
            "push" if call.arguments.len() == 1 => return Some((object.name.as_str(), "push")),
            _ => return None,
        };
        (object.name == "Math" && is_free(object, self.scoping)).then_some((object.name.as_str(), method))
    }
}

impl<'a> VisitMut<'a> for Protector<'a, '_> {
    fn visit_call_expression(&mut self, call: &mut CallExpression<'a>) {
        walk_mut::walk_call_expression(self, call);
        let Some((object, method)) = self.callee(call) else { return };
        for argument in &mut call.arguments {
            let Argument::SpreadElement(spread) = argument else { continue };
            let place = spread.argument.span();
            let values = spread.argument.take_in(&self.builder);
            let arguments = [
                Argument::from(Expression::new_identifier(SPAN, object, &self.builder)),
                Argument::from(Expression::new_string_literal(SPAN, method, None, &self.builder)),
                Argument::from(values),
            ];
            let helper = Expression::new_identifier(SPAN, self.helper, &self.builder);
            let arguments = oxc::allocator::ArenaVec::from_iter_in(arguments, &self.builder);
            spread.argument =
                Expression::new_call_expression(place, helper, None, arguments, false, &self.builder);
            self.used = true;
        }
    }
}
