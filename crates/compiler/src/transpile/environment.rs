//! Which environment variables a configuration names.
//!
//! The kernel gives a configuration only the variables it names in its source, so every read of `process.env` must
//! name its variable; anything else is refused.

use std::collections::BTreeSet;

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::Scoping;
use oxc::span::Span;
use tgp_contract::Finding;

use super::shape::is_free;
use crate::places::LineTable;

/// The names read from `process.env`, sorted.
///
/// # Errors
/// A finding for every other use of `process`.
pub(super) fn environment(
    program: &Program<'_>,
    scoping: &Scoping,
    table: &LineTable<'_>,
) -> Result<Vec<String>, Vec<Finding>> {
    let mut reader = Reader { scoping, names: BTreeSet::new(), named: BTreeSet::new(), unnamed: Vec::new() };
    reader.visit_program(program);
    if reader.unnamed.is_empty() {
        return Ok(reader.names.into_iter().collect());
    }
    Err(reader
        .unnamed
        .into_iter()
        .map(|span| {
            table.refusal(
                span,
                "a configuration can use `process` only to read `process.env.NAME`".to_owned(),
                "it is given only the variables that its source names",
                "write `process.env.NAME` with the name of the variable".to_owned(),
            )
        })
        .collect())
}

struct Reader<'s> {
    scoping: &'s Scoping,
    names: BTreeSet<String>,
    /// Where `process` starts a read that names its variable.
    named: BTreeSet<u32>,
    unnamed: Vec<Span>,
}

impl Reader<'_> {
    /// Where `process` stands, when `expression` is `process.env`.
    fn process_env(&self, expression: &Expression<'_>) -> Option<u32> {
        let member = expression.get_member_expr()?;
        let Expression::Identifier(process) = member.object() else { return None };
        let is_read = process.name == "process"
            && is_free(process, self.scoping)
            && member.static_property_name() == Some("env");
        is_read.then_some(process.span.start)
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_member_expression(&mut self, member: &MemberExpression<'a>) {
        if let Some(name) = member.static_property_name()
            && let Some(start) = self.process_env(member.object())
        {
            self.names.insert(name.to_owned());
            self.named.insert(start);
        }
        walk::walk_member_expression(self, member);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let BindingPattern::ObjectPattern(pattern) = &declarator.id
            && pattern.rest.is_none()
            && let Some(start) = declarator.init.as_ref().and_then(|value| self.process_env(value))
        {
            let names: Option<Vec<String>> = pattern
                .properties
                .iter()
                .map(|property| {
                    if property.computed {
                        None
                    } else {
                        property.key.static_name().map(|name| name.to_string())
                    }
                })
                .collect();
            if let Some(names) = names {
                self.names.extend(names);
                self.named.insert(start);
            }
        }
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        if identifier.name == "process"
            && is_free(identifier, self.scoping)
            && !self.named.contains(&identifier.span.start)
        {
            self.unnamed.push(identifier.span);
        }
    }
}
