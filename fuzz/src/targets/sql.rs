//! SQL as each of the three databases reads it.

use std::cell::OnceCell;
use std::sync::Arc;

use tgp_contract::{Database, SqlClass, UNKNOWN_KIND};
use tgp_sql::{DatabaseUrl, SqlOptions, connect, statement_kinds, token_spans};
use tokio::runtime::{Builder, Runtime};

use super::sqlite::Copy;
use super::{ensure, same, sql_reference, text};
use crate::Target;
use crate::mutate::sentence;

pub(super) const SQLITE: Target = Target {
    name: "sql-sqlite",
    about: "tokens are the text, strings and comments are where a second reader finds them, and a statement that is said to read changes nothing when SQLite runs it",
    oracle: |input| check(input, "sqlite"),
    dictionary: WORDS,
    generate: Some(|random| sentence(random, GRAMMAR, "statement", DEPTH).into_bytes()),
    iterations: 10_000,
};

pub(super) const POSTGRESQL: Target = Target {
    name: "sql-postgresql",
    about: "tokens are the text, strings and comments are where a second reader finds them, literals and comments do not matter, and a statement that is said to read has no verb that writes",
    oracle: |input| check(input, "postgresql"),
    dictionary: WORDS,
    generate: Some(|random| sentence(random, GRAMMAR, "statement", DEPTH).into_bytes()),
    iterations: 6_000,
};

pub(super) const MYSQL: Target = Target {
    name: "sql-mysql",
    about: "tokens are the text, strings and comments are where a second reader finds them, literals and comments do not matter, and a statement that is said to read has no verb that writes",
    oracle: |input| check(input, "mysql"),
    dictionary: WORDS,
    generate: Some(|random| sentence(random, GRAMMAR, "statement", DEPTH).into_bytes()),
    iterations: 6_000,
};

const WORDS: &[&str] = &[
    "SELECT ",
    "select * from t",
    "INSERT INTO t VALUES (1)",
    "UPDATE t SET a = 1",
    "DELETE FROM t",
    "DROP TABLE t",
    "CREATE TABLE u (a)",
    "WITH a AS (SELECT 1) ",
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) ",
    "RETURNING *",
    "INTO ",
    "REPLACE ",
    "REPLACE(",
    "EXPLAIN ",
    "ANALYZE ",
    "PRAGMA user_version = 5",
    "PRAGMA table_info(t)",
    "ATTACH 'x' AS y",
    "VACUUM ",
    "VALUES (1)",
    "TABLE t",
    "SHOW ",
    "SET ",
    "CALL f()",
    "DO $$ begin end $$",
    "COPY t FROM '/etc/passwd'",
    "FOR UPDATE",
    "LOCK IN SHARE MODE",
    "ON CONFLICT DO UPDATE SET a = 1",
    "ON DUPLICATE KEY UPDATE a = 1",
    "UNION ",
    "FROM t",
    "WHERE a = ?",
    "$1",
    ":name",
    "@v",
    "@@global.x",
    "@v := 1",
    "?1",
    "'",
    "\"",
    "`",
    "[",
    "]",
    "''",
    "\\'",
    "E'",
    "e'\\''",
    "$$",
    "$tag$",
    "U&'",
    "N'",
    "x'00'",
    "--",
    "-- ",
    "#",
    "/*",
    "*/",
    "/*!",
    "/*M!",
    "/*! DROP TABLE t */",
    ";",
    "(",
    ")",
    ",",
    ".",
    "count(*)",
    "nextval('s')",
    "load_extension('x')",
    "writefile('x', 'y')",
    "pg_sleep(1)",
    "sleep(1)",
    "1e5",
    "1E",
    "0x1F",
    "1_000",
    "::text",
    ":=",
    "\r",
    "\n",
    "\u{feff}",
    "\u{a0}",
    "\u{200b}",
    "\u{c}",
    "\u{b}",
    "\0",
    "é",
    "NULL",
    "AS ",
    "BEGIN",
    "COMMIT",
    "CREATE TRIGGER g BEGIN SELECT 1; END",
];

/// How deep a generated statement nests.
const DEPTH: u32 = 6;

