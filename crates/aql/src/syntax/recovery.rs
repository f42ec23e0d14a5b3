//! What the parser does after a mistake: it skips what cannot be understood, and keeps the names in it, so that they
//! are not reported as missing.

use super::parser::{Parsed, Parser};
use super::text::Span;
use super::token::{Token, TokenKind};
use super::tree::UnparsedNames;

/// The names that a file seems to declare.
pub(super) fn declared(tokens: &[Token]) -> Vec<String> {
    let pairs = tokens.iter().zip(tokens.iter().skip(1));
    let named = pairs.filter(|(word, _)| is_declaring(word)).filter_map(|(_, name)| match &name.kind {
        TokenKind::Name(name) => Some(name.clone()),
        _ => None,
    });
    named.collect()
}

fn is_declaring(token: &Token) -> bool {
    matches!(&token.kind, TokenKind::Name(word) if word == "type" || word == "query")
}

impl Parser<'_> {
    /// Takes the brace that closes what was opened at `open`.
    pub fn close(&mut self, open: Span, help: &str) -> Parsed<()> {
        if self.eat("}") {
            return Ok(());
        }
        let message = format!("`}}` is expected here, not {}", self.found());
        let span = if self.begins_line() || self.at_end() { self.behind() } else { self.span() };
        let problem = self.source.problem(span, "unexpected-word", message);
        let problem = problem.label(self.source.range(open), "it is opened here").help(help);
        Err(self.tell(problem))
    }

    /// Passes everything up to where `stop` says, whole brackets at once, and never the bracket that closes this level.
    pub fn skip(&mut self, stop: impl Fn(&Self) -> bool) {
        let mut open = 0_usize;
        // Brackets that are open where another query begins were never closed.
        while !self.at_end() && !self.begins_item() {
            match self.kind() {
                TokenKind::Symbol("{" | "(" | "[") => open += 1,
                TokenKind::Symbol("}" | ")" | "]") if open == 0 => return,
                TokenKind::Symbol("}" | ")" | "]") => open -= 1,
                _ if open == 0 && stop(self) => return,
                _ => {}
            }
            self.advance();
        }
    }

    /// Whether this line can only be the beginning of something that a file holds. Names and texts below each other can
    /// be the items of a list.
    pub fn begins_item(&self) -> bool {
        let declares = match (self.kind(), self.kind_at(1)) {
            (TokenKind::Name(word), TokenKind::Name(_)) => word == "type" || word == "query",
            (TokenKind::Name(word), TokenKind::Text(_)) => word == "import",
            _ => false,
        };
        declares && self.begins_line() && !self.begins_line_at(1)
    }

    pub fn skip_item(&mut self, before: usize) {
        if self.at == before {
            self.advance();
        }
        while !self.at_end() && !self.begins_item() {
            self.advance();
        }
    }

    /// Passes a step that is wrong and began at `before`, and keeps what may be names of steps.
    pub fn skip_step(&mut self, before: usize, lost: &mut UnparsedNames) {
        if self.at == before {
            self.advance();
        }
        self.skip(Parser::begins_step);
        // Brackets that close nothing here belong to what was wrong.
        while self.is(")") || self.is("]") {
            self.advance();
            self.skip(Parser::begins_step);
        }
        self.names_since(before, lost);
    }

    fn begins_step(&self) -> bool {
        let named = matches!(self.kind(), TokenKind::Name(_)) && self.is_at(1, ":");
        let kind = matches!(self.kind_at(2), TokenKind::Name(_));
        named && (kind || self.begins_line())
            || self.is_word("return") && self.begins_line()
            || self.begins_item()
    }

    /// Whether what begins at `at` is a type or a query, and nothing that could be an import.
    pub fn declares(&self, at: usize) -> bool {
        let named = self.tokens.get(at + 1).is_some_and(|name| matches!(name.kind, TokenKind::Name(_)));
        named && self.tokens.get(at).is_some_and(is_declaring)
    }

    /// Whether the token at `at` is the first of its line.
    pub fn line_begins(&self, at: usize) -> bool {
        self.tokens.get(at).is_none_or(|token| token.begins_line)
    }

    /// Whether more brackets are closed than opened since `before`.
    pub fn closes_more(&self, before: usize) -> bool {
        let passed = self.tokens.get(before..self.at).unwrap_or_default();
        let count = |brackets: [&str; 3]| {
            let is = |token: &&Token| matches!(token.kind, TokenKind::Symbol(symbol) if brackets.contains(&symbol));
            passed.iter().filter(is).count()
        };
        count(["}", ")", "]"]) > count(["{", "(", "["])
    }

    /// Keeps what was passed since `before` and looks like the name of a step.
    pub fn names_since(&self, before: usize, lost: &mut UnparsedNames) {
        let passed = self.tokens.get(before..self.at).unwrap_or_default();
        if let Some((first, behind)) = passed.first().zip(passed.get(1)) {
            // A name is followed by its colon, or only the colon is missing.
            let named = match (&first.kind, &behind.kind) {
                (TokenKind::Name(word), TokenKind::Symbol(_)) if word == "return" => true,
                (TokenKind::Name(_), TokenKind::Symbol(":")) => true,
                (TokenKind::Name(name), TokenKind::Name(_)) => {
                    lost.names.push(name.clone());
                    true
                }
                _ => false,
            };
            lost.any |= !named;
        }
        for (name, colon) in passed.iter().zip(passed.iter().skip(1)) {
            if let (TokenKind::Name(name), TokenKind::Symbol(":")) = (&name.kind, &colon.kind) {
                lost.names.push(name.clone());
            }
        }
    }
}
