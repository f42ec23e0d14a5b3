//! From characters to tokens. Whatever it meets, it continues to the end.

use std::time::Duration;

use super::literal::{Part, cook};
use super::text::{Span, Text};
use super::token::{Comment, Literal, Token, TokenKind};
use crate::problem::Findings;

/// Texts inside the holes of texts. Deeper nesting is unreadable.
const MAX_NESTED_TEXTS: usize = 8;

/// Longest first, since `??` is not two `?`.
const SYMBOLS: [&str; 21] = [
    "??", "==", "!=", "<=", ">=", "{", "}", "(", ")", "[", "]", ":", ",", ".", "?", "|", "=", "<", ">", "-",
    "!",
];

/// What a source is made of.
pub(crate) struct TokenStream {
    /// The last one is [`TokenKind::End`].
    pub tokens: Vec<Token>,
    /// Those inside of texts are not here.
    pub comments: Vec<Comment>,
}

pub(crate) fn words(text: &Text, findings: &mut Findings) -> TokenStream {
    let mut lexer =
        Lexer { source: text, at: 0, begins_line: true, findings, comments: Vec::new(), texts: 0 };
    // Some editors put a mark before the first letter.
    lexer.eat("\u{feff}");
    let (tokens, _) = lexer.tokens(LexMode::File);
    TokenStream { tokens, comments: lexer.comments }
}

/// What words are taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LexMode {
    File,
    /// A hole of a text in one quote, which ends with its line.
    Short,
    /// A hole of a text in three quotes.
    Long,
}

