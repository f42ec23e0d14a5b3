//! Which functions a statement calls, and whether all of them only compute.
//!
//! A name before a parenthesis is taken for a call unless the grammar leaves no doubt, so an unusual spelling makes a
//! statement stricter and never looser.

use std::collections::BTreeSet;

use super::definitions::plain_names;
use super::functions::{BOTH, KEYWORDS, MYSQL, MYSQL_KEYWORDS, POSTGRES, VARYING};
use super::lexer::{Dialect, Kind, Token};

/// A query in parentheses begins so, and the argument of a function does not.
const QUERIES: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];

/// Words before JOIN after which it is not a name.
const JOINS: [&str; 7] = ["INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "NATURAL"];

/// Whether any call is not one of a function that is known to only compute its answer.
pub(super) fn has_doubtful_call(tokens: &[Token<'_>], dialect: Dialect) -> bool {
    !doubtful_calls(tokens, dialect).is_empty()
}

/// The last parts of the names of such calls.
pub(super) fn doubtful_calls<'a>(tokens: &[Token<'a>], dialect: Dialect) -> Vec<Token<'a>> {
    let mut names = query_names(tokens);
    plain_names(tokens, dialect, &mut names);
    let is_doubtful = |place: usize, token: &Token<'_>| {
        let opens = tokens.get(place + 1).filter(|next| next.text == "(");
        let is_name = matches!(token.kind, Kind::Word | Kind::Name | Kind::Text);
        match opens {
            Some(open) if is_name => !is_harmless(tokens, place, open, dialect, &names),
            _ => false,
        }
    };
    let found = tokens.iter().enumerate().filter(|(place, token)| is_doubtful(*place, token));
    found.map(|(_, token)| *token).collect()
}

