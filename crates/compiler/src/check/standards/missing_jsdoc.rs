//! The rule `missing-jsdoc`: a tool that nobody can find is written twice.

use std::collections::HashSet;

use oxc::ast::ast::{Comment, Statement};
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::report::{Report, Rule};
use super::super::shape::{Entry, Shape};
use super::super::tree::Tree;
use crate::ToolShape;

const MISSING_JSDOC: Rule = Rule {
    name: "missing-jsdoc",
    severity: Severity::Warning,
    reason: "The description is what the registry searches when another agent looks for a tool (standard 5, reusable).",
};

const FIX: &str = "Say in a `/** … */` comment above it what it does, what it takes and what it returns.";

pub(super) fn check(tree: &Tree<'_, '_>, shape: &Shape<'_>, report: &mut Report<'_>) {
    let program = tree.program();
    let Some(first) = program.body.first() else { return };
    let documents = |comment: &&Comment| says_something(tree, comment);
    let documented: HashSet<u32> =
        program.comments.iter().filter(documents).map(|comment| comment.attached_to).collect();
    let has_doc = |statement: Span| documented.contains(&statement.start);
    // A comment at the head of the file, before or after the imports, describes the file, and the file is the tool.
    let is_import = |statement: &&Statement<'_>| matches!(statement, Statement::ImportDeclaration(_));
    let first_start = first.span().start;
    let head = program.body.iter().find(|statement| !is_import(statement)).unwrap_or(first).span().start;
    let has_head = program.comments.iter().filter(documents).any(|comment| comment.span.end <= head);
    match shape.tool_shape {
        ToolShape::DefaultExport | ToolShape::CommonJs if !matches!(shape.entry, Entry::None) => {
            if let Some(&statement) = shape.entry_statements.first()
                && !has_head
                && !shape.entry_statements.iter().any(|&statement| has_doc(statement))
            {
                report.add(&MISSING_JSDOC, first_line(tree, statement), "The tool has no JSDoc comment", FIX);
            }
        }
        ToolShape::ReturnScript | ToolShape::ExpressionScript => {
            if !has_head {
                let span = first_line(tree, Span::new(first_start, program.span.end));
                report.add(&MISSING_JSDOC, span, "The script has no JSDoc comment at its head", FIX);
            }
        }
        _ => {
            for exported in &shape.exported {
                if !has_head && !has_doc(exported.statement) {
                    report.add(
                        &MISSING_JSDOC,
                        exported.callable.head(),
                        format!("Exported function '{}' has no JSDoc comment", exported.name),
                        FIX,
                    );
                }
            }
        }
    }
}

fn says_something(tree: &Tree<'_, '_>, comment: &Comment) -> bool {
    let span = comment.span;
    let text = tree.program().source_text.get(span.start as usize..span.end as usize).unwrap_or("");
    text.starts_with("/**") && text.chars().any(char::is_alphanumeric)
}

fn first_line(tree: &Tree<'_, '_>, span: Span) -> Span {
    let text = tree.program().source_text.get(span.start as usize..span.end as usize).unwrap_or("");
    let length = text.find('\n').unwrap_or(text.len());
    Span::new(span.start, span.start.saturating_add(u32::try_from(length).unwrap_or(0)))
}