/// Statements that hide what they do behind comments, quotes and other statements.
const GRAMMAR: &[(&str, &[&str])] = &[
    (
        "statement",
        &[
            "SELECT 1",
            "<query>",
            "<query>",
            "<write>",
            "WITH <names> <query>",
            "WITH <names> <write>",
            "EXPLAIN <statement>",
            "EXPLAIN ANALYZE <statement>",
            "(<query>)",
            "<statement>; <statement>",
            "<gap><statement><gap>",
            "PRAGMA <pragma>",
            "CREATE VIEW w AS <query>",
        ],
    ),
    (
        "query",
        &[
            "SELECT a FROM t",
            "SELECT<gap><value>",
            "SELECT <value>, <value> FROM <source> WHERE <value> = <value>",
            "VALUES (<value>)",
            "TABLE t",
            "<query> UNION ALL <query>",
            "SELECT * FROM (<query>)",
            "SELECT <value> INTO u",
            "SELECT * FROM <source> FOR UPDATE",
            "SELECT a AS delete FROM t",
        ],
    ),
    (
        "write",
        &[
            "DELETE FROM t",
            "INSERT INTO t <query>",
            "INSERT INTO t VALUES (<value>)",
            "UPDATE t SET b = <value> RETURNING a",
            "REPLACE INTO t VALUES (9, 'z')",
            "DROP TABLE t",
            "CREATE TABLE z AS <query>",
            "ALTER TABLE t RENAME TO z",
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 2",
            "CREATE TEMP TABLE z (a)",
            "DELETE FROM t WHERE a IN (<query>)",
            "VACUUM",
            "REINDEX",
            "ANALYZE",
        ],
    ),
    (
        "names",
        &[
            "x AS (SELECT 1)",
            "x AS (<query>)",
            "x AS (<write> RETURNING *)",
            "RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x LIMIT 5)",
            "x AS NOT MATERIALIZED (<query>)",
        ],
    ),
    (
        "source",
        &[
            "t",
            "u",
            "v",
            "x",
            "(<query>) AS q",
            "pragma_table_info('t')",
            "sqlite_schema",
            "json_each('[1,2]')",
            "pragma_user_version",
            "t JOIN u USING (a)",
        ],
    ),
    (
        "value",
        &[
            "1",
            "a",
            "'x'",
            "'it''s'",
            "'; DROP TABLE t; --'",
            "\"b\"",
            "`b`",
            "[b]",
            "?",
            ":p",
            "$1",
            "E'\\''",
            "$q$ ; $q$",
            "x'00'",
            "(<query>)",
            "count(*)",
            "replace('a', 'b', 'c')",
            "coalesce(<value>, <value>)",
            "last_insert_rowid()",
            "random()",
            "load_extension('x')",
            "nextval('s')",
            "<value> || <value>",
            "<value><gap>",
            "CASE WHEN 1 THEN <value> END",
            "EXISTS (<query>)",
            "@v := 1",
            "zeroblob(10)",
            "CAST(<value> AS text)",
        ],
    ),
    (
        "pragma",
        &[
            "user_version",
            "user_version = 5",
            "table_info(t)",
            "foreign_keys = ON",
            "journal_mode = WAL",
            "query_only",
            "optimize",
            "schema_version = 9",
            "integrity_check",
            "wal_checkpoint",
            "temp_store = 2",
            "data_version",
            "recursive_triggers(1)",
            "application_id=7",
            "incremental_vacuum",
            "case_sensitive_like = 1",
            "main.user_version(3)",
        ],
    ),
    (
        "gap",
        &[
            " ",
            "/**/",
            "-- c\n",
            "/* ; DROP TABLE t */",
            "/* /* */ */",
            "#c\n",
            "\n",
            "\t",
            "--\r",
            "/*! 1 */",
            "\u{feff}",
            "\u{c}",
        ],
    ),
];

/// Verbs that write in every database, and begin a statement wherever one can begin.
const WRITING: [&str; 13] = [
    "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "CALL",
    "COPY", "LOAD",
];

/// What the oracles of one thread work with.
struct World {
    runtime: Runtime,
    copy: Copy,
    sqlite: Arc<dyn Database>,
    postgresql: Arc<dyn Database>,
    mysql: Arc<dyn Database>,
}

thread_local! {
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

impl World {
    fn new() -> Result<Self, String> {
        let shown = |error: &dyn std::fmt::Display| error.to_string();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| shown(&error))?;
        let copy = Copy::new()?;
        // Nothing is connected before the first transaction, and there is none.
        let open =
            |url: DatabaseUrl| runtime.block_on(connect(SqlOptions::new(url))).map_err(|error| shown(&error));
        let parse = |text| DatabaseUrl::parse(text).map_err(|error| shown(&error));
        let sqlite = open(DatabaseUrl::sqlite(copy.file()))?;
        let postgresql = open(parse("postgres://user@localhost/db")?)?;
        let mysql = open(parse("mysql://user@localhost/db")?)?;
        Ok(Self { runtime, copy, sqlite, postgresql, mysql })
    }

    fn inspect(&self, sql: &str, dialect: &str) -> Result<SqlClass, String> {
        let database = match dialect {
            "sqlite" => &self.sqlite,
            "mysql" => &self.mysql,
            _ => &self.postgresql,
        };
        self.runtime.block_on(database.inspect(sql)).ok_or_else(|| "the database says nothing".to_owned())
    }
}

