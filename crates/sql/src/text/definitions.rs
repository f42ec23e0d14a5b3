//! Definitions: which of them carry code for later, and which names in them are not calls although a parenthesis follows.
//!
//! Both lists name what is plain, so that a definition that is not on them counts as one that may do anything.

use std::collections::BTreeSet;

use super::calls::closing;
use super::lexer::{Dialect, Kind, Token};

/// Objects that run nothing later but what their own text shows.
const PLAIN_OBJECTS: [&str; 14] = [
    "TABLE",
    "INDEX",
    "VIEW",
    "SEQUENCE",
    "SCHEMA",
    "DATABASE",
    "TYPE",
    "DOMAIN",
    "ROLE",
    "USER",
    "GROUP",
    "COLLATION",
    "STATISTICS",
    "TABLESPACE",
];

/// What may be between CREATE or ALTER and the object.
const MODIFIERS: [&str; 13] = [
    "OR",
    "REPLACE",
    "TEMP",
    "TEMPORARY",
    "GLOBAL",
    "LOCAL",
    "UNLOGGED",
    "UNIQUE",
    "RECURSIVE",
    "MATERIALIZED",
    "FULLTEXT",
    "SPATIAL",
    "IGNORE",
];

/// Statements that run a text or a stored statement, or read code or rows from elsewhere.
const OPAQUE_VERBS: [&str; 5] = ["EXECUTE", "PREPARE", "LOAD", "COPY", "IMPORT"];

/// Methods of dividing a table, which are names elsewhere.
const PARTITIONINGS: [&str; 3] = ["RANGE", "LIST", "HASH"];

