//! The rule `single-parameter`: a tool is a default function that takes one object.

use oxc::ast::ast::{FormalParameter, ImportOrExportKind, Statement};
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::{Callable, Entry, Exported, Shape};
use super::super::tree::Tree;
use crate::ToolShape;

const SINGLE_PARAMETER: Rule = Rule {
    name: "single-parameter",
    severity: Severity::Error,
    reason: "The kernel calls the default function of a tool with one argument, an object that names the others \
             (standards 2, composable, and 6, general by params).",
};

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    match shape.entry {
        Entry::Callable { callable, .. } => check_parameters(callable, report),
        Entry::None if shape.tool_shape == ToolShape::NamedExportsOnly => check_exports(tree, shape, report),
        Entry::None if shape.tool_shape == ToolShape::CommonJs => check_object(tree, shape, report),
        _ => {}
    }
}

fn check_parameters(callable: Callable<'_>, report: &mut Report<'_>) {
    const FIX: &str = "Take one object and name what is in it: `(args: { first: string; second: number })`.";
    let params = callable.params();
    let others = params.items.iter().skip(1);
    let rest = params.rest.as_ref().map(|rest| rest.span);
    let is_optional = |parameter: &FormalParameter<'_>| parameter.optional || parameter.initializer.is_some();
    if let Some(required) = others.clone().find(|parameter| !is_optional(parameter)) {
        report.add(
            &SINGLE_PARAMETER,
            required.span,
            "the tool has more than one parameter: it is called with one argument, so the others are `undefined`; \
             take one object",
            FIX,
        );
    } else if let Some(rest) = rest {
        report.add(
            &SINGLE_PARAMETER,
            rest,
            "the tool has a rest parameter: it is called with one argument; take a list in an object",
            "Write `(args: { values: number[] })`.",
        );
    } else if let Some(other) = others.into_iter().next() {
        report.add_as(
            Severity::Warning,
            &SINGLE_PARAMETER,
            other.span,
            "the tool has an optional second parameter: only other code can set it, a caller of the tool cannot; \
             move it into the object",
            FIX,
        );
    }
}

/// A module of named exports is a library for other tools. One that exports nothing is of no use, and one whose only
/// export takes `args` is a tool without its `default`.
fn check_exports<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    let program = tree.program();
    let values = program.body.iter().filter(|statement| is_value_export(statement)).count();
    let Some(last) = program.body.last() else { return };
    if !program.body.iter().any(is_export) {
        report.add(
            &SINGLE_PARAMETER,
            head(last.span()),
            "the module exports nothing: it can be neither executed nor imported; export the tool",
            "Write `export default function tool(args: { … }) { return … }`.",
        );
    } else if let ([only], 1) = (shape.exported.as_slice(), values)
        && takes_arguments(only)
        && !is_in_library(&tree.unit.id)
    {
        report.add(
            &SINGLE_PARAMETER,
            only.callable.head(),
            format!(
                "the tool has no default function: `{}` can only be imported; export it as default",
                only.name
            ),
            format!(
                "Write `export default function {}(…)`. Helpers for other tools belong in a folder `lib`.",
                only.name
            ),
        );
    }
}

/// Names that a tool has where its function is not the default.
const USUAL_NAMES: [&str; 6] = ["main", "run", "tool", "handler", "execute", "call"];

/// An object of several functions is a library for other tools. One with a single function, or with one that has the name
/// of a tool, is meant to be called.
fn check_object(tree: &Tree<'_, '_>, shape: &Shape<'_>, report: &mut Report<'_>) {
    let Some((span, functions)) = &shape.exported_object else { return };
    let usual = functions.iter().find(|name| USUAL_NAMES.contains(&name.as_str()));
    let only = functions.first().filter(|_| functions.len() == 1);
    let Some(name) = usual.or(only).filter(|_| !is_in_library(&tree.unit.id)) else { return };
    report.add(
        &SINGLE_PARAMETER,
        head(*span),
        format!("`module.exports` is an object: no caller of the tool reaches `{name}` in it; export the function itself"),
        format!(
            "Write `export default {name}`, or `module.exports = {name}`. Helpers for other tools belong in a folder \
             `lib`."
        ),
    );
}

/// True for a statement that exports something, a type or a value.
fn is_export(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ExportNamedDeclaration(export) => !export.specifiers.is_empty(),
        Statement::ExportDeclaration(_)
        | Statement::ExportFromDeclaration(_)
        | Statement::ExportAllDeclaration(_)
        | Statement::ExportDefaultDeclaration(_) => true,
        _ => false,
    }
}

fn is_value_export(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ExportDeclaration(export) => !export.declaration.is_type(),
        Statement::ExportNamedDeclaration(export) => {
            export.export_kind == ImportOrExportKind::Value && !export.specifiers.is_empty()
        }
        _ => is_export(statement),
    }
}

/// True for a function that looks like a tool: it has one parameter with the name that tools use.
fn takes_arguments(exported: &Exported<'_>) -> bool {
    let params = exported.callable.params();
    let ([parameter], None) = (params.items.as_slice(), &params.rest) else { return false };
    parameter
        .pattern
        .get_identifier_name()
        .is_some_and(|name| matches!(name.as_str(), "args" | "input" | "params"))
}

fn is_in_library(id: &str) -> bool {
    id.split('/').rev().skip(1).any(|folder| matches!(folder, "lib" | "shared" | "helpers" | "utils"))
}

/// The first line of a long statement.
fn head(span: Span) -> Span {
    const LONGEST: u32 = 60;
    Span::new(span.start, span.end.min(span.start.saturating_add(LONGEST)))
}
