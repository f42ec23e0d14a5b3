//! The names a CommonJS module exports, as far as its source shows them.
//!
//! An ES module links by name before anything runs, so a CommonJS module that it imports from must show its names
//! up front. The forms are those that TypeScript, Babel, esbuild and people write.

use std::collections::BTreeMap;

use oxc::ast::ast::*;
use oxc::semantic::Scoping;

use super::shape::is_free;
use super::survey::required;

/// What a module assigns to its exports.
#[derive(Debug, Default)]
pub(super) struct CommonJsNames {
    pub(super) names: Vec<String>,
    /// Specifiers whose every export is exported again.
    pub(super) reexports: Vec<String>,
    /// `const x = require('…')`, by name.
    required: BTreeMap<String, String>,
}

impl CommonJsNames {
    /// `exports.a = …`, `module.exports.a = …`, `module.exports = …`.
    pub(super) fn assignment(&mut self, assignment: &AssignmentExpression<'_>, scoping: &Scoping) {
        let Some(target) = assignment.left.as_member_expression() else { return };
        if is_exports_member(target, scoping) {
            self.whole(&assignment.right, scoping);
        } else if is_exports(target.object(), scoping)
            && let Some(name) = target.static_property_name()
        {
            self.name(name);
        }
    }

    /// `const x = require('…')`, also through an interop helper.
    pub(super) fn variable(&mut self, declarator: &VariableDeclarator<'_>, scoping: &Scoping) {
        if let (Some(name), Some(value)) = (declarator.id.get_identifier_name(), &declarator.init)
            && let Some(specifier) = required_within(value, scoping)
        {
            self.required.insert(name.to_string(), specifier);
        }
    }

    /// `Object.defineProperty(exports, 'a', …)`, `__exportStar(require('…'), exports)` and their kin.
    pub(super) fn call(&mut self, call: &CallExpression<'_>, scoping: &Scoping) {
        let arguments: Vec<&Expression<'_>> =
            call.arguments.iter().filter_map(|argument| argument.as_expression()).collect();
        let Some(callee) = callee_name(&call.callee) else {
            self.copied_keys(call);
            return;
        };
        match (callee, arguments.as_slice()) {
            ("defineProperty", [target, Expression::StringLiteral(key), ..])
                if is_exports(target, scoping) =>
            {
                self.name(&key.value);
            }
            ("__exportStar" | "__export" | "_export_star" | "__reExport", arguments)
                if arguments.len() == 1 || arguments.iter().any(|argument| is_exports(argument, scoping)) =>
            {
                for argument in arguments {
                    if let Some(specifier) = self.specifier_of(argument, scoping) {
                        self.reexport(specifier);
                    }
                }
            }
            // esbuild: `__export(src_exports, { a: () => a })`, `module.exports = __toCommonJS(src_exports)`.
            ("__export", [Expression::Identifier(_), Expression::ObjectExpression(names)]) => {
                self.object(names, scoping);
            }
            ("assign", [target, sources @ ..]) if is_exports(target, scoping) => {
                for value in sources {
                    self.whole(value, scoping);
                }
            }
            ("forEach", _) => self.copied_keys(call),
            _ => {}
        }
    }

    /// Babel's `Object.keys(_x).forEach(function (key) { … exports[key] = _x[key] … })`.
    fn copied_keys(&mut self, call: &CallExpression<'_>) {
        if let Expression::StaticMemberExpression(member) = &call.callee
            && member.property.name == "forEach"
            && let Expression::CallExpression(keys) = &member.object
            && callee_name(&keys.callee) == Some("keys")
            && let Some(Argument::Identifier(copied)) = keys.arguments.first()
            && let Some(specifier) = self.required.get(copied.name.as_str())
        {
            let specifier = specifier.clone();
            self.reexport(specifier);
        }
    }

    /// `module.exports = value`.
    fn whole(&mut self, value: &Expression<'_>, scoping: &Scoping) {
        match value {
            Expression::ObjectExpression(object) => self.object(object, scoping),
            Expression::ConditionalExpression(condition) => {
                self.whole(&condition.consequent, scoping);
                self.whole(&condition.alternate, scoping);
            }
            value => {
                if let Some(specifier) = self.specifier_of(value, scoping) {
                    self.reexport(specifier);
                }
            }
        }
    }

    fn object(&mut self, object: &ObjectExpression<'_>, scoping: &Scoping) {
        for property in &object.properties {
            match property {
                ObjectPropertyKind::ObjectProperty(property) if !property.computed => {
                    if let Some(name) = property.key.static_name() {
                        self.name(&name);
                    }
                }
                ObjectPropertyKind::ObjectProperty(_) => {}
                ObjectPropertyKind::SpreadProperty(spread) => {
                    if let Some(specifier) = self.specifier_of(&spread.argument, scoping) {
                        self.reexport(specifier);
                    }
                }
            }
        }
    }

    fn specifier_of(&self, value: &Expression<'_>, scoping: &Scoping) -> Option<String> {
        match value {
            Expression::Identifier(identifier) => self.required.get(identifier.name.as_str()).cloned(),
            value => required_within(value, scoping),
        }
    }

    fn name(&mut self, name: &str) {
        if name != "__esModule" && !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }

    fn reexport(&mut self, specifier: String) {
        if !self.reexports.contains(&specifier) {
            self.reexports.push(specifier);
        }
    }
}

/// The specifier of `require('…')`, or of an interop helper around one.
fn required_within(value: &Expression<'_>, scoping: &Scoping) -> Option<String> {
    let Expression::CallExpression(call) = value else { return None };
    if let Some((specifier, _)) = required(call, scoping) {
        return Some(specifier.to_owned());
    }
    let is_interop = callee_name(&call.callee)
        .is_some_and(|name| name.contains("interop") || name.starts_with("__import") || name == "__toESM");
    let argument = call.arguments.first()?.as_expression()?;
    if is_interop { required_within(argument, scoping) } else { None }
}

/// The last name of `a`, `a.b` or `(0, a.b)`.
fn callee_name<'e>(callee: &'e Expression<'_>) -> Option<&'e str> {
    match callee {
        Expression::Identifier(identifier) => Some(identifier.name.as_str()),
        Expression::StaticMemberExpression(member) => Some(member.property.name.as_str()),
        Expression::SequenceExpression(sequence) => callee_name(sequence.expressions.last()?),
        _ => None,
    }
}

fn is_exports(value: &Expression<'_>, scoping: &Scoping) -> bool {
    match value {
        Expression::Identifier(identifier) => identifier.name == "exports" && is_free(identifier, scoping),
        value => value.as_member_expression().is_some_and(|member| is_exports_member(member, scoping)),
    }
}

fn is_exports_member(member: &MemberExpression<'_>, scoping: &Scoping) -> bool {
    member.static_property_name() == Some("exports")
        && matches!(member.object(), Expression::Identifier(object)
            if object.name == "module" && is_free(object, scoping))
}
