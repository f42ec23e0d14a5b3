//! Comments that allow a warning, and the rule `suppression` that judges them.
//!
//! `// tgp-allow magic-number: the fare is set by law` covers the line it is on, or the statement below when it has a
//! line of its own. Only warnings can be allowed: an error is never silenced, whatever a comment says.

use std::collections::BTreeSet;

use oxc::ast::AstKind;
use oxc::span::{GetSpan, Span};
use tgp_contract::{Finding, Severity};

use super::report::{Report, Rule};
use super::tree::Tree;

const SUPPRESSION: Rule = Rule {
    name: "suppression",
    severity: Severity::Warning,
    reason: "A rule that is set aside needs a reason that the next reader can judge.",
};

const MARKER: &str = "tgp-allow";

const FORM: &str =
    "Write `// tgp-allow RULE: why this place is an exception`, on the line or above the statement.";

/// The rules that give warnings, which a comment can allow.
const ALLOWABLE: [&str; 10] = [
    "floating-call",
    "hardcoded-value",
    "magic-number",
    "missing-jsdoc",
    "mutated-arguments",
    "no-any",
    "prefer-hof",
    "single-parameter",
    "sql-template",
    "stateless",
];

/// One comment with what it allows.
struct Allowance<'a> {
    comment: Span,
    rules: Vec<&'a str>,
    reason: &'a str,
    /// Where findings may begin to be covered.
    covered: Span,
}

/// Removes the warnings that comments allow, and reports comments that allow nothing.
pub(super) fn apply(tree: &Tree<'_, '_>, report: &mut Report<'_>) {
    let allowances = allowances(tree);
    if allowances.is_empty() {
        return;
    }
    let mut used: BTreeSet<(usize, &str)> = BTreeSet::new();
    report.retain(|finding, start| {
        let covering = allowances.iter().enumerate().filter(|(_, allowance)| {
            !allowance.reason.is_empty() && allowance.covered.start <= start && start < allowance.covered.end
        });
        let mut is_allowed = false;
        for (index, allowance) in covering {
            if let Some(rule) = allowance.rules.iter().find(|rule| is_for(finding, rule)) {
                used.insert((index, rule));
                is_allowed = true;
            }
        }
        !is_allowed
    });
    for (index, allowance) in allowances.iter().enumerate() {
        judge(allowance, |rule| used.contains(&(index, rule)), report);
    }
}

fn is_for(finding: &Finding, rule: &str) -> bool {
    finding.severity == Severity::Warning && finding.rule == rule && ALLOWABLE.contains(&rule)
}

fn judge(allowance: &Allowance<'_>, is_used: impl Fn(&str) -> bool, report: &mut Report<'_>) {
    if allowance.rules.is_empty() {
        return report.add(
            &SUPPRESSION,
            allowance.comment,
            "`tgp-allow` names no rule: it allows nothing; name the rule and the reason",
            FORM,
        );
    }
    if allowance.reason.is_empty() {
        let rules = allowance.rules.join(", ");
        return report.add(
            &SUPPRESSION,
            allowance.comment,
            format!("`tgp-allow {rules}` has no reason: it is ignored; add the reason after a colon"),
            FORM,
        );
    }
    for rule in allowance.rules.iter().filter(|rule| !is_used(rule)) {
        let (message, fix) = if ALLOWABLE.contains(rule) {
            (
                format!(
                    "`tgp-allow {rule}` allows nothing here: there is no such warning; remove the comment"
                ),
                "Remove it, or move it to the line of the warning. Errors cannot be allowed.".to_owned(),
            )
        } else {
            (
                format!("`{rule}` cannot be allowed: only warnings can; fix the code and remove the comment"),
                format!("Rules that can be allowed: {}.", ALLOWABLE.join(", ")),
            )
        };
        report.add(&SUPPRESSION, allowance.comment, message, fix);
    }
}

fn allowances<'a>(tree: &Tree<'_, 'a>) -> Vec<Allowance<'a>> {
    /// Comments beyond this many are ignored: each is compared with each finding.
    const MOST: usize = 200;
    let program = tree.program();
    let source = program.source_text;
    let text = |span: Span| source.get(span.start as usize..span.end as usize).unwrap_or("");
    let marked = program.comments.iter().filter_map(|comment| {
        let inner = text(comment.content_span()).trim().strip_prefix(MARKER)?;
        // `tgp-allowed` is another word.
        if !inner.is_empty() && !inner.starts_with([' ', '\t', ':']) {
            return None;
        }
        let (rules, reason) = inner.split_once(':').unwrap_or((inner, ""));
        let rules = rules.split([',', ' ', '\t']).filter(|rule| !rule.is_empty()).collect();
        Some(Allowance {
            comment: comment.span,
            rules,
            reason: reason.trim(),
            covered: covered(tree, comment.span),
        })
    });
    marked.take(MOST).collect()
}

/// The line of the comment when there is code before it, else the statement below.
fn covered(tree: &Tree<'_, '_>, comment: Span) -> Span {
    let source = tree.program().source_text;
    let start = comment.start as usize;
    let line_start = source.get(..start).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
    if source.get(line_start..start).is_some_and(|before| !before.trim().is_empty()) {
        return Span::new(offset(line_start), comment.start);
    }
    let after = source.get(comment.end as usize..).unwrap_or("");
    let mut next = comment.end as usize;
    for line in after.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.is_empty()
            || trimmed.starts_with("//")
            || trimmed.starts_with("/*")
            || trimmed.starts_with('*')
        {
            next += line.len();
            continue;
        }
        let begin = next + (line.len() - line.trim_start().len());
        let end = next + line.len();
        let statement = simple_statement(tree, offset(begin)).unwrap_or(0);
        return Span::new(offset(begin), offset(end).max(statement));
    }
    Span::new(comment.end, comment.end)
}

/// The end of the statement that begins at an offset, unless it holds other statements.
fn simple_statement(tree: &Tree<'_, '_>, begin: u32) -> Option<u32> {
    tree.each().map(|(_, kind)| kind).filter(|kind| kind.span().start == begin).find_map(|kind| match kind {
        AstKind::VariableDeclaration(_)
        | AstKind::ExpressionStatement(_)
        | AstKind::ReturnStatement(_)
        | AstKind::ThrowStatement(_)
        | AstKind::ObjectProperty(_)
        | AstKind::PropertyDefinition(_) => Some(kind.span().end),
        _ => None,
    })
}

fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
