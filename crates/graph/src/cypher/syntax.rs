//! The caps that hold before anything is parsed, and the parser.

use std::time::Duration;

use open_cypher::ast::{QueryKind, RegularQuery, StatementKind};
use open_cypher::{Keyword, Span, Token, TokenKind};

use super::diagnostics::{KnownFunctions, refused};
use super::error::{CypherError, CypherResult};
use super::spelling::{self, Patterns, Spelling};

/// The longest query. A question a person or a program writes has a few hundred bytes.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// The most words of a query: what the parser does costs more than linear time where it has to guess.
const MAX_TOKENS: usize = 8_000;

/// How deep the tree of a query may be. Parser, compiler and SQLite recurse over it.
pub(crate) const MAX_NESTING: usize = 240;

/// A query as the compiler takes it. Places in the tree are places in the text of `spelling`.
pub(super) struct Parsed {
    pub tree: RegularQuery,
    pub spelling: Spelling,
    /// Whether the plan is wanted, and not the rows.
    pub explain: bool,
    /// How long the query may take, where it says so.
    pub time: Option<Duration>,
}

/// The query that a text holds. `functions` are only needed to explain a text that is not a query.
pub(super) fn parse(source: &str, functions: KnownFunctions) -> CypherResult<Parsed> {
    if source.len() > MAX_BYTES {
        let message = format!("the query has {} bytes, {MAX_BYTES} are allowed", source.len());
        return Err(CypherError::too_much(message, "pass long lists and texts as parameters"));
    }
    let tokens = tokens(source);
    if tokens.len() > MAX_TOKENS {
        let message = format!("the query has {} words, {MAX_TOKENS} are allowed", tokens.len());
        return Err(CypherError::too_much(message, "pass long lists and texts as parameters"));
    }
    let nesting = nesting(&tokens);
    if nesting > MAX_NESTING {
        let message = format!("the query is nested {nesting} deep, {MAX_NESTING} are allowed");
        return Err(CypherError::too_much(message, "use fewer brackets and operators in one expression"));
    }
    let prefix = spelling::prefix(source, &tokens)?;
    let base = with_closed_filters(with_plain_calls(source, &tokens), &tokens);
    let spell = |patterns| spelling::spelled(source, &base, &tokens, &prefix, patterns);
    let mut spelling = spell(Patterns::AsWritten)?;
    let mut tree = parsed(source, &tokens, &spelling, functions);
    if tree.is_err() {
        // The parser takes labels in EXISTS and COUNT only behind the word that may be left out.
        let other = spell(Patterns::WithMatch)?;
        if other.text != spelling.text {
            tree = parsed(source, &tokens, &other, functions);
            spelling = other;
        }
    }
    Ok(Parsed { tree: tree?, spelling, explain: prefix.explain, time: prefix.time })
}

fn tokens(text: &str) -> Vec<Token> {
    open_cypher::lex(text).tokens.into_iter().filter(|token| !token.is_trivia()).collect()
}

fn parsed(
    source: &str,
    words: &[Token],
    spelling: &Spelling,
    functions: KnownFunctions,
) -> CypherResult<RegularQuery> {
    let back = |mut refusal: Box<CypherError>| {
        refusal.span = refusal.span.map(|span| spelling.original_span(span));
        refusal
    };
    let parsed = open_cypher::parse(&spelling.text).map_err(|errors| {
        if spelling.is_verbatim() {
            // The query itself: in the text some names are spelled otherwise.
            return refused(source, words, &errors, functions);
        }
        back(refused(&spelling.text, &tokens(&spelling.text), &errors, functions))
    })?;
    let whole = parsed.program.span;
    let Some(statement) = parsed.program.statements.into_iter().next() else {
        return Err(CypherError::new("UnexpectedSyntax", spelling.original_span(whole), "there is no query")
            .help("begin with MATCH or RETURN"));
    };
    let unknown = |span: Span| {
        CypherError::new("UnexpectedSyntax", spelling.original_span(span), "this is not a query")
    };
    let StatementKind::Query(query) = statement.kind else { return Err(unknown(statement.span)) };
    if let Some(mode) = query.mode {
        return Err(CypherError::unsupported(spelling.original_span(mode.span), "PROFILE"));
    }
    match query.query.kind {
        QueryKind::Regular(regular) => Ok(regular),
        _ => Err(unknown(query.query.span)),
    }
}

/// Calls whose names the parser takes for the beginning of `COLLECT { ... }` or `EXISTS { ... }` when a CASE
/// precedes them. It gets names of the same length that mean nothing to it, so that every position stays the same.
const CALLS: [(Keyword, &str, &str); 2] =
    [(Keyword::Collect, "collect", "collec_"), (Keyword::Exists, "exists", "exist_")];

fn with_plain_calls(source: &str, tokens: &[Token]) -> String {
    let mut text = source.to_owned();
    for pair in tokens.windows(2) {
        let [name, bracket] = pair else { continue };
        let call = CALLS.iter().find(|(keyword, _, _)| name.kind == TokenKind::Keyword(*keyword));
        if let (Some((_, _, plain)), TokenKind::LeftParen) = (call, bracket.kind) {
            text.replace_range(name.span.range(), plain);
        }
    }
    text
}

