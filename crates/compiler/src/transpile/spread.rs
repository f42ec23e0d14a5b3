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

use super::emit::unused_name;
use super::shape::is_free;

/// All parts but the last are pushed, and the last is what the call itself pushes. Of the others the call gets the
/// result of each part. A method that the tool has put in the place of the built-in one gets all values at once. It uses
/// no global, because a source may have its own of the same name.
const HELPER: &str = "function $(target, name, values, own) { \
    if (target?.[name] !== (name === \"push\" ? [].push : own)) return values; \
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
    let name = unused_name("__spread", program.source_text);
    let helper = allocator.alloc_str(&name);
    let own = OWN.map(|method| allocator.alloc_str(&format!("{name}_{method}")));
    let builder = AstBuilder::new(allocator);
    let mut protector = Protector { scoping, builder, helper, own, used: Used::default() };
    protector.visit_program(program);
    let Used { any, math } = protector.used;
    let mut text = if any { HELPER.replacen('$', &name, 1) } else { String::new() };
    if math {
        // Before the first line of the tool, which may replace them. No source that uses them has a `Math` of its own.
        let [max, min] = own;
        text.push_str(&format!("const {max} = Math.max, {min} = Math.min; "));
    }
    text
}

/// The methods of `Math` that are kept as they are before the tool runs.
const OWN: [&str; 2] = ["max", "min"];

/// Which helpers the rewritten calls need.
#[derive(Default)]
struct Used {
    any: bool,
    math: bool,
}

struct Protector<'a, 's> {
    scoping: &'s Scoping,
    builder: AstBuilder<'a>,
    helper: &'a str,
    /// The names of [`OWN`] in the emitted code.
    own: [&'a str; 2],
    used: Used,
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
            let own = OWN.iter().position(|own| *own == method).and_then(|at| self.own.get(at));
            let own = own.map(|own| Argument::from(Expression::new_identifier(SPAN, *own, &self.builder)));
            self.used.math |= own.is_some();
            let arguments = [
                Argument::from(Expression::new_identifier(SPAN, object, &self.builder)),
                Argument::from(Expression::new_string_literal(SPAN, method, None, &self.builder)),
                Argument::from(values),
            ];
            let arguments = arguments.into_iter().chain(own);
            let helper = Expression::new_identifier(SPAN, self.helper, &self.builder);
            let arguments = oxc::allocator::ArenaVec::from_iter_in(arguments, &self.builder);
            spread.argument =
                Expression::new_call_expression(place, helper, None, arguments, false, &self.builder);
            self.used.any = true;
        }
    }
}
