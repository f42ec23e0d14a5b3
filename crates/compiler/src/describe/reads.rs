//! What a body reads of its arguments, where no type says what they are.

use oxc::ast::ast::{
    Argument, BindingPattern, CallExpression, Expression, IdentifierReference, MemberExpression,
    ObjectPattern, Program, VariableDeclarator,
};
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::SymbolId;
use serde_json::Value;

use super::Source;
use super::values::{literal, peel};
use super::zod::zod;

/// More names than these are no longer a description.
const MAX_NAMES: usize = 64;

/// How the arguments are called in a body.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    /// The `args` that a script is given.
    Script,
    /// A parameter.
    Symbol(SymbolId),
}

/// One property that is read.
pub(super) struct Read {
    pub(super) name: String,
    /// The value that takes its place when it is absent.
    pub(super) default: Option<Value>,
    /// Whether there is such a value, also one that has to be computed.
    pub(super) has_default: bool,
}

/// All that a body does with its arguments.
pub(super) struct Reads<'t, 'a> {
    source: &'t Source<'a>,
    subject: Subject,
    pub(super) found: Vec<Read>,
    /// What a schema says that the arguments are parsed with.
    pub(super) parsed: Option<Value>,
    /// Functions that are given the arguments as a whole, with the position.
    pub(super) passed_to: Vec<(&'a str, usize)>,
}

/// Walks the whole program: a subject is one symbol, so only its own uses count.
pub(super) fn reads<'t, 'a>(source: &'t Source<'a>, subject: Subject) -> Reads<'t, 'a> {
    let mut reads = Reads { source, subject, found: Vec::new(), parsed: None, passed_to: Vec::new() };
    let program: &Program<'a> = source.program;
    reads.visit_program(program);
    reads
}

/// The names an object pattern takes apart, with their defaults.
pub(super) fn pattern_names(pattern: &ObjectPattern<'_>) -> Vec<Read> {
    let mut found = Vec::new();
    for property in pattern.properties.iter().take(MAX_NAMES) {
        if property.computed {
            continue;
        }
        let Some(name) = property.key.static_name() else { continue };
        let default = match &property.value {
            BindingPattern::AssignmentPattern(assignment) => Some(literal(&assignment.right)),
            _ => None,
        };
        let has_default = default.is_some();
        found.push(Read { name: name.into_owned(), default: default.flatten(), has_default });
    }
    found
}

impl<'a> Reads<'_, 'a> {
    pub(super) fn is_subject(&self, identifier: &IdentifierReference<'a>) -> bool {
        match self.subject {
            Subject::Script => identifier.name == "args" && self.source.is_free(identifier),
            Subject::Symbol(symbol) => {
                let reference = identifier.reference_id.get();
                let known = reference.and_then(|id| self.source.scoping.get_reference(id).symbol_id());
                known == Some(symbol)
            }
        }
    }

    fn is_subject_value(&self, value: &Expression<'a>) -> bool {
        matches!(peel(value), Expression::Identifier(identifier) if self.is_subject(identifier))
    }

    fn add(&mut self, read: Read) {
        if let Some(known) = self.found.iter_mut().find(|known| known.name == read.name) {
            known.default = known.default.take().or(read.default);
            known.has_default |= read.has_default;
        } else if self.found.len() < MAX_NAMES {
            self.found.push(read);
        }
    }
}

impl<'a> Visit<'a> for Reads<'_, 'a> {
    fn visit_member_expression(&mut self, member: &MemberExpression<'a>) {
        if self.is_subject_value(member.object())
            && let Some(name) = member.static_property_name()
        {
            self.add(Read { name: name.to_owned(), default: None, has_default: false });
        }
        walk::walk_member_expression(self, member);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        // JSON has no methods: `args.map(…)` says that the arguments are a list, not that they have a `map`.
        let is_method =
            call.callee.as_member_expression().is_some_and(|member| self.is_subject_value(member.object()));
        if let Expression::StaticMemberExpression(member) = &call.callee
            && matches!(
                member.property.name.as_str(),
                "parse" | "safeParse" | "parseAsync" | "safeParseAsync"
            )
            && let Some(argument) = call.arguments.first().and_then(Argument::as_expression)
            && self.is_subject_value(argument)
            && self.parsed.is_none()
        {
            self.parsed =
                Some(zod(self.source, &member.object)).filter(|schema| *schema != Value::Bool(true));
        }
        if is_method {
            call.arguments.iter().for_each(|argument| self.visit_argument(argument));
            return;
        }
        if let Expression::Identifier(callee) = &call.callee {
            let position = call.arguments.iter().position(|argument| {
                argument.as_expression().is_some_and(|value| self.is_subject_value(value))
            });
            if let Some(position) = position.filter(|_| self.passed_to.len() < MAX_NAMES) {
                self.passed_to.push((callee.name.as_str(), position));
            }
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let (BindingPattern::ObjectPattern(pattern), Some(value)) = (&declarator.id, &declarator.init)
            && self.is_subject_value(value)
        {
            pattern_names(pattern).into_iter().for_each(|read| self.add(read));
        }
        walk::walk_variable_declarator(self, declarator);
    }
}