/// Brackets around the condition of a comprehension. Without them `[x IN list WHERE x.name IS NULL | x.path]` and
/// `[x IN list WHERE x:File | x.path]` are read as a choice of labels: the parser takes `|` for the label's. They take
/// the place of blanks, so that every place stays where it is.
fn with_closed_filters(mut text: String, tokens: &[Token]) -> String {
    // For each open bracket: whether it is a list's, the end of its WHERE, the beginning of its last `|`.
    let mut open: Vec<(bool, Option<usize>, Option<usize>)> = Vec::new();
    let mut before = TokenKind::Comma;
    for token in tokens {
        let previous = std::mem::replace(&mut before, token.kind);
        match token.kind {
            TokenKind::LeftParen | TokenKind::LeftBrace => open.push((false, None, None)),
            TokenKind::LeftBracket => {
                let in_pattern = matches!(previous, TokenKind::Minus | TokenKind::LeftArrow);
                open.push((!in_pattern, None, None));
            }
            TokenKind::RightParen | TokenKind::RightBracket | TokenKind::RightBrace => {
                if let Some((true, Some(begin), Some(end))) = open.pop()
                    && begin < end
                    && text.get(begin..=begin) == Some(" ")
                    && text.get(end - 1..end) == Some(" ")
                    && begin + 1 < end
                {
                    text.replace_range(begin..=begin, "(");
                    text.replace_range(end - 1..end, ")");
                }
            }
            TokenKind::Keyword(Keyword::Where) => {
                if let Some((_, begin, _)) = open.last_mut() {
                    *begin = Some(token.span.end);
                }
            }
            TokenKind::Pipe => {
                if let Some((_, _, end)) = open.last_mut() {
                    *end = Some(token.span.start);
                }
            }
            _ => {}
        }
    }
    text
}

/// The name of a function as the query has it.
pub fn function_name(parsed: &str) -> &str {
    CALLS.iter().find(|(_, _, plain)| *plain == parsed).map_or(parsed, |(_, name, _)| name)
}

/// One pair of brackets: operators of the expression that is read now, and the deepest thing inside it.
#[derive(Default)]
struct Frame {
    operators: usize,
    inside: usize,
    deepest: usize,
    /// Whether it follows what it belongs to, as the brackets of a call or an index do.
    behind: bool,
}

impl Frame {
    fn end_expression(&mut self) {
        self.deepest = self.deepest.max(self.operators + self.inside);
        self.operators = 0;
        self.inside = 0;
    }
}

/// An upper bound for the depth of the syntax tree: brackets, and chains of operators, which nest to the left.
fn nesting(tokens: &[Token]) -> usize {
    let mut frames = vec![Frame::default()];
    let mut before = TokenKind::Comma;
    for token in tokens {
        let previous = std::mem::replace(&mut before, token.kind);
        match token.kind {
            TokenKind::LeftParen
            | TokenKind::LeftBracket
            | TokenKind::LeftBrace
            | TokenKind::Keyword(Keyword::Case) => {
                let behind = matches!(
                    previous,
                    TokenKind::Identifier
                        | TokenKind::EscapedIdentifier
                        | TokenKind::RightParen
                        | TokenKind::RightBracket
                        | TokenKind::RightBrace
                );
                frames.push(Frame { behind, ..Frame::default() });
            }
            TokenKind::RightParen
            | TokenKind::RightBracket
            | TokenKind::RightBrace
            | TokenKind::Keyword(Keyword::End)
                if frames.len() > 1 =>
            {
                let mut closed = frames.pop().unwrap_or_default();
                closed.end_expression();
                if let Some(frame) = frames.last_mut() {
                    frame.operators += usize::from(closed.behind);
                    frame.inside = frame.inside.max(closed.deepest + 1);
                }
            }
            TokenKind::Comma
            | TokenKind::Semicolon
            | TokenKind::Keyword(
                Keyword::Match
                | Keyword::Optional
                | Keyword::Where
                | Keyword::With
                | Keyword::Unwind
                | Keyword::Return
                | Keyword::Union
                | Keyword::When
                | Keyword::Then
                | Keyword::Else,
            ) => {
                if let Some(frame) = frames.last_mut() {
                    frame.end_expression();
                }
            }
            TokenKind::Identifier
            | TokenKind::EscapedIdentifier
            | TokenKind::Parameter
            | TokenKind::Integer
            | TokenKind::HexInteger
            | TokenKind::OctalInteger
            | TokenKind::Float
            | TokenKind::String => {}
            _ => {
                if let Some(frame) = frames.last_mut() {
                    frame.operators += 1;
                }
            }
        }
    }
    let mut depth = 0;
    while let Some(mut frame) = frames.pop() {
        frame.inside = frame.inside.max(depth);
        frame.end_expression();
        depth = frame.deepest + 1;
    }
    depth
}
