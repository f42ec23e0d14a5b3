//! Which statements PostgreSQL is given.
//!
//! The list names what is allowed, so that an unforeseen statement is refused. What a function or a role may do on the
//! server is decided there: give the kernel its own role.

use tgp_contract::ToolError;

use crate::failure::esql;
use crate::text::Script;

const ALLOWED: [&str; 27] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "CREATE",
    "ALTER", "DROP", "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "ANALYZE", "CALL", "DO", "REFRESH", "REINDEX",
    "CLUSTER", "LOCK", "NOTIFY", "SET", "SECURITY",
];

const TRANSACTIONS: [&str; 10] =
    ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "PREPARE", "CHECKPOINT"];

pub(crate) fn check(script: &Script<'_>) -> Result<(), ToolError> {
    let (verb, second) = (script.verb(), script.second());
    if verb == "SET" && second != "LOCAL" {
        return Err(
            esql("SET changes the connection, which others use after this transaction").help("use SET LOCAL")
        );
    }
    if verb == "SET" && script.has_word("transaction") {
        return Err(transactions(&verb));
    }
    if ALLOWED.contains(&verb.as_str()) {
        return Ok(());
    }
    if TRANSACTIONS.contains(&verb.as_str()) {
        return Err(transactions(&verb));
    }
    if verb == "COPY" {
        return Err(esql("COPY is not allowed")
            .help("use INSERT and SELECT; files go through read_file and write_file"));
    }
    Err(esql(format!("a statement that begins with `{}` is not known or not allowed", shown(script)))
        .help("queries, changes, definitions (CREATE, ALTER, DROP), EXPLAIN and SET LOCAL are"))
}

fn transactions(verb: &str) -> ToolError {
    esql(format!("{verb} is not allowed: transactions are opened and closed by the kernel"))
        .help("return to commit, throw to roll back")
}

fn shown(script: &Script<'_>) -> String {
    const LONGEST: usize = 32;
    script.tokens.first().map(|token| token.text.chars().take(LONGEST).collect()).unwrap_or_default()
}
