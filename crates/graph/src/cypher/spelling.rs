//! The text that the parser is given: the query, with some parts written in the words that the parser knows.
//!
//! The parser follows openCypher 2024.3, which has no `CALL { ... }`, no EXPLAIN and no options, and it takes the label of
//! a pattern in `EXISTS { (a)-->(:B) }` for a test. Each of these is written otherwise before the query is parsed, and
//! every place in the tree can be turned into the place in the query.

use std::time::Duration;

use open_cypher::{Keyword, Span, Token, TokenKind};

use super::error::{CypherError, CypherResult};

/// What a pattern in EXISTS or COUNT begins with.
const MATCH: &str = "MATCH ";

/// What a subquery becomes, with its end.
const SUBQUERY: &str = "UNWIND COLLECT ";
const SUBQUERY_END: &str = " AS `subquery`";
const VARIABLE: &str = "`subquery`";

/// The longest limit that a query can have, in milliseconds: longer than any store allows.
const MAX_MILLISECONDS: u64 = 3_600_000;

/// A part of the text that replaces a part of the query.
#[derive(Clone, Debug)]
struct Edit {
    /// The part of the query; empty where something is put in.
    from: Span,
    to: &'static str,
    /// The subquery that ends here.
    ends: Option<usize>,
}

/// How patterns in EXISTS and COUNT are given to the parser.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patterns {
    AsWritten,
    /// With the MATCH that may be left out before them.
    WithMatch,
}

/// `CALL { ... }` of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SubqueryCall {
    /// Where its variable is in the text: what the clause is recognised by.
    marker: usize,
    pub import: Import,
    /// Whether a row without an answer stays.
    pub optional: bool,
}

/// Which variables a subquery has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Import {
    /// Those of its first WITH.
    ByWith,
    All,
    Names(Vec<(String, Span)>),
}

/// What precedes a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefix {
    /// Whether the plan is wanted, and not the rows.
    pub explain: bool,
    /// How long it may take.
    pub time: Option<Duration>,
    /// The first token of the query itself.
    first: usize,
}

/// The text for the parser, and the way back.
#[derive(Clone, Debug, Default)]
pub(super) struct Spelling {
    pub text: String,
    /// Beginning and end of each edit in the text, and its place in the query.
    edits: Vec<(Span, Span)>,
    pub calls: Vec<SubqueryCall>,
}

impl Spelling {
    /// The place in the query of a place in the text.
    pub fn original(&self, offset: usize) -> usize {
        let mut back = offset;
        for (now, was) in &self.edits {
            if now.end <= offset {
                back = was.end + (offset - now.end);
            } else if now.start <= offset {
                return was.start;
            } else {
                break;
            }
        }
        back
    }

    pub fn original_span(&self, span: Span) -> Span {
        let start = self.original(span.start);
        Span::new(start, self.original(span.end).max(start))
    }

    /// The subquery whose clause has its variable here.
    pub fn call(&self, variable: Span) -> Option<&SubqueryCall> {
        self.calls.iter().find(|call| call.marker == variable.start)
    }

    /// Whether places in the text are places in the query.
    pub fn is_verbatim(&self) -> bool {
        self.edits.is_empty()
    }
}

/// Reads EXPLAIN and options before a query.
pub(super) fn prefix(source: &str, tokens: &[Token]) -> CypherResult<Prefix> {
    let mut prefix = Prefix::default();
    let word = |at: usize| tokens.get(at).and_then(|token| token.text(source)).unwrap_or_default();
    loop {
        let at = prefix.first;
        if word(at).eq_ignore_ascii_case("EXPLAIN") && !prefix.explain {
            prefix.explain = true;
            prefix.first += 1;
        } else if word(at).eq_ignore_ascii_case("CYPHER") && prefix.time.is_none() {
            let span = tokens.get(at).map_or(Span::empty(0), |token| token.span);
            let milliseconds = word(at + 3).parse::<u64>().ok().filter(|number| *number > 0);
            let is_limit = word(at + 1) == "timeoutMs" && word(at + 2) == "=";
            let Some(milliseconds) = milliseconds.filter(|_| is_limit) else {
                return Err(CypherError::new(
                    "UnexpectedSyntax",
                    span,
                    "this option of a query is not known",
                )
                .help("write CYPHER timeoutMs=1000 before the query, with milliseconds above 0"));
            };
            prefix.time = Some(Duration::from_millis(milliseconds.min(MAX_MILLISECONDS)));
            prefix.first += 4;
        } else {
            return Ok(prefix);
        }
    }
}

/// Whether a pattern follows, and not a clause.
fn begins_pattern(tokens: &[Token], at: usize) -> bool {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    match kind(at) {
        Some(
            TokenKind::LeftParen | TokenKind::Keyword(Keyword::ShortestPath | Keyword::AllShortestPaths),
        ) => true,
        Some(TokenKind::Identifier | TokenKind::EscapedIdentifier) => kind(at + 1) == Some(TokenKind::Equal),
        _ => false,
    }
}