fn is_harmless(
    tokens: &[Token<'_>],
    place: usize,
    open: &Token<'_>,
    dialect: Dialect,
    names: &BTreeSet<usize>,
) -> bool {
    let Some(name) = tokens.get(place) else { return false };
    let (head, schema) = head(tokens, place);
    let before = head.checked_sub(1).and_then(|before| tokens.get(before));
    let follows = |word: &str| before.is_some_and(|before| before.is(word));
    // A list of columns: `INTO t (a)`, `AS t (a)`, `REFERENCES t (a)`, `WITH t (a) AS (…)`. A type: `CAST(a AS t(1))`,
    // `a::t(1)`. A key of MySQL: `KEY k (a)`.
    if names.contains(&place)
        || follows("INTO")
        || follows("AS")
        || follows("REFERENCES")
        || (dialect == Dialect::MySql && (follows("KEY") || follows("INDEX")))
        || before.is_some_and(|before| before.text == "::")
    {
        return true;
    }
    // A quoted name is never a keyword, and the functions of the list need no quotes.
    if name.kind != Kind::Word {
        return false;
    }
    match schema {
        Schema::None => {}
        Schema::Catalogue if dialect == Dialect::Postgres => {}
        Schema::Catalogue | Schema::Other => return false,
    }
    let is_at = |place: Option<usize>, word: &str| {
        place.and_then(|place| tokens.get(place)).is_some_and(|token| token.is(word))
    };
    let closes = before.is_some_and(|before| before.text == ")");
    let is_keyword = match () {
        () if schema == Schema::Catalogue => false,
        () if name.is("OVER") || name.is("FILTER") => closes,
        () if name.is("BY") => follows("GROUP") || follows("ORDER") || follows("PARTITION"),
        // `JOIN b ON conflict(1)` is a call.
        () if name.is("CONFLICT") => follows("ON") && behind(tokens, place).is_some_and(|next| next.is("DO")),
        () if name.is("MATERIALIZED") => follows("AS") || follows("NOT") && is_at(head.checked_sub(2), "AS"),
        () if name.is("SETS") => follows("GROUPING"),
        () if name.is("KEY") && (follows("PRIMARY") || follows("FOREIGN")) => true,
        () if name.is("THAN") => follows("LESS"),
        () if name.is("VARYING") => VARYING.iter().any(|word| follows(word)),
        () if name.is("CUBE") || name.is("ROLLUP") => follows("BY") && is_at(head.checked_sub(2), "GROUP"),
        () if name.is("EXPLAIN") && dialect == Dialect::Postgres => before.is_none(),
        () if name.is("JOIN") && dialect == Dialect::Postgres => {
            let has_query = QUERIES.iter().any(|word| is_at(Some(place + 2), word));
            has_query || JOINS.iter().any(|word| follows(word))
        }
        () if dialect == Dialect::MySql && MYSQL_KEYWORDS.iter().any(|word| name.is(word)) => true,
        () => contains(&KEYWORDS, name.text),
    };
    // With a blank before the parenthesis MySQL looks for a stored function of that name.
    let adjoins = dialect != Dialect::MySql || name.end() == open.start;
    let own: &[&str] = if dialect == Dialect::MySql { &MYSQL } else { &POSTGRES };
    is_keyword || (adjoins && (contains(&BOTH, name.text) || contains(own, name.text)))
}

/// Returns the token after the closing parenthesis behind a name.
fn behind<'a>(tokens: &'a [Token<'a>], name: usize) -> Option<&'a Token<'a>> {
    tokens.get(closing(tokens, name + 1)? + 1)
}

fn contains(list: &[&str], word: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Schema {
    None,
    /// `pg_catalog`
    Catalogue,
    Other,
}

/// Where a name with all its schemas begins.
fn head(tokens: &[Token<'_>], place: usize) -> (usize, Schema) {
    let (mut head, mut schema) = (place, Schema::None);
    while let Some(dot) = head.checked_sub(1)
        && tokens.get(dot).is_some_and(|token| token.text == ".")
    {
        let Some(name) = dot.checked_sub(1) else { return (dot, Schema::Other) };
        let is_catalogue = tokens.get(name).is_some_and(|token| token.is("pg_catalog"));
        schema = if schema == Schema::None && is_catalogue { Schema::Catalogue } else { Schema::Other };
        head = name;
    }
    (head, schema)
}

/// The places of the names that a `WITH` gives to queries and that have a list of columns: `WITH a (x) AS (…), b (y)
/// AS (…)`.
fn query_names(tokens: &[Token<'_>]) -> BTreeSet<usize> {
    let mut names = BTreeSet::new();
    for (place, _) in tokens.iter().enumerate().filter(|(_, token)| token.is("WITH")) {
        let mut next = place + 1;
        if tokens.get(next).is_some_and(|token| token.is("RECURSIVE")) {
            next += 1;
        }
        // Each step goes forward, so this ends.
        while let Some((name, after)) = query_name(tokens, next) {
            names.extend(name);
            if tokens.get(after).is_none_or(|token| token.text != ",") {
                break;
            }
            next = after + 1;
        }
    }
    names
}

/// Reads `name [(columns)] AS [[NOT] MATERIALIZED] (query)`: the place of a name with columns, and what follows it all.
fn query_name(tokens: &[Token<'_>], place: usize) -> Option<(Option<usize>, usize)> {
    let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Name);
    tokens.get(place).filter(|token| is_name(token))?;
    let mut next = place + 1;
    let mut name = None;
    if tokens.get(next)?.text == "(" {
        let end = closing(tokens, next)?;
        let columns = tokens.get(next + 1..end)?;
        if !columns.iter().all(|token| is_name(token) || token.text == ",") {
            return None;
        }
        name = Some(place);
        next = end + 1;
    }
    tokens.get(next).filter(|token| token.is("AS"))?;
    next += 1;
    if tokens.get(next)?.is("NOT") {
        next += 1;
    }
    if tokens.get(next)?.is("MATERIALIZED") {
        next += 1;
    }
    tokens.get(next).filter(|token| token.text == "(")?;
    Some((name, closing(tokens, next)? + 1))
}

/// Returns the place of the parenthesis that closes the one at `open`.
pub(super) fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(place);
        }
    }
    None
}
