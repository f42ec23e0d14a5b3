//! The rules `import-not-allowed`, `dynamic-import` and `dynamic-require`.
//!
//! They look at the source as it was written: an import that nothing uses vanishes from the compiled code, and
//! `import x = require()` turns into something else there.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    CallExpression, Expression, ImportDeclaration, ImportDeclarationSpecifier, ImportOrExportKind,
    TSModuleReference,
};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use tgp_contract::Severity;

use super::constant;
use super::report::{Report, Rule};
use super::specifier::{Refusal, refusal};
use super::tree::{Tree, peel};

const IMPORT_NOT_ALLOWED: Rule = Rule {
    name: "import-not-allowed",
    severity: Severity::Error,
    reason: "A tool is portable and safe because it only uses other tools and the packages its project allows \
             (standard 8, orchestrator capable).",
};

const DYNAMIC_IMPORT: Rule = Rule {
    name: "dynamic-import",
    severity: Severity::Error,
    reason: "The modules of a tool are resolved and checked before it runs, so their names must be in the source \
             (standard 8, orchestrator capable).",
};

const DYNAMIC_REQUIRE: Rule =
    Rule { name: "dynamic-require", severity: Severity::Error, reason: DYNAMIC_IMPORT.reason };

const LITERAL_FIX: &str = "Write the path as a literal string. To choose between tools at run time use `tgp.exec_tool(path, args)`.";

pub(super) fn check(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    for (node, kind) in tree.each() {
        match kind {
            AstKind::ImportDeclaration(declaration) if !is_type_only(declaration) => {
                check_specifier(tree, &declaration.source.value, declaration.source.span, report);
            }
            AstKind::ExportFromDeclaration(declaration)
                if declaration.export_kind == ImportOrExportKind::Value =>
            {
                check_specifier(tree, &declaration.source.value, declaration.source.span, report);
            }
            AstKind::ExportAllDeclaration(declaration)
                if declaration.export_kind == ImportOrExportKind::Value =>
            {
                check_specifier(tree, &declaration.source.value, declaration.source.span, report);
            }
            AstKind::TSImportEqualsDeclaration(declaration)
                if declaration.import_kind == ImportOrExportKind::Value =>
            {
                if let TSModuleReference::ExternalModuleReference(reference) = &declaration.module_reference {
                    check_specifier(tree, &reference.expression.value, reference.expression.span, report);
                }
            }
            AstKind::ImportExpression(import) => {
                check_dynamic(tree, &DYNAMIC_IMPORT, Some(&import.source), import.span, report);
            }
            AstKind::IdentifierReference(reference) if tree.global_name(reference) == Some("require") => {
                check_require(tree, node, reference.span, report);
            }
            _ => {}
        }
    }
}

/// Types are erased, so importing only types loads nothing.
fn is_type_only(declaration: &ImportDeclaration<'_>) -> bool {
    declaration.import_kind == ImportOrExportKind::Type
        || declaration.specifiers.as_ref().is_some_and(|specifiers| {
            !specifiers.is_empty()
                && specifiers.iter().all(|specifier| {
                    matches!(specifier, ImportDeclarationSpecifier::ImportSpecifier(named)
                        if named.import_kind == ImportOrExportKind::Type)
                })
        })
}

/// `require` may be called with a literal, or be asked for its type; as a value it would load anything.
fn check_require(tree: &Tree<'_, '_>, node: NodeId, span: Span, report: &mut Report<'_>) {
    let Some((_, parent)) = tree.parent(node) else { return };
    let direct_call = direct_call(tree, node);
    if let Some(call) = direct_call {
        let argument = match call.arguments.as_slice() {
            [argument] => argument.as_expression(),
            _ => None,
        };
        return check_dynamic(tree, &DYNAMIC_REQUIRE, argument, call.span, report);
    }
    if !matches!(parent, AstKind::UnaryExpression(unary) if unary.operator.is_typeof()) {
        report_indirect_require(report, span);
    }
}

/// The call whose callee is exactly this reference, casts aside.
fn direct_call<'a>(tree: &Tree<'_, 'a>, node: NodeId) -> Option<&'a CallExpression<'a>> {
    let reference = tree.kind(node);
    let use_site = tree.use_of(node)?;
    match use_site.parent {
        AstKind::CallExpression(call) if peel(&call.callee).node_id() == reference.node_id() => Some(call),
        _ => None,
    }
}

