//! What a statement does, as far as its text says. A doubt adds a kind and never takes one away.

use tgp_contract::{SqlClass, UNKNOWN_KIND};

use super::calls;
use super::definitions::{hides_code, plain_object};
use super::lexer::{BYTE_ORDER_MARK, Dialect, Kind, Token, tokens};
use super::statement::MAIN_VERBS;

/// Words that begin a statement, alone or inside another one.
const VERBS: [&str; 41] = [
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
    "DESC",
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

/// Words that begin a statement, and are names anywhere else.
const FIRST_VERBS: [&str; 4] = ["CLUSTER", "NOTIFY", "REFRESH", "SECURITY"];

/// Words after which a statement can begin.
const OPENERS: [&str; 9] =
    ["EXPLAIN", "ANALYZE", "VERBOSE", "PLAN", "AS", "BEGIN", "THEN", "ELSE", "MATERIALIZED"];

/// Verbs that have their own `INTO`.
const INSERTIONS: [&str; 4] = ["INSERT", "REPLACE", "MERGE", "UPSERT"];
/// What may be between such a verb and its `INTO`.
const MODIFIERS: [&str; 9] =
    ["OR", "REPLACE", "IGNORE", "ROLLBACK", "ABORT", "FAIL", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"];

/// Verbs whose answer can go into a table, a file or a variable.
const QUERIES: [&str; 3] = ["SELECT", "TABLE", "VALUES"];

/// Definitions that contain statements, with their own semicolons.
pub(super) const ROUTINES: [&str; 5] = ["TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE"];

/// The first word of a statement that only reads.
const READING_VERBS: [&str; 8] = ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN"];
/// All that such a statement may consist of. `EXPLAIN ANALYZE` runs what it explains.
const READING_KINDS: [&str; 7] = ["select", "values", "table", "show", "describe", "explain", "analyze"];

/// Kinds of statements without any expression: a name before a parenthesis is a column or what a privilege is about.
const PLAIN_KINDS: [&str; 9] =
    ["drop", "grant", "revoke", "comment", "rename", "truncate", "reindex", "cluster", "security"];

/// The kind of a statement that calls a function of which it is not known that it only computes.
const CALL: &str = "call";

/// Every kind that a statement can have, for those who write rules about them.
pub fn all_kinds() -> impl Iterator<Item = String> {
    let verbs = VERBS.iter().chain(&FIRST_VERBS).map(|verb| verb.to_ascii_lowercase());
    verbs.filter(|verb| verb != "desc").chain([UNKNOWN_KIND.to_owned()])
}

/// The verbs of every statement in the text, also of those inside a `WITH`, in lower case and without repetition. A
/// text that the three databases read differently has the verbs of all readings, and one that has none, begins with
/// another word or hides code from a reader, has `unknown`. A `SELECT … INTO` makes a table or a file somewhere, so it
/// has `create`, too; a function that may do something has `call`, and so has a refreshed view; a row that is locked has
/// `lock`; an insertion that replaces or updates rows has `replace` or `update`; a table that loses a column
/// or is replaced has `drop`, and what gets another name has `rename`. A program, and a definition that carries code for
/// later, has `unknown`.
#[must_use]
pub fn statement_kinds(sql: &str) -> Vec<String> {
    let mut kinds = Kinds::default();
    for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::MySql] {
        classify(sql, dialect).kinds.into_iter().for_each(|kind| kinds.add(kind));
    }
    kinds.0
}

/// What the text says to one database. SQLite knows better by itself, and has to be asked.
pub(crate) fn classify(sql: &str, dialect: Dialect) -> SqlClass {
    let all = tokens(sql, dialect);
    let mut kinds = Kinds::default();
    if all.iter().any(is_opaque) {
        kinds.unknown();
    }
    let words: Vec<Token<'_>> = all.into_iter().filter(|token| token.kind != Kind::Comment).collect();
    if words.windows(2).any(|pair| matches!(pair, [one, two] if adjoins(one, two, dialect))) {
        kinds.unknown();
    }
    let mut found = false;
    let mut selection = Selection::default();
    for (place, token) in words.iter().enumerate() {
        let before = words.get(..place).unwrap_or_default();
        let next = words.get(place + 1);
        let is_verb = is_verb(token, next) && (!found || begins(before));
        // The rows of an insertion are not a separate statement, but a query behind it is one.
        let is_row = token.is("VALUES") && selection.inserts;
        let is_source = (selection.inserts || kinds.has("create")) && token.is("SELECT")
            || selection.inserts && token.is("TABLE");
        let is_start = (is_verb && !is_row) || is_source || is_first_verb(before, token);
        if is_start {
            found = true;
            let verb = token.text.to_ascii_lowercase();
            // A text with two definitions is not read further: one of them may be about the other.
            let is_second = matches!(verb.as_str(), "create" | "alter") && kinds.has(&verb);
            kinds.add(if verb == "desc" { "describe".to_owned() } else { verb });
            if dialect != Dialect::Sqlite && (is_second || hides_code(&words, place, dialect)) {
                kinds.unknown();
            }
        }
        if kinds.has("alter")
            && let Some(kind) = alteration(token, next)
        {
            kinds.add(kind.to_owned());
        }
        if takes_the_place(&words, place) {
            kinds.add("drop".to_owned());
        }
        if selection.creates(token, is_start) {
            kinds.add("create".to_owned());
        }
        if let Some(kind) = clause(before, token, dialect) {
            kinds.add(kind.to_owned());
        }
    }
    // What `EXPLAIN ANALYZE` runs has to be known.
    let runs_something = kinds.has("explain") && kinds.has("analyze") && kinds.0.len() == 2;
    if !found || runs_something || !every_part_begins(&words) {
        kinds.unknown();
    }
    let calls = || dialect != Dialect::Sqlite && calls::has_doubtful_call(&words, dialect);
    // What a stored query calls is not in the text.
    let refreshes = kinds.has("refresh");
    let is_plain = kinds.0.iter().all(|kind| PLAIN_KINDS.contains(&kind.as_str()));
    if refreshes || !is_plain && calls() {
        kinds.add(CALL.to_owned());
    }
    let first = words.iter().find(|token| token.text != "(");
    let asks = first.is_some_and(|token| READING_VERBS.iter().any(|verb| token.is(verb)));
    let reads = asks && kinds.0.iter().all(|kind| READING_KINDS.contains(&kind.as_str()));
    SqlClass { kinds: kinds.0, reads: reads && dialect != Dialect::Sqlite }
}

/// The same with a call that its own text does not show.
pub(crate) fn doubt_call(found: SqlClass) -> SqlClass {
    let mut kinds = Kinds(found.kinds);
    kinds.add(CALL.to_owned());
    SqlClass { kinds: kinds.0, reads: false }
}

/// Kinds in the order in which they were found.
#[derive(Default)]
struct Kinds(Vec<String>);

impl Kinds {
    fn add(&mut self, kind: String) {
        if !self.0.contains(&kind) {
            self.0.push(kind);
        }
    }

    fn has(&self, kind: &str) -> bool {
        self.0.iter().any(|known| known == kind)
    }

    fn unknown(&mut self) {
        self.add(UNKNOWN_KIND.to_owned());
    }
}

/// Whether a token can be something else than it seems: code in a comment, a string without an end, a character that is
/// invisible or that another reader takes for a blank.
fn is_opaque(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Unterminated | Kind::HiddenCode | Kind::Ambiguous => true,
        Kind::Comment | Kind::Text | Kind::Name => false,
        _ => token.text.chars().any(is_strange),
    }
}

