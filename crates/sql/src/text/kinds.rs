//! What a statement does, for those who decide by it before any database has seen it.

use super::lexer::{Dialect, Kind, Token, tokens};

/// Words that begin a statement, alone or inside another one.
const VERBS: [&str; 40] = [
    "SELECT",
    "VALUES",
    "TABLE",
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "REPLACE",
    "UPSERT",
    "TRUNCATE",
    "CREATE",
    "ALTER",
    "DROP",
    "RENAME",
    "COMMENT",
    "GRANT",
    "REVOKE",
    "EXPLAIN",
    "DESCRIBE",
    "SHOW",
    "PRAGMA",
    "ATTACH",
    "DETACH",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "CALL",
    "DO",
    "EXECUTE",
    "PREPARE",
    "COPY",
    "LOAD",
    "LOCK",
    "SET",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "HANDLER",
    "IMPORT",
];

/// Words after which a statement can begin.
const OPENERS: [&str; 9] =
    ["EXPLAIN", "ANALYZE", "VERBOSE", "PLAN", "AS", "BEGIN", "THEN", "ELSE", "MATERIALIZED"];

/// The verbs of every statement in the text, also of those inside a `WITH`, in lower case and without repetition. A
/// text that the three databases read differently has the verbs of all readings, and one that has none, or hides code
/// from a reader, has `unknown`.
#[must_use]
pub fn statement_kinds(sql: &str) -> Vec<String> {
    let mut kinds = Vec::new();
    let mut add = |kind: String| {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    };
    for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::MySql] {
        let mut words = tokens(sql, dialect);
        if words.iter().any(|token| matches!(token.kind, Kind::Unterminated | Kind::HiddenCode)) {
            add("unknown".to_owned());
        }
        words.retain(|token| token.kind != Kind::Comment);
        let mut before: Option<&Token<'_>> = None;
        let mut found = false;
        for (place, token) in words.iter().enumerate() {
            let next = words.get(place + 1);
            if token.kind == Kind::Word && begins(before, found) && is_verb(token, next) {
                found = true;
                add(token.text.to_ascii_lowercase());
            }
            before = Some(token);
        }
        if !found {
            add("unknown".to_owned());
        }
    }
    kinds
}

/// Whether a statement can begin after `before`. The first verb of a text counts wherever it stands.
fn begins(before: Option<&Token<'_>>, found: bool) -> bool {
    !found
        || before.is_none_or(|before| {
            matches!(before.text, "(" | ")" | ";") || OPENERS.iter().any(|word| before.is(word))
        })
}

/// `replace(…)` is a function as well.
fn is_verb(token: &Token<'_>, next: Option<&Token<'_>>) -> bool {
    let function = token.is("REPLACE") && next.is_some_and(|next| next.text == "(");
    !function && VERBS.iter().any(|verb| token.is(verb))
}