struct Lexer<'a> {
    source: &'a Text,
    at: usize,
    begins_line: bool,
    findings: &'a mut Findings,
    comments: Vec<Comment>,
    texts: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.source.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    fn eat_while(&mut self, test: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|letter| !test(letter)).unwrap_or(rest.len());
    }

    fn problem(&mut self, span: Span, kind: &'static str, message: impl Into<String>, help: &str) {
        self.findings.add(self.source.problem(span, kind, message).help(help));
    }

    /// The words up to the end of the file or of a hole, and whether there was such an end.
    fn tokens(&mut self, within: LexMode) -> (Vec<Token>, bool) {
        let mut tokens = Vec::new();
        let mut braces = 0_usize;
        loop {
            let newline = self.blanks(within);
            let start = self.at;
            let rest = self.rest();
            let ended = match within {
                LexMode::File => rest.is_empty(),
                LexMode::Short => rest.is_empty() || newline || rest.starts_with(['\n', '\r']),
                LexMode::Long => rest.is_empty(),
            };
            let closed = within != LexMode::File && braces == 0 && rest.starts_with("}}");
            if ended || closed {
                if closed {
                    self.at += 2;
                }
                tokens.push(Token { kind: TokenKind::End, span: Span::new(start, start), begins_line: true });
                return (tokens, closed || within == LexMode::File);
            }
            let begins_line = std::mem::take(&mut self.begins_line);
            let kind = self.token(start);
            match kind {
                TokenKind::Symbol("{") => braces += 1,
                TokenKind::Symbol("}") => braces = braces.saturating_sub(1),
                _ => {}
            }
            tokens.push(Token { kind, span: Span::new(start, self.at), begins_line });
        }
    }

    /// Passes blanks and comments. True when a hole that must not has met the end of its line.
    fn blanks(&mut self, within: LexMode) -> bool {
        loop {
            match self.peek() {
                Some('\n') if within == LexMode::Short => return true,
                Some('\n') => {
                    self.at += 1;
                    self.begins_line = true;
                }
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('#') => {
                    let start = self.at;
                    self.eat_while(|letter| letter != '\n');
                    if within == LexMode::File {
                        let end = start + self.source.slice(Span::new(start, self.at)).trim_end().len();
                        self.comments.push(Comment { span: Span::new(start, end) });
                    }
                }
                _ => return false,
            }
        }
    }

    fn token(&mut self, start: usize) -> TokenKind {
        let Some(first) = self.peek() else {
            return TokenKind::End;
        };
        if first == '"' {
            return self.text(start);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return TokenKind::Name(self.name(start));
        }
        if first == '$' {
            self.at += 1;
            let name = self.name(start + 1);
            if name.is_empty() {
                self.problem(
                    Span::new(start, self.at),
                    "unexpected-character",
                    "`$` must be followed by the name of an input",
                    "write `$name`",
                );
                return TokenKind::Wrong;
            }
            return TokenKind::Input(name);
        }
        let negative = first == '-' && self.rest().chars().nth(1).is_some_and(|next| next.is_ascii_digit());
        if first.is_ascii_digit() || negative {
            return self.number(start);
        }
        for symbol in SYMBOLS {
            if self.eat(symbol) {
                return TokenKind::Symbol(symbol);
            }
        }
        self.strange(start, first)
    }

    /// Reports something that is not a token, and skips what belongs to it.
    fn strange(&mut self, start: usize, first: char) -> TokenKind {
        // A run of strange letters is one problem, not one a letter.
        self.eat_while(|letter| !letter.is_ascii());
        if self.at == start {
            self.eat_while(|letter| letter == first);
        }
        let written = self.source.slice(Span::new(start, self.at));
        let plain = |letter: char| if letter.is_control() { '?' } else { letter };
        let strange = written.chars().take(40).map(plain).collect::<String>();
        let told = Span::new(start, self.at);
        let rest = self.rest();
        let line = rest.split('\n').next().unwrap_or_default();
        match first {
            // What other languages would pass is passed here too.
            '/' if strange.starts_with("//") => self.at += line.len(),
            '\'' => self.at += line.find('\'').map_or(0, |end| end + 1),
            _ => {}
        }
        let help = match first {
            '\'' | '“' | '”' | '‘' | '’' | '«' => "write a text in straight double quotes: \"…\"",
            '/' => "a comment begins with `#`",
            ';' => "steps end with their line",
            '&' => "write `and`",
            '!' => "write `not`",
            '+' => "texts are put together with holes: \"{{a}}{{b}}\"",
            _ => "names are made of letters from a to z, digits and `_`",
        };
        self.problem(told, "unexpected-character", format!("`{strange}` means nothing here"), help);
        TokenKind::Wrong
    }

    fn name(&mut self, start: usize) -> String {
        if self.peek().is_some_and(|first| first.is_ascii_alphabetic() || first == '_') {
            self.eat_while(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        }
        self.source.slice(Span::new(start, self.at)).to_owned()
    }

    fn number(&mut self, start: usize) -> TokenKind {
        self.eat("-");
        self.eat_while(|letter| letter.is_ascii_digit());
        let mut whole = true;
        let mut letters = self.rest().chars();
        if letters.next() == Some('.') && letters.next().is_some_and(|next| next.is_ascii_digit()) {
            whole = false;
            self.at += 1;
            self.eat_while(|letter| letter.is_ascii_digit());
        }
        let digits = self.at;
        self.eat_while(|letter| letter.is_alphanumeric() || letter == '_');
        let tail = self.source.slice(Span::new(digits, self.at));
        // An exponent may have a sign, which is not a letter.
        if matches!(tail, "e" | "E") && self.rest().starts_with(['+', '-']) {
            self.at += 1;
            self.eat_while(|letter| letter.is_ascii_digit());
        }
        let span = Span::new(start, self.at);
        let (body, tail) = (Span::new(start, digits), Span::new(digits, self.at));
        let (body, tail, all) = (self.source.slice(body), self.source.slice(tail), self.source.slice(span));
        let found = match tail {
            "" if whole => body.parse().ok().map(TokenKind::Int),
            "" => float(body),
            "ms" | "s" | "m" | "h" if whole => duration(body, tail),
            _ if tail.starts_with(['e', 'E']) => float(all),
            _ => None,
        };
        found.unwrap_or_else(|| {
            let message = format!("`{}` is not a number", all.chars().take(40).collect::<String>());
            let help = match tail {
                "" => "whole numbers go from -9223372036854775808 to 9223372036854775807",
                _ => "numbers are like `3`, `-2.5` and `1e6`, durations like `500ms`, `30s`, `5m` and `2h`",
            };
            self.problem(span, "wrong-number", message, help);
            TokenKind::Wrong
        })
    }

    fn text(&mut self, start: usize) -> TokenKind {
        let long = self.eat("\"\"\"");
        if !long {
            self.at += 1;
        }
        self.texts += 1;
        let found = if self.texts > MAX_NESTED_TEXTS { None } else { self.parts(start, long) };
        self.texts -= 1;
        let Some(parts) = found else {
            if self.texts >= MAX_NESTED_TEXTS {
                let message = format!("texts are nested more than {MAX_NESTED_TEXTS} deep");
                self.problem(
                    Span::new(start, self.at),
                    "too-deep",
                    message,
                    "give the inner ones a step of their own",
                );
            }
            return TokenKind::Wrong;
        };
        let before = self.findings.len();
        let pieces = cook(self.source, parts, long, self.findings);
        let wrong = self.findings.len() > before;
        TokenKind::Text(Literal { pieces, long, wrong, span: Span::new(start, self.at) })
    }

    /// The raw parts of a text whose opening quotes were taken; `None` when it does not end.
    fn parts(&mut self, start: usize, long: bool) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let mut from = self.at;
        loop {
            let raw = Span::new(from, self.at);
            if self.eat(if long { "\"\"\"" } else { "\"" }) {
                parts.push(Part::Raw(raw));
                return Some(parts);
            }
            let hole = self.at;
            if self.eat("{{") {
                parts.push(Part::Raw(raw));
                let begins_line = std::mem::take(&mut self.begins_line);
                let before = self.findings.len();
                let (tokens, closed) = self.tokens(if long { LexMode::Long } else { LexMode::Short });
                self.begins_line = begins_line;
                let span = Span::new(hole, self.at);
                if !closed {
                    // All that is wrong inside follows from it.
                    self.findings.truncate(before);
                    let help = "write `}}` behind the expression, or `\\{` for a brace that is only a brace";
                    self.problem(
                        Span::new(hole, hole + 2),
                        "unclosed-hole",
                        "this `{{` is never closed",
                        help,
                    );
                    return None;
                }
                parts.push(Part::Hole { tokens, span });
                from = self.at;
                continue;
            }
            match self.peek() {
                Some('\\') => {
                    self.at += 1;
                    // What is escaped ends neither the text nor begins a hole.
                    match self.peek() {
                        Some('\n' | '\r') | None => {}
                        Some(escaped) => self.at += escaped.len_utf8(),
                    }
                }
                Some('\n') if !long => break,
                Some(letter) => self.at += letter.len_utf8(),
                None => break,
            }
        }
        let (width, help) = if long {
            (3, "write `\"\"\"` where it ends")
        } else {
            (1, "write `\"` where it ends, or use `\"\"\"` for a text of several lines")
        };
        self.problem(Span::new(start, start + width), "unclosed-text", "this text is never closed", help);
        None
    }
}

fn float(written: &str) -> Option<TokenKind> {
    written.parse::<f64>().ok().filter(|value| value.is_finite()).map(TokenKind::Float)
}

fn duration(amount: &str, unit: &str) -> Option<TokenKind> {
    let amount: u64 = amount.parse().ok()?;
    let milliseconds = match unit {
        "ms" => Some(amount),
        "s" => amount.checked_mul(1_000),
        "m" => amount.checked_mul(60_000),
        _ => amount.checked_mul(3_600_000),
    }?;
    Some(TokenKind::Duration(Duration::from_millis(milliseconds)))
}