/// Whether the statement that begins at `start` may do, or make later statements do, what its text does not show.
pub(super) fn hides_code(tokens: &[Token<'_>], start: usize, dialect: Dialect) -> bool {
    let Some(verb) = tokens.get(start) else { return false };
    if verb.is("DO") {
        // A program there; an expression in MySQL, whose calls are looked for.
        return dialect == Dialect::Postgres;
    }
    if OPAQUE_VERBS.iter().any(|word| verb.is(word)) {
        return true;
    }
    let is_alteration = verb.is("ALTER");
    if !verb.is("CREATE") && !is_alteration {
        return false;
    }
    let (object, place) = object(tokens, start);
    let rest = tokens.get(place..).unwrap_or_default();
    let has = |word: &str| rest.iter().any(|token| token.is(word));
    match object {
        None => true,
        Some("USER") if rest.get(1).is_some_and(|next| next.is("MAPPING")) => true,
        // Functions that read and write its values are given as options.
        Some("TYPE") => rest.iter().any(|token| token.text == "="),
        // Other definitions can be a part of it.
        Some("SCHEMA") => {
            let is_plain =
                |at| matches!(self::object(tokens, at).0, Some("TABLE" | "VIEW" | "INDEX" | "SEQUENCE"));
            let mut inner =
                (place..tokens.len()).filter(|at| tokens.get(*at).is_some_and(|token| token.is("CREATE")));
            !inner.all(is_plain)
        }
        // Settings of later connections, such as where names are looked for.
        Some("ROLE" | "USER" | "GROUP" | "DATABASE") if is_alteration && dialect == Dialect::Postgres => {
            has("SET") || has("RESET")
        }
        // Triggers, rules and conditions of rows are switched on and off.
        Some("TABLE") if is_alteration => has("TRIGGER") || has("RULE") || has("SECURITY"),
        Some(_) => false,
    }
}

/// The plain object that the definition at `start` is about; others have the kind `unknown`.
pub(super) fn plain_object(tokens: &[Token<'_>], start: usize) -> Option<&'static str> {
    object(tokens, start).0
}

/// The plain object that a definition is about, and the place of its word.
fn object(tokens: &[Token<'_>], start: usize) -> (Option<&'static str>, usize) {
    let mut place = start + 1;
    while tokens.get(place).is_some_and(|token| MODIFIERS.iter().any(|word| token.is(word))) {
        place += 1;
    }
    let word = tokens.get(place);
    let known = PLAIN_OBJECTS.iter().find(|object| word.is_some_and(|word| word.is(object)));
    (known.copied(), place)
}

/// Finds the names in a definition that have a parenthesis behind them and are not called: the table itself with its
/// columns, their types, the method of an index.
pub(super) fn plain_names(tokens: &[Token<'_>], dialect: Dialect, names: &mut BTreeSet<usize>) {
    if !tokens.first().is_some_and(|first| first.is("CREATE")) {
        return;
    }
    match object(tokens, 0) {
        (Some("TABLE"), place) => table(tokens, place, dialect, names),
        (Some("VIEW"), place) => {
            let name = name_after(tokens, place + 1);
            names.extend(name.filter(|name| opens(tokens, *name)));
        }
        (Some("INDEX"), place) => index(tokens, place, dialect, names),
        _ => {}
    }
}

fn table(tokens: &[Token<'_>], place: usize, dialect: Dialect, names: &mut BTreeSet<usize>) {
    let Some(name) = name_after(tokens, place + 1).filter(|name| opens(tokens, *name)) else { return };
    let Some(end) = closing(tokens, name + 1) else { return };
    let is_query = |token: &Token<'_>| {
        token.text == "(" || ["SELECT", "WITH", "VALUES", "TABLE"].iter().any(|word| token.is(word))
    };
    // MySQL takes a query in these parentheses as well.
    if tokens.get(name + 2).is_none_or(is_query) {
        return;
    }
    names.insert(name);
    // Brackets, of an array, are counted by themselves: one that opens nothing must not end a parenthesis.
    let (mut depth, mut brackets) = (0_usize, 0_usize);
    for (at, token) in tokens.iter().enumerate().take(end).skip(name + 1) {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "[" => brackets += 1,
            "]" => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        let next = |offset: usize, word: &str| tokens.get(at + offset).is_some_and(|token| token.is(word));
        if depth != 1 || brackets > 0 {
            continue;
        }
        if dialect == Dialect::MySql && (token.is("KEY") || token.is("INDEX")) {
            let open = [at + 1, at + 2].into_iter().find(|open| is_open(tokens, *open));
            names.extend(open.into_iter().flat_map(|open| key_parts(tokens, open)));
        }
        // Here begins a constraint, or a column with its type.
        if matches!(token.text, "(" | ",") {
            let method = if next(1, "EXCLUDE") && next(2, "USING") { at + 3 } else { at + 1 };
            let kind = tokens.get(at + 1).filter(|column| is_name(column)).and(qualified(tokens, at + 2));
            let found = [Some(method), kind].into_iter().flatten();
            names.extend(found.filter(|name| opens(tokens, *name)));
        }
    }
    let next = |offset: usize, word: &str| tokens.get(end + offset).is_some_and(|token| token.is(word));
    if next(1, "INHERITS") {
        names.insert(end + 1);
    }
    let divides = next(1, "PARTITION") && next(2, "BY");
    if divides && PARTITIONINGS.iter().any(|word| next(3, word)) {
        names.insert(end + 3);
    }
}

fn index(tokens: &[Token<'_>], place: usize, dialect: Dialect, names: &mut BTreeSet<usize>) {
    let on = tokens.iter().enumerate().skip(place).find(|(_, token)| token.is("ON"));
    let Some(mut name) = on.and_then(|(on, _)| name_after(tokens, on + 1)) else { return };
    if tokens.get(name + 1).is_some_and(|token| token.is("USING")) {
        name += 2;
    }
    if !opens(tokens, name) {
        return;
    }
    names.insert(name);
    let Some(end) = closing(tokens, name + 1) else { return };
    if tokens.get(end + 1).is_some_and(|token| token.is("INCLUDE")) {
        names.insert(end + 1);
    }
    if dialect == Dialect::MySql {
        names.extend(key_parts(tokens, name + 1));
    }
}

/// The columns of a key of MySQL of which it has only the first letters: `a(10)`. The list begins at `open`.
fn key_parts(tokens: &[Token<'_>], open: usize) -> Vec<usize> {
    let (mut parts, mut depth) = (Vec::new(), 0_usize);
    let end = closing(tokens, open).unwrap_or_default();
    for (at, token) in tokens.iter().enumerate().take(end).skip(open) {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Deeper it is an expression.
        let begins = depth == 1 && matches!(token.text, "(" | ",");
        let part = tokens.get(at + 1..at + 5).unwrap_or_default();
        let is_part = matches!(part, [column, open, length, close]
            if is_name(column) && open.text == "(" && length.kind == Kind::Number && close.text == ")");
        if begins && is_part {
            parts.push(at + 1);
        }
    }
    parts
}

/// The place of the last part of the name that begins at `place`, behind words such as IF NOT EXISTS.
fn name_after(tokens: &[Token<'_>], mut place: usize) -> Option<usize> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
    if is(place, "IF") && is(place + 1, "NOT") && is(place + 2, "EXISTS") {
        place += 3;
    } else if is(place, "ONLY") {
        place += 1;
    }
    qualified(tokens, place)
}

/// The place of the last part of a name with its schemas.
fn qualified(tokens: &[Token<'_>], mut place: usize) -> Option<usize> {
    tokens.get(place).filter(|token| is_name(token))?;
    while tokens.get(place + 1).is_some_and(|token| token.text == ".")
        && tokens.get(place + 2).is_some_and(is_name)
    {
        place += 2;
    }
    Some(place)
}

fn is_name(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Word | Kind::Name)
}

/// Whether a name is at this place, with a parenthesis behind it.
fn opens(tokens: &[Token<'_>], name: usize) -> bool {
    tokens.get(name).is_some_and(is_name) && is_open(tokens, name + 1)
}

fn is_open(tokens: &[Token<'_>], place: usize) -> bool {
    tokens.get(place).is_some_and(|token| token.text == "(")
}