/// Writes a query so that the parser takes it. `base` is the query, of the same length or with other letters in the same
/// places; `tokens` are those of the query.
pub(super) fn spelled(
    source: &str,
    base: &str,
    tokens: &[Token],
    prefix: &Prefix,
    patterns: Patterns,
) -> CypherResult<Spelling> {
    let mut edits = Vec::new();
    let mut calls = Vec::new();
    if let (Some(first), Some(last)) =
        (tokens.first(), prefix.first.checked_sub(1).and_then(|at| tokens.get(at)))
    {
        edits.push(Edit { from: Span::new(first.span.start, last.span.end), to: "", ends: None });
    }
    for (at, token) in tokens.iter().enumerate().skip(prefix.first) {
        match token.kind {
            TokenKind::Keyword(Keyword::Exists | Keyword::Count) if patterns == Patterns::WithMatch => {
                let brace = tokens.get(at + 1).filter(|next| next.kind == TokenKind::LeftBrace);
                if let (Some(_), Some(pattern), true) =
                    (brace, tokens.get(at + 2), begins_pattern(tokens, at + 2))
                {
                    edits.push(Edit { from: Span::empty(pattern.span.start), to: MATCH, ends: None });
                }
            }
            TokenKind::Keyword(Keyword::Call) => subquery(source, tokens, at, &mut edits, &mut calls)?,
            _ => {}
        }
    }
    edits.sort_by_key(|edit| edit.from.start);
    let mut spelling = Spelling { calls, ..Spelling::default() };
    let mut copied = 0;
    for edit in edits {
        spelling.text.push_str(base.get(copied..edit.from.start).unwrap_or_default());
        let start = spelling.text.len();
        spelling.text.push_str(edit.to);
        let now = Span::new(start, spelling.text.len());
        if let Some(call) = edit.ends.and_then(|at| spelling.calls.get_mut(at)) {
            call.marker = now.end - VARIABLE.len();
        }
        spelling.edits.push((now, edit.from));
        copied = edit.from.end;
    }
    spelling.text.push_str(base.get(copied..).unwrap_or_default());
    Ok(spelling)
}

/// `CALL { ... }`, `CALL (a, b) { ... }`, `CALL (*) { ... }`, each with or without OPTIONAL.
fn subquery(
    source: &str,
    tokens: &[Token],
    at: usize,
    edits: &mut Vec<Edit>,
    calls: &mut Vec<SubqueryCall>,
) -> CypherResult<()> {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    let (mut open, mut import) = (at + 1, Import::ByWith);
    if kind(open) == Some(TokenKind::LeftParen) {
        let Some((end, names)) = imported(source, tokens, open) else { return Ok(()) };
        (open, import) = (end, names);
    }
    if kind(open) != Some(TokenKind::LeftBrace) {
        return Ok(());
    }
    let Some(close) = closing(tokens, open) else { return Ok(()) };
    if let (Some(TokenKind::Keyword(Keyword::In)), Some(next)) = (kind(close + 1), tokens.get(close + 1)) {
        return Err(CypherError::unsupported(next.span, "CALL { ... } IN TRANSACTIONS"));
    }
    let optional = at
        .checked_sub(1)
        .and_then(|before| tokens.get(before))
        .filter(|token| token.kind == TokenKind::Keyword(Keyword::Optional));
    let (Some(call), Some(open), Some(close)) = (tokens.get(at), tokens.get(open), tokens.get(close)) else {
        return Ok(());
    };
    let start = optional.map_or(call.span.start, |token| token.span.start);
    edits.push(Edit { from: Span::new(start, open.span.start), to: SUBQUERY, ends: None });
    edits.push(Edit { from: Span::empty(close.span.end), to: SUBQUERY_END, ends: Some(calls.len()) });
    calls.push(SubqueryCall { marker: 0, import, optional: optional.is_some() });
    Ok(())
}

/// The names in the brackets behind CALL, and the token behind them.
fn imported(source: &str, tokens: &[Token], open: usize) -> Option<(usize, Import)> {
    let mut names = Vec::new();
    let mut at = open + 1;
    loop {
        let token = tokens.get(at)?;
        match token.kind {
            TokenKind::RightParen if names.is_empty() => return Some((at + 1, Import::Names(names))),
            TokenKind::Star if tokens.get(at + 1)?.kind == TokenKind::RightParen => {
                return Some((at + 2, Import::All));
            }
            TokenKind::Identifier | TokenKind::EscapedIdentifier | TokenKind::Keyword(_) => {
                let name = token.text(source)?.trim_matches('`').replace("``", "`");
                names.push((name, token.span));
            }
            _ => return None,
        }
        match tokens.get(at + 1)?.kind {
            TokenKind::Comma => at += 2,
            TokenKind::RightParen => return Some((at + 2, Import::Names(names))),
            _ => return None,
        }
    }
}

/// The bracket that closes another.
fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            TokenKind::LeftBrace => depth += 1,
            TokenKind::RightBrace => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}
