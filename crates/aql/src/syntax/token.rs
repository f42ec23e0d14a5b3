//! The words that a source is made of.

use std::time::Duration;

use super::text::Span;

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Span,
    /// Whether it is the first of its line.
    pub begins_line: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum TokenKind {
    Name(String),
    /// `$name`
    Input(String),
    Text(Literal),
    Int(i64),
    Float(f64),
    Duration(Duration),
    Symbol(&'static str),
    /// Something whose problem was reported.
    Wrong,
    End,
}

/// A text in quotes.
#[derive(Clone, Debug)]
pub(crate) struct Literal {
    pub pieces: Vec<Piece>,
    /// Whether it is in three quotes.
    pub long: bool,
    /// Whether a problem in its content was reported.
    pub wrong: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(Unescaped),
    /// The text between `{{` and `}}`.
    Hole {
        tokens: Vec<Token>,
        span: Span,
    },
}

/// A text after its escapes and its indentation were taken away.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unescaped {
    pub text: String,
    /// Where it comes from: (offset in `text`, offset in the source), ascending, one for every stretch that is as it
    /// was written.
    pub origins: Vec<(usize, usize)>,
}

impl Unescaped {
    /// The offset in the source of an offset in the text.
    pub fn origin(&self, offset: usize) -> usize {
        let at = self.origins.partition_point(|(cooked, _)| *cooked <= offset);
        let before = at.checked_sub(1).and_then(|at| self.origins.get(at));
        before.map_or(0, |(cooked, source)| source + (offset - cooked))
    }
}

/// A comment, from `#` to the end of its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comment {
    pub span: Span,
}
