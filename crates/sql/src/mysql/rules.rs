//! Which statements MySQL and MariaDB are given.
//!
//! The list names what is allowed, so that an unforeseen statement is refused.

use tgp_contract::{SqlAccess, ToolError};

use crate::failure::{esql, read_only};
use crate::text::{Kind, Script};

/// What a statement means for the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Write,
    /// The server commits before and after it.
    Definition,
    /// A procedure, which may do anything, also end the transaction.
    Call,
}

const READS: [&str; 8] = ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN"];
const WRITES: [&str; 6] = ["INSERT", "UPDATE", "DELETE", "REPLACE", "DO", "SET"];
const DEFINITIONS: [&str; 8] =
    ["CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE", "ANALYZE"];
const TRANSACTIONS: [&str; 11] =
    ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "XA", "LOCK", "UNLOCK"];

pub(crate) fn check(script: &Script<'_>, access: SqlAccess) -> Result<Effect, ToolError> {
    let effect = effect(script)?;
    let file = script.has_pair("INTO", "OUTFILE") || script.has_pair("INTO", "DUMPFILE");
    if file || calls(script, "LOAD_FILE") {
        return Err(esql("files of the database server are not allowed").help("use read_file and write_file"));
    }
    match (effect, access) {
        (Effect::Read, _) | (_, SqlAccess::ReadWrite | SqlAccess::ReadFirst) => Ok(effect),
        // The server refuses writes to tables; the rest would slip through.
        (Effect::Write, SqlAccess::ReadOnly) if script.verb() != "SET" => Ok(effect),
        (_, SqlAccess::ReadOnly) => Err(read_only()),
    }
}

fn effect(script: &Script<'_>) -> Result<Effect, ToolError> {
    let (verb, second) = (script.verb(), script.second());
    let verb = verb.as_str();
    if verb == "SET" && !sets_variables_only(script) {
        return Err(
            esql("SET changes the connection or the transaction").help("only variables (@name) can be set")
        );
    }
    // EXPLAIN and DESCRIBE of a definition, and ANALYZE of a query, do not exist or do not commit.
    if verb == "ANALYZE" && !matches!(second.as_str(), "TABLE" | "LOCAL" | "NO_WRITE_TO_BINLOG") {
        return Ok(Effect::Write);
    }
    if matches!(verb, "CREATE" | "DROP") && second == "TEMPORARY" {
        return Ok(Effect::Write);
    }
    if verb == "WITH" && script.counts_changes() {
        return Ok(Effect::Write);
    }
    if READS.contains(&verb) {
        return Ok(Effect::Read);
    }
    if WRITES.contains(&verb) {
        return Ok(Effect::Write);
    }
    if DEFINITIONS.contains(&verb) {
        return Ok(Effect::Definition);
    }
    if verb == "CALL" {
        return Ok(Effect::Call);
    }
    if TRANSACTIONS.contains(&verb) {
        return Err(esql(format!("{verb} is not allowed: transactions are opened and closed by the kernel"))
            .help("return to commit, throw to roll back"));
    }
    if verb == "LOAD" {
        return Err(esql("LOAD is not allowed").help("use INSERT; files go through read_file and write_file"));
    }
    const LONGEST: usize = 32;
    let shown: String =
        script.tokens.first().map(|token| token.text.chars().take(LONGEST).collect()).unwrap_or_default();
    Err(esql(format!("a statement that begins with `{shown}` is not known or not allowed"))
        .help("queries, changes, CALL and definitions (CREATE, ALTER, DROP) are"))
}

/// True when the function is called; its name may be quoted.
fn calls(script: &Script<'_>, function: &str) -> bool {
    script.tokens.windows(2).any(|pair| match pair {
        [name, open] => open.text == "(" && name.text.trim_matches('`').eq_ignore_ascii_case(function),
        _ => false,
    })
}

/// `SET @a = 1, @b = 2`: every assignment is to a variable with one `@`.
fn sets_variables_only(script: &Script<'_>) -> bool {
    let (mut depth, mut expected) = (0_usize, true);
    for token in script.tokens.iter().skip(1) {
        if expected && (token.kind != Kind::Variable || token.text.starts_with("@@")) {
            return false;
        }
        expected = false;
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 0 => expected = true,
            _ => {}
        }
    }
    true
}
