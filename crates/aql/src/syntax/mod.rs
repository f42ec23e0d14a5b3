//! From text to a tree, and back.

mod expression;
mod lexer;
mod literal;
mod parser;
mod printer;
mod recovery;
pub(crate) mod text;
pub(crate) mod token;
pub(crate) mod tree;

use self::text::{Span, Text};
use self::token::Comment;
use self::tree::{File, Item, ParseCompleteness};
use crate::QueryProblems;
use crate::problem::Findings;

/// A source that a person writes is a hundredth of this. Everything behind is at least linear in it.
pub(crate) const MAX_SOURCE: usize = 256 * 1024;

/// A source and its tree.
pub(crate) struct Unit {
    pub text: Text,
    pub file: File,
    pub comments: Vec<Comment>,
}

/// Parses a source. Whatever is wrong with it, there is a tree of the rest.
pub(crate) fn parse(path: &str, text: &str, findings: &mut Findings) -> Unit {
    if text.len() > MAX_SOURCE {
        let empty = Text::new(path, "");
        let message = format!("`{path}` has {} bytes, at most {MAX_SOURCE} are read", text.len());
        let problem = empty.problem(Span::default(), "too-large", message);
        findings.add(problem.help("put parts of it into files of their own and import them"));
        return Unit { text: empty, file: File::default(), comments: Vec::new() };
    }
    let text = Text::new(path, text);
    let before = findings.len();
    let words = lexer::words(&text, findings);
    // From there on everything is text, or nothing is; more problems would only repeat that. Queries that are whole
    // stay.
    if findings.has(before, &["unclosed-text", "unclosed-hole"]) {
        let mut follows = Findings::default();
        let mut file = parser::file(&text, &words.tokens, &mut follows);
        let many = follows.has(0, &["too-many-steps"]);
        file.items.retain(
            |item| !matches!(item, Item::Query(query) if many || query.whole != ParseCompleteness::Yes),
        );
        file.blind = true;
        return Unit { text, file, comments: words.comments };
    }
    let file = parser::file(&text, &words.tokens, findings);
    Unit { text, file, comments: words.comments }
}

/// Writes a source the way all sources are written. Comments and meaning stay.
///
/// # Errors
/// When it cannot be parsed.
pub fn format(path: &str, text: &str) -> Result<String, QueryProblems> {
    let mut findings = Findings::default();
    let unit = parse(path, text, &mut findings);
    if findings.is_empty() {
        return Ok(printer::print(&unit));
    }
    Err(findings.into_problems(vec![unit.text.to_source()]))
}