fn check(input: &[u8], dialect: &str) -> Result<(), String> {
    let sql = text(input);
    let tokens = tokens(&sql, dialect)?;
    // What is ambiguous is refused, so its reading does not matter.
    if !tokens.iter().any(|(_, kind)| kind == "Ambiguous") {
        let is_quoted =
            |kind: &str| matches!(kind, "Text" | "Name" | "Comment" | "HiddenCode" | "Unterminated");
        let found: Vec<_> =
            tokens.iter().filter(|(_, kind)| is_quoted(kind)).map(|(span, _)| span.clone()).collect();
        same("strings and comments are elsewhere", &found, &sql_reference::quoted(&sql, dialect))?;
    }
    WORLD.with(|world| {
        if world.get().is_none() {
            let _ = world.set(World::new()?);
        }
        let Some(world) = world.get() else { return Err("there is no database".to_owned()) };
        let class = world.inspect(&sql, dialect)?;
        ensure!(!class.kinds.is_empty(), "a statement of no kind");
        if dialect == "sqlite" {
            return world.copy.compare(&sql, &class);
        }
        let all = statement_kinds(&sql);
        // What a name behind a dot is, a server says; there is none here, so it may be a call.
        let may_call = dialect == "postgresql" && sql.contains('.');
        ensure!(
            class.kinds.iter().all(|kind| all.contains(kind) || may_call && kind == "call"),
            "{:?} are not all in {all:?}",
            class.kinds
        );
        if class.reads {
            reads(&sql, &tokens)?;
        }
        without_literals(world, &sql, dialect, &tokens, &class)?;
        // Whatever is before it, a statement on its own line is seen.
        let more = world.inspect(&format!("{sql}\n;DROP TABLE t"), dialect)?;
        let seen = more.kinds.iter().any(|kind| kind == "drop" || kind == UNKNOWN_KIND);
        ensure!(seen && !more.reads, "a DROP after it is not seen: {more:?}");
        Ok(())
    })
}

type Tokens = Vec<(std::ops::Range<usize>, String)>;

/// The tokens, which are the whole text without some blanks.
fn tokens(sql: &str, dialect: &str) -> Result<Tokens, String> {
    let tokens = token_spans(sql, dialect);
    let is_blank = |letter: char| {
        matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}') || (dialect == "sqlite" && letter == '\u{feff}')
    };
    let mut end = 0;
    for (span, _) in &tokens {
        ensure!(
            span.start < span.end && sql.get(span.clone()).is_some(),
            "the token {span:?} is not in the text"
        );
        let gap =
            sql.get(end..span.start).ok_or_else(|| format!("the token {span:?} overlaps the one before"))?;
        ensure!(gap.chars().all(is_blank), "{gap:?} is in no token");
        end = span.end;
    }
    let rest = sql.get(end..).unwrap_or_default();
    ensure!(rest.chars().all(is_blank), "{rest:?} is in no token");
    Ok(tokens)
}

/// No verb that writes is where a statement can begin.
fn reads(sql: &str, tokens: &Tokens) -> Result<(), String> {
    let mut before = ";";
    for (span, kind) in tokens.iter().filter(|(_, kind)| kind != "Comment") {
        let word = sql.get(span.clone()).unwrap_or_default();
        let writes = kind == "Word" && WRITING.iter().any(|verb| verb.eq_ignore_ascii_case(word));
        ensure!(!(writes && matches!(before, ";" | "(")), "a statement with `{word}` is said to read");
        before = word;
    }
    Ok(())
}

/// What is in literals and comments does not matter: with other ones the statement has the same class.
fn without_literals(
    world: &World,
    sql: &str,
    dialect: &str,
    tokens: &Tokens,
    class: &SqlClass,
) -> Result<(), String> {
    let opaque = |kind: &str| matches!(kind, "Unterminated" | "HiddenCode" | "Ambiguous");
    if tokens.iter().any(|(_, kind)| opaque(kind)) {
        return Ok(());
    }
    let (mut plain, mut end) = (String::new(), 0);
    for (span, kind) in tokens {
        plain.push_str(sql.get(end..span.start).unwrap_or_default());
        let token = sql.get(span.clone()).unwrap_or_default();
        match (kind.as_str(), token.chars().next()) {
            ("Comment", _) => plain.push(' '),
            ("Text", Some('e' | 'E')) => plain.push_str("E'x'"),
            ("Text", Some('"')) => plain.push_str("\"x\""),
            ("Text", _) => plain.push_str("'x'"),
            _ => plain.push_str(token),
        }
        end = span.end;
    }
    let other = world.inspect(&plain, dialect)?;
    same(&format!("with other literals ({plain:?}) it is another statement"), &other, class)
}
