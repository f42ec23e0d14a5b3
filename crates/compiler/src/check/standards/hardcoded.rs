//! The rule `hardcoded-value`: whose data a tool works on is not written into the tool.

use std::collections::BTreeSet;

use oxc::ast::AstKind;
use oxc::ast::ast::BinaryOperator;
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::super::constant;
use super::super::report::{Report, Rule};
use super::super::tree::Tree;
use super::defaults::is_default_value;
use super::secrets::{self, Secret};

const HARDCODED_VALUE: Rule = Rule {
    name: "hardcoded-value",
    severity: Severity::Error,
    reason: "Addresses, identifiers and secrets in the source tie a tool to one case and end up in git \
             (standard 7, no hardcoded values).",
};

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    let mut reported: BTreeSet<u32> = BTreeSet::new();
    for (node, kind) in tree.each() {
        let (text, span) = match kind {
            AstKind::StringLiteral(literal) => (literal.value.as_str(), literal.span),
            AstKind::TemplateElement(element) => {
                (element.value.cooked.as_ref().unwrap_or(&element.value.raw).as_str(), element.span)
            }
            _ => continue,
        };
        if is_module_or_type(tree, node) {
            continue;
        }
        if let Some(secret) = secrets::find(text).or_else(|| named_secret(tree, node, text)) {
            reported.insert(span.start);
            report_secret(tree, node, secret, span, report);
        }
    }
    check_assembled(tree, &reported, report);
}

/// A text put together from constants is still written in the source.
fn check_assembled(tree: &Tree<'_, '_>, reported: &BTreeSet<u32>, report: &mut Report<'_>) {
    // Parents come before children, so a part always follows the whole it belongs to.
    let mut assembled: Option<Span> = None;
    for (node, kind) in tree.each() {
        let is_assembled = match kind {
            AstKind::BinaryExpression(binary) => binary.operator == BinaryOperator::Addition,
            AstKind::TemplateLiteral(template) => !template.expressions.is_empty(),
            AstKind::CallExpression(_) => true,
            _ => false,
        };
        let span = kind.span();
        let is_part = assembled.is_some_and(|whole| whole.contains_inclusive(span));
        if !is_assembled || is_part || reported.range(span.start..span.end).next().is_some() {
            continue;
        }
        let values = constant::strings_of(tree, kind);
        if !values.is_empty() {
            assembled = Some(span);
        }
        if let Some(secret) = values.iter().find_map(|value| secrets::find(value)) {
            report_secret(tree, node, secret, span, report);
        }
    }
}

fn report_secret(tree: &Tree<'_, '_>, node: NodeId, secret: Secret, span: Span, report: &mut Report<'_>) {
    let (what, fix) = match secret {
        Secret::PrivateKey => ("A private key", SECRET_FIX),
        Secret::Token => ("An access token", SECRET_FIX),
        Secret::Credentials => ("A password or key", SECRET_FIX),
        Secret::Email => ("An e-mail address", "Take the address as an argument: `args.email`."),
        Secret::Uuid => ("A UUID", "Take the identifier as an argument: `args.id`."),
        Secret::Identifier => ("An identifier", "Take the identifier as an argument: `args.id`."),
        Secret::Url => {
            // An address that an argument can replace is how it should be.
            if !is_default_value(tree, node) {
                report.add_as(
                    Severity::Warning,
                    &HARDCODED_VALUE,
                    span,
                    "A URL is hard-coded",
                    "Take it as an argument, with this one as the default: `baseUrl = 'https://…'`.",
                );
            }
            return;
        }
    };
    report.add(&HARDCODED_VALUE, span, format!("{what} is hard-coded"), fix);
}

const SECRET_FIX: &str =
    "Remove it and make it invalid, since it is in the history now; let the host pass it as an argument.";

/// `password: 'hunter2hunter2'`.
fn named_secret(tree: &Tree<'_, '_>, node: NodeId, text: &str) -> Option<Secret> {
    let span = tree.kind(node).span();
    let (_, parent) = tree.parent(node)?;
    let name = match parent {
        AstKind::VariableDeclarator(declarator) => declarator.id.get_identifier_name()?.to_string(),
        AstKind::ObjectProperty(property) if property.value.span() == span => {
            property.key.name()?.into_owned()
        }
        AstKind::PropertyDefinition(property) => property.key.name()?.into_owned(),
        _ => return None,
    };
    (secrets::is_secret_name(&name) && secrets::looks_secret(text)).then_some(Secret::Credentials)
}

/// Names of modules are judged by the import rules, and types are gone when the tool runs.
fn is_module_or_type(tree: &Tree<'_, '_>, node: NodeId) -> bool {
    matches!(
        tree.parent(node),
        Some((
            _,
            AstKind::ImportDeclaration(_)
                | AstKind::ExportFromDeclaration(_)
                | AstKind::ExportAllDeclaration(_)
                | AstKind::ImportExpression(_)
                | AstKind::TSExternalModuleReference(_)
                | AstKind::TSExternalModuleDeclaration(_)
                | AstKind::TSImportType(_)
                | AstKind::TSLiteralType(_)
                | AstKind::TSTemplateLiteralType(_)
                | AstKind::ImportAttribute(_)
        ))
    )
}
