//! The parser's diagnostics in our own words.

use oxc::diagnostics::OxcDiagnostic;
use oxc::span::Span;
use tgp_contract::Finding;

use crate::places::LineTable;

/// A hostile source can have as many errors as bytes; nobody reads more than these.
const MAX_FINDINGS: usize = 20;

const REASON: &str = "only source that is valid TypeScript can be compiled and run";

/// Turns diagnostics into findings of the rule `syntax`, sorted by place.
pub(crate) fn findings<'d>(
    diagnostics: impl IntoIterator<Item = &'d OxcDiagnostic>,
    table: &LineTable<'_>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        diagnostics.into_iter().take(MAX_FINDINGS).map(|diagnostic| finding(diagnostic, table)).collect();
    findings.sort();
    findings.dedup();
    findings
}

fn finding(diagnostic: &OxcDiagnostic, table: &LineTable<'_>) -> Finding {
    let raw = diagnostic.message.as_ref();
    // The parameter of a wrapped script has no place of its own, so an empty label never counts.
    let mut spans = diagnostic.labels.iter().map(oxc::diagnostics::LabeledSpan::span);
    let redeclared = raw.contains("already been declared");
    let span = if redeclared { spans.rfind(|span| !span.is_empty()) } else { spans.next() };
    let span = span.unwrap_or(Span::new(0, 0));
    let found = snippet(table.text(span));
    if raw.starts_with("Namespaces exporting non-const") {
        return table.refusal(
            span,
            "`export let` and `export var` in a namespace are not supported".to_owned(),
            "the compiler cannot keep the exported variable and its local name in step",
            "export a `const` or a function, or use a module of its own instead of the namespace".to_owned(),
        );
    }
    let message = match (raw, found) {
        ("Unexpected token", Some(text)) => format!("unexpected token `{text}`"),
        ("Unexpected token", None) => "unexpected end of the source".to_owned(),
        _ => tidy(raw),
    };
    let fix = match (&diagnostic.help, found) {
        (Some(help), _) => tidy(help),
        (None, Some(text)) if raw == "Unexpected token" => {
            format!("something is missing before `{text}`, or it does not belong here")
        }
        (None, None) => "close what is still open: a bracket, a string, a template or a comment".to_owned(),
        (None, Some("args")) if redeclared => {
            "a script is given `args`: read it, and choose another name for your own".to_owned()
        }
        (None, Some(_)) if redeclared => {
            "rename one of the two, or assign to the first instead of declaring again".to_owned()
        }
        (None, Some(_)) => "correct the source at this place and check it again".to_owned(),
    };
    table.refusal(span, message, REASON, fix)
}

/// The offending text, when it is short enough to be quoted.
fn snippet(text: &str) -> Option<&str> {
    let line = text.lines().next()?.trim();
    (!line.is_empty() && line.chars().count() <= 40).then_some(line)
}

/// Lower-case first word, no final stop, user text in backticks.
fn tidy(message: &str) -> String {
    let message = message.trim().trim_end_matches('.');
    let mut characters = message.chars();
    let mut text = match (characters.next(), characters.clone().next()) {
        // `TypeScript`, `JSX` and `ES2015` keep their capital; `Expected` and `A` lose it.
        (Some(first), Some(second)) if first.is_ascii_uppercase() && !second.is_ascii_uppercase() => {
            let word: String = message.chars().take_while(char::is_ascii_alphanumeric).collect();
            let is_name = word.chars().skip(1).any(|letter| letter.is_ascii_uppercase());
            if is_name {
                message.to_owned()
            } else {
                first.to_ascii_lowercase().to_string() + characters.as_str()
            }
        }
        _ => message.to_owned(),
    };
    if !text.contains('`') && text.matches('\'').count() % 2 == 0 {
        text = text.replace('\'', "`");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
