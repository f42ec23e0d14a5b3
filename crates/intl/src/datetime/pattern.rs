//! Date patterns as ICU4X writes them: fields such as `MMM`, and literal text.

use std::fmt::Write;

/// One item of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Field { symbol: char, length: usize },
    Literal(String),
}

/// A pattern that can be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens(pub(crate) Vec<Token>);

impl Tokens {
    /// These and others, as a list of two.
    pub(crate) fn and(&self, others: &Self) -> Self {
        let mut joined = self.0.clone();
        joined.push(Token::Literal(", ".to_owned()));
        joined.extend(others.0.iter().cloned());
        Self(joined)
    }

    /// Reads a pattern in the syntax of UTS 35: letters are fields, text in quotes and everything else is literal.
    pub(crate) fn parse(pattern: &str) -> Self {
        let mut tokens = Vec::new();
        let mut literal = String::new();
        let mut chars = pattern.chars().peekable();
        let mut quoted = false;
        while let Some(next) = chars.next() {
            if next == '\'' {
                if chars.next_if_eq(&'\'').is_some() {
                    literal.push('\'');
                } else {
                    quoted = !quoted;
                }
            } else if quoted || !next.is_ascii_alphabetic() {
                literal.push(next);
            } else {
                if !literal.is_empty() {
                    tokens.push(Token::Literal(std::mem::take(&mut literal)));
                }
                let mut length = 1;
                while chars.next_if_eq(&next).is_some() {
                    length += 1;
                }
                tokens.push(Token::Field { symbol: next, length });
            }
        }
        if !literal.is_empty() {
            tokens.push(Token::Literal(literal));
        }
        Self(tokens)
    }

    pub(crate) fn render(&self) -> String {
        let mut pattern = String::new();
        for token in &self.0 {
            match token {
                Token::Field { symbol, length } => pattern.extend(std::iter::repeat_n(*symbol, *length)),
                Token::Literal(text) => {
                    if text.chars().any(|c| c.is_ascii_alphabetic() || c == '\'') {
                        // Writing to memory does not fail.
                        let _ = write!(pattern, "'{}'", text.replace('\'', "''"));
                    } else {
                        pattern.push_str(text);
                    }
                }
            }
        }
        pattern
    }

    /// The length of the first field with one of `symbols`.
    pub(crate) fn field(&self, symbols: &[char]) -> Option<(char, usize)> {
        self.0.iter().find_map(|token| match token {
            Token::Field { symbol, length } if symbols.contains(symbol) => Some((*symbol, *length)),
            _ => None,
        })
    }

    /// Changes fields: `change` returns the new length.
    pub(crate) fn adjust(&mut self, change: impl Fn(char, usize) -> usize) {
        for token in &mut self.0 {
            if let Token::Field { symbol, length } = token {
                *length = change(*symbol, *length);
            }
        }
    }

    /// The tokens from the first field in `first` to the last field in `last`.
    pub(crate) fn between(&self, first: &[char], last: &[char]) -> Self {
        let is = |token: &Token, symbols: &[char]| matches!(token, Token::Field { symbol, .. } if symbols.contains(symbol));
        let start = self.0.iter().position(|token| is(token, first)).unwrap_or(0);
        let end = self.0.iter().rposition(|token| is(token, last)).map_or(0, |last| last + 1);
        Self(self.0.get(start..end).unwrap_or_default().to_vec())
    }
}