/// `require` used as a value, or read from somewhere.
pub(super) fn report_indirect_require(report: &mut Report<'_>, span: Span) {
    report.add(
        &DYNAMIC_REQUIRE,
        span,
        "'require' is used other than by calling it with a literal path",
        LITERAL_FIX,
    );
}

fn check_dynamic<'a>(
    tree: &Tree<'_, 'a>,
    rule: &Rule,
    specifier: Option<&'a Expression<'a>>,
    span: Span,
    report: &mut Report<'_>,
) {
    let word = if rule.name == DYNAMIC_IMPORT.name { "import()" } else { "require()" };
    let Some(specifier) = specifier else {
        return report.add(rule, span, format!("{word} without a literal path"), LITERAL_FIX);
    };
    let values = constant::strings(tree, specifier);
    let mut refused = false;
    for value in &values {
        refused |= check_specifier(tree, value, specifier.span(), report);
    }
    let is_literal = match peel(specifier) {
        AstKind::StringLiteral(_) => true,
        AstKind::TemplateLiteral(template) => template.is_no_substitution_template(),
        _ => false,
    };
    // The module graph is read from literals; a computed path would be missing from it even when it is constant.
    if !is_literal && !refused {
        report.add(rule, span, format!("{word} of a path that is not a literal"), LITERAL_FIX);
    }
}

/// Reports a refused specifier and says whether it did.
fn check_specifier(tree: &Tree<'_, '_>, specifier: &str, span: Span, report: &mut Report<'_>) -> bool {
    let allowed = &tree.options.allowed_imports;
    let Some(refusal) = refusal(specifier, &tree.unit.id, allowed) else { return false };
    let (message, fix) = match refusal {
        Refusal::NodeModule => (
            format!("Import '{specifier}' is not allowed: Node.js modules do not exist in the sandbox"),
            node_fix(specifier).to_owned(),
        ),
        Refusal::Core => (
            format!("Import '{specifier}' is not allowed: it is for tgp.config.ts"),
            "Use the global `tgp`, and `@tgp/std` for helpers.".to_owned(),
        ),
        Refusal::Test => (
            format!("Import '{specifier}' is not allowed: it is for test files"),
            "Write the tests into a file of their own beside the tool, such as `fib.test.ts` for `fib.ts`."
                .to_owned(),
        ),
        Refusal::NotListed => (
            format!("Import '{specifier}' is not allowed"),
            format!(
                "Use one of the allowed packages ({}), another tool by a relative or `/lib/` path, or add the package \
                 to `allowedImports` in tgp.config.ts.",
                if allowed.is_empty() { "none so far".to_owned() } else { allowed.join(", ") }
            ),
        ),
        Refusal::LeavesRoot => (
            format!("Import '{specifier}' is not allowed: it leaves the tool root"),
            "Import tools below the tool root, by a relative path or as `/lib/name.ts`.".to_owned(),
        ),
        Refusal::Absolute => (
            format!("Import '{specifier}' is not allowed: it is an absolute path"),
            "Import other tools by a relative path or as `/lib/name.ts`.".to_owned(),
        ),
        Refusal::Url => (
            format!("Import '{specifier}' is not allowed: it is a URL"),
            "Import an allowed package by its name; fetch data with `tgp.fetch`.".to_owned(),
        ),
        Refusal::Malformed => (
            format!("Import '{specifier}' is not allowed: it is not a module name"),
            "Write a package name, a relative path with forward slashes, or `/lib/name.ts`.".to_owned(),
        ),
    };
    report.add(&IMPORT_NOT_ALLOWED, span, message, fix);
    true
}

fn node_fix(specifier: &str) -> &'static str {
    let name = specifier.strip_prefix("node:").unwrap_or(specifier);
    match name.split('/').next().unwrap_or(name) {
        "fs" => "Use `tgp.read_file`, `tgp.write_file` and `tgp.list_files`.",
        "http" | "https" | "http2" | "net" | "tls" | "dns" | "dgram" => "Use `tgp.fetch`.",
        "child_process" | "worker_threads" | "cluster" => {
            "Call other tools with `import` or `tgp.exec_tool`."
        }
        "crypto" => "Use the global `crypto.randomUUID()` or `crypto.getRandomValues()`.",
        "url" | "querystring" => "Use the global `URL` and `URLSearchParams`.",
        "buffer" | "string_decoder" => "Use `Uint8Array`, `TextEncoder`, `TextDecoder`, `atob` and `btoa`.",
        "sqlite" => "Use `tgp.exec_sql`.",
        _ => "Write the few lines it is needed for, or use an allowed package.",
    }
}
