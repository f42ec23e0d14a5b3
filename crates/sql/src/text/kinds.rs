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

/// Verbs that have an `INTO` of their own.
const INSERTIONS: [&str; 4] = ["INSERT", "REPLACE", "MERGE", "UPSERT"];
/// What may stand between such a verb and its `INTO`.
const MODIFIERS: [&str; 9] =
    ["OR", "REPLACE", "IGNORE", "ROLLBACK", "ABORT", "FAIL", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"];

/// The verbs of every statement in the text, also of those inside a `WITH`, in lower case and without repetition. A
/// text that the three databases read differently has the verbs of all readings, and one that has none, or hides code
/// from a reader, has `unknown`. A `SELECT … INTO` makes a table or a file somewhere, so it has `create`, too.
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
        let mut found = false;
        let mut selection = Selection::default();
        for (place, token) in words.iter().enumerate() {
            let next = words.get(place + 1);
            let is_start = token.kind == Kind::Word
                && (!found || begins(words.get(..place).unwrap_or_default()))
                && is_verb(token, next);
            if is_start {
                found = true;
                add(token.text.to_ascii_lowercase());
            }
            if selection.creates(token, is_start) {
                add("create".to_owned());
            }
        }
        if !found {
            add("unknown".to_owned());
        }
    }
    kinds
}

/// Whether a statement can begin after these. The first verb of a text counts wherever it stands.
fn begins(before: &[Token<'_>]) -> bool {
    let Some(last) = before.last() else { return true };
    // `EXPLAIN ANALYZE FORMAT=TREE DELETE …`
    let is_option = matches!(before, [.., name, equals, _] if name.is("FORMAT") && equals.text == "=");
    is_option || matches!(last.text, "(" | ")" | ";") || OPENERS.iter().any(|word| last.is(word))
}

/// Looks for an `INTO` that belongs to a `SELECT`.
#[derive(Default)]
struct Selection {
    has_select: bool,
    /// The `INTO` of an insertion may follow.
    is_insertion: bool,
}

impl Selection {
    /// Takes the next token of a text; `is_start` says that a statement begins with it.
    fn creates(&mut self, token: &Token<'_>, is_start: bool) -> bool {
        let is_into = is_into(token);
        let creates = is_into && self.has_select && !self.is_insertion;
        if token.kind == Kind::Semicolon {
            *self = Self::default();
        } else if is_start {
            // Elsewhere these words are names: `SELECT 1 insert INTO t` is no insertion.
            self.is_insertion = INSERTIONS.iter().any(|verb| token.is(verb));
        } else {
            self.is_insertion &= MODIFIERS.iter().any(|word| token.is(word));
        }
        self.has_select |= token.is("SELECT");
        creates
    }
}

/// Some databases let a word follow a number or a parameter without a blank: `SELECT 1INTO t`.
fn is_into(token: &Token<'_>) -> bool {
    let ends_so = || token.text.to_ascii_uppercase().ends_with("INTO");
    token.is("INTO") || (matches!(token.kind, Kind::Number | Kind::Dollar) && ends_so())
}

/// `replace(…)` is a function as well.
fn is_verb(token: &Token<'_>, next: Option<&Token<'_>>) -> bool {
    let function = token.is("REPLACE") && next.is_some_and(|next| next.text == "(");
    !function && VERBS.iter().any(|verb| token.is(verb))
}
