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
use super::defaults::{is_default_value, is_named_constant};
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
        } else if secrets::is_company(text) && is_compared(tree, node) {
            report.add_as(
                Severity::Warning,
                &HARDCODED_VALUE,
                span,
                "one company decides what the tool does: it serves that case only; take it as an argument",
                "Pass what differs: `args.discountRate`, or a table from names to values.",
            );
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
    let what = match secret {
        Secret::PrivateKey => "a private key",
        Secret::Token => "an access token",
        Secret::Credentials => "a password or key",
        Secret::Email => "an e-mail address",
        Secret::Uuid => "a UUID",
        Secret::Identifier => "an identifier",
        Secret::Url => "a URL",
    };
    let is_secret = matches!(secret, Secret::PrivateKey | Secret::Token | Secret::Credentials);
    if is_secret {
        let message = format!("{what} is in the source: it ends up in git and in every log; remove it");
        return report.add(&HARDCODED_VALUE, span, message, SECRET_FIX);
    }
    // A default can be replaced and a name can be read; neither is worth a refusal.
    let is_replaceable = is_default_value(tree, node) || is_named_constant(tree, node);
    if secret == Secret::Url {
        if !is_replaceable {
            report.add_as(
                Severity::Warning,
                &HARDCODED_VALUE,
                span,
                "a URL is in the source: the tool works with one server only; name it or take it as an argument",
                "Take it as an argument, with this one as the default: `args.baseUrl ?? 'https://…'`.",
            );
        }
        return;
    }
    let severity = if is_replaceable { Severity::Warning } else { Severity::Error };
    let name = if secret == Secret::Email { "email" } else { "id" };
    report.add_as(
        severity,
        &HARDCODED_VALUE,
        span,
        format!("{what} is in the source: the tool serves one case only; take it as an argument"),
        format!("Take it as an argument: `args.{name}`."),
    );
}

/// `args.customer === 'Acme GmbH'`.
fn is_compared(tree: &Tree<'_, '_>, node: NodeId) -> bool {
    match tree.parent(node) {
        Some((_, AstKind::BinaryExpression(binary))) => binary.operator.is_equality(),
        Some((_, AstKind::SwitchCase(_))) => true,
        _ => false,
    }
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