fn is_strange(character: char) -> bool {
    // Soft hyphen, zero width characters, direction marks, invisible operators.
    let invisible = matches!(
        character,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
    );
    character.is_control()
        || character == BYTE_ORDER_MARK
        || invisible
        || (!character.is_ascii() && character.is_whitespace())
}

/// Whether a word follows a number without a blank, which versions of PostgreSQL read differently.
fn adjoins(one: &Token<'_>, two: &Token<'_>, dialect: Dialect) -> bool {
    dialect == Dialect::Postgres
        && matches!(one.kind, Kind::Number | Kind::Dollar)
        && two.kind == Kind::Word
        && one.end() == two.start
}

/// Whether every statement of the text begins with a verb that is known. Those of a routine are not run now.
fn every_part_begins(words: &[Token<'_>]) -> bool {
    let mut parts = words.split(|token| token.kind == Kind::Semicolon).filter(|part| !part.is_empty());
    let mut rest = parts.clone().skip(1);
    let Some(first) = parts.next() else { return false };
    let is_routine = first.first().is_some_and(|token| token.is("CREATE"))
        && first.iter().any(|token| ROUTINES.iter().any(|routine| token.is(routine)));
    starts_known(first) && (is_routine || rest.all(starts_known))
}

fn starts_known(part: &[Token<'_>]) -> bool {
    let depth = part.iter().take_while(|token| token.text == "(").count();
    let inner = part.get(depth..).unwrap_or_default();
    let Some(first) = inner.first() else { return false };
    if !first.is("WITH") {
        return is_verb(first, inner.get(1)) || is_first_verb(&[], first);
    }
    let mut depth = 0_usize;
    inner.iter().any(|token| {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && MAIN_VERBS.iter().any(|verb| token.is(verb))
    })
}

/// Whether a statement can begin after these. The first verb of a text counts wherever it is.
fn begins(before: &[Token<'_>]) -> bool {
    let Some(last) = before.last() else { return true };
    // `EXPLAIN ANALYZE FORMAT=TREE DELETE …`
    let is_option = matches!(before, [.., name, equals, _] if name.is("FORMAT") && equals.text == "=");
    is_option || matches!(last.text, "(" | ")" | ";") || OPENERS.iter().any(|word| last.is(word))
}

fn is_first_verb(before: &[Token<'_>], token: &Token<'_>) -> bool {
    before.last().is_none_or(|last| last.kind == Kind::Semicolon)
        && FIRST_VERBS.iter().any(|verb| token.is(verb))
}

/// The kind of what an ALTER renames, or takes away for good. A default and `NOT NULL` hold no data.
fn alteration(token: &Token<'_>, next: Option<&Token<'_>>) -> Option<&'static str> {
    if token.is("RENAME") {
        return Some("rename");
    }
    // `ALTER IGNORE TABLE … ADD UNIQUE` deletes the rows that another one equals.
    if token.is("IGNORE") {
        return Some("delete");
    }
    let is_property = next.is_some_and(|next| next.is("DEFAULT") || next.is("NOT"));
    if (token.is("DROP") && !is_property) || token.is("DISCARD") {
        return Some("drop");
    }
    token.is("TRUNCATE").then_some("truncate")
}

/// Whether a definition deletes what had its name: `CREATE OR REPLACE TABLE` of MariaDB is `DROP` and `CREATE`. A view
/// has no rows of its own.
fn takes_the_place(words: &[Token<'_>], place: usize) -> bool {
    let replaces = matches!(words.get(place..place + 3), Some([create, or, replace])
        if create.is("CREATE") && or.is("OR") && replace.is("REPLACE"));
    replaces && plain_object(words, place).is_some_and(|object| object != "VIEW")
}

/// The kind that a clause adds to its statement.
fn clause(before: &[Token<'_>], token: &Token<'_>, dialect: Dialect) -> Option<&'static str> {
    let word = |back: usize, word: &str| {
        before.len().checked_sub(back).and_then(|place| before.get(place)).is_some_and(|token| token.is(word))
    };
    if token.is("UPDATE") && (word(1, "DO") || (word(1, "KEY") && !word(2, "NO"))) {
        return Some("update");
    }
    if token.is("REPLACE") && word(1, "OR") && (word(2, "INSERT") || word(2, "UPDATE")) {
        return Some("replace");
    }
    // SQLite has none of what follows, and takes these words for names.
    if dialect == Dialect::Sqlite {
        return None;
    }
    let locks = ["UPDATE", "SHARE", "NO", "KEY"].iter().any(|lock| token.is(lock)) && word(1, "FOR");
    if locks || (token.is("SHARE") && word(1, "IN") && word(2, "LOCK")) {
        return Some("lock");
    }
    // `NEXT VALUE FOR sequence` of MariaDB.
    if token.is("VALUE") && word(1, "NEXT") {
        return Some(CALL);
    }
    // `SELECT @a := 1`; in PostgreSQL it names an argument of a function.
    let assigns = token.text == ":=" && before.last().is_some_and(|last| last.kind == Kind::Variable);
    assigns.then_some("set")
}

/// Looks for an `INTO` that belongs to a query.
#[derive(Default)]
struct Selection {
    has_query: bool,
    /// The `INTO` of an insertion may follow.
    is_insertion: bool,
    /// The statement is an insertion, so `VALUES` are its rows.
    inserts: bool,
}

impl Selection {
    /// Takes the next token of a text; `is_start` says that a statement begins with it.
    fn creates(&mut self, token: &Token<'_>, is_start: bool) -> bool {
        let is_into = is_into(token);
        let creates = is_into && self.has_query && !self.is_insertion;
        if token.kind == Kind::Semicolon {
            *self = Self::default();
        } else if is_start {
            // Elsewhere these words are names: `SELECT 1 insert INTO t` is not an insertion.
            self.is_insertion = INSERTIONS.iter().any(|verb| token.is(verb));
            self.inserts = self.is_insertion;
        } else {
            self.is_insertion &= MODIFIERS.iter().any(|word| token.is(word));
        }
        self.has_query |= token.is("SELECT") || (is_start && QUERIES.iter().any(|verb| token.is(verb)));
        creates
    }
}

/// Some databases let a word follow a number or a parameter without a blank: `SELECT 1INTO t`.
fn is_into(token: &Token<'_>) -> bool {
    let ends_so = || token.text.to_ascii_uppercase().ends_with("INTO");
    token.is("INTO") || (matches!(token.kind, Kind::Number | Kind::Dollar) && ends_so())
}

/// `replace(…)` is a function as well, and `ON CONFLICT (…) DO UPDATE` a clause.
fn is_verb(token: &Token<'_>, next: Option<&Token<'_>>) -> bool {
    let function = token.is("REPLACE") && next.is_some_and(|next| next.text == "(");
    let clause = token.is("DO") && next.is_some_and(|next| next.is("UPDATE") || next.is("NOTHING"));
    !function && !clause && VERBS.iter().any(|verb| token.is(verb))
}
