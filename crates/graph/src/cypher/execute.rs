//! Runs a compiled query: binds what it needs, keeps to the caps, and lets nothing happen but reading.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, ErrorCode};
use tgp_contract::{Code, GraphQuery, ToolError};

use super::compile::{Bind, Program, explained};
use super::error::{self, CypherError, Phase};
use super::output::Output;
use super::value::{MAX_DEPTH, Value, from_json};
use super::{QueryLimits, Table, View};

/// How many steps of SQLite's machine pass between two checks of the clock. One step may be a call of a function
/// that makes a list of a million items.
const STEPS: i32 = 200;

/// Prepared statements that a connection keeps: some of a store's own, and the questions that come again and again.
const STATEMENTS: usize = 64;

/// The largest value, and the longest statement, that SQLite makes.
const MAX_VALUE: i32 = 64 << 20;

/// How many bytes of texts, lists and maps the functions of one query may make: they may wait on disk to be sorted.
const MAX_MADE: usize = 2 << 30;

/// From this size on, making a value takes long enough to check the clock.
const LARGE: usize = 64 << 10;

/// What a function says that has met the end of the time.
const LATE: &str = "the query took too long";

/// The detail of an error that has the time which a query had.
const LIMIT_MS: &str = "limitMs";

/// The tables that a query may read; `json_each` gives the items of lists.
const TABLES: [&str; 5] = ["node", "edge", "label", "position", "json_each"];

thread_local! {
    /// When the query that runs on this thread must be done; nothing while none runs.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Whether what is prepared on this thread is a user's query.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Bytes that the functions may still make for the query that runs on this thread.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Counts what a function made, and checks the clock.
///
/// # Errors
/// When it was too much, or takes too long.
pub(super) fn made(value: Sql) -> rusqlite::Result<Sql> {
    let bytes = match &value {
        Sql::Text(text) => text.len(),
        Sql::Blob(bytes) => bytes.len(),
        _ => return Ok(value),
    };
    let Some(left) = LEFT.get().checked_sub(bytes) else {
        return Err(error::met(
            "LimitExceeded",
            format!("the query made values of more than {MAX_MADE} bytes"),
        ));
    };
    LEFT.set(left);
    if bytes > LARGE {
        late()?;
    }
    Ok(value)
}

/// Checks the clock, in a function that takes long without making a value.
///
/// # Errors
/// When the time of the query is over.
pub(super) fn late() -> rusqlite::Result<()> {
    if is_late() { Err(error::met("LimitExceeded", LATE)) } else { Ok(()) }
}

fn is_late() -> bool {
    DEADLINE.get().is_some_and(|deadline| Instant::now() >= deadline)
}

/// Sets what [`run`] needs, and resets it however the run ends.
struct Guard;

impl Guard {
    fn set(time: Duration) -> Self {
        DEADLINE.set(Instant::now().checked_add(time));
        GUARDED.set(true);
        LEFT.set(MAX_MADE);
        Self
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        DEADLINE.set(None);
        GUARDED.set(false);
        LEFT.set(usize::MAX);
        super::functions::forget();
    }
}

/// Installs the clock and the authorizer. Both act on this thread only while a query runs on it, so the connection can
/// be used for everything else as before.
pub(super) fn guard(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.progress_handler(STEPS, Some(is_late))?;
    connection.authorizer(Some(|context: AuthContext<'_>| {
        if !GUARDED.get() || allowed(&context.action) { Authorization::Allow } else { Authorization::Deny }
    }))
}

fn allowed(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => *function_name != "load_extension",
        // An empty name of a column is a table of which only the number of rows is asked.
        AuthAction::Read { table_name, .. } => TABLES.contains(table_name) || is_ours(table_name),
        _ => false,
    }
}

/// Whether a name is that of a table of the statement itself.
fn is_ours(name: &str) -> bool {
    let digits = name.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    name.is_empty()
        || (digits.len() < name.len()
            && !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An error of SQLite that is not a refusal of a query.
pub(super) fn broken(error: &rusqlite::Error) -> ToolError {
    ToolError::new(Code::Sql, format!("the graph's database failed: {error}"))
}

/// Runs a query.
pub(super) fn run(
    connection: &Connection,
    program: &Program,
    question: &GraphQuery,
    view: &View<'_>,
    limits: &QueryLimits,
) -> Result<Table, ToolError> {
    if let Some(steps) = &program.explained {
        let rows = explained(steps);
        return Ok(Table { columns: program.columns.clone(), rows, truncated: false });
    }
    let values = bound(program, question, view)?;
    // A query may ask for less time than it has, and not for more.
    let limits = &QueryLimits {
        time: program.time.map_or(limits.time, |time| time.min(limits.time)),
        ..limits.clone()
    };
    let _guard = Guard::set(limits.time);
    let failed = |error: rusqlite::Error| failure(&error, &question.query, program, limits);
    let mut statement = connection.prepare_cached(&program.sql).map_err(failed)?;
    for (at, value) in values.iter().enumerate().take(statement.parameter_count()) {
        statement.raw_bind_parameter(at + 1, value).map_err(failed)?;
    }
    let mut output = Output::new(connection, view.at, limits).map_err(failed)?;
    let mut table = Table { columns: program.columns.clone(), ..Table::default() };
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        if table.rows.len() >= limits.rows {
            table.truncated = true;
            break;
        }
        let mut values = Vec::with_capacity(table.columns.len());
        for at in 0..table.columns.len() {
            values.push(
                output
                    .json(Value::read(row.get_ref(at).map_err(failed)?).map_err(failed)?)
                    .map_err(failed)?,
            );
        }
        if output.is_full() {
            table.truncated = true;
            break;
        }
        table.rows.push(values);
    }
    Ok(table)
}

/// The values for the places of the SQL.
fn bound(program: &Program, question: &GraphQuery, view: &View<'_>) -> Result<Vec<Value>, ToolError> {
    let mut values = Vec::with_capacity(program.binds.len());
    for (at, bind) in program.binds.iter().enumerate() {
        let value = bound_one(bind, question, view).map_err(|error| {
            match program.places.get(at).copied().flatten() {
                Some(span) if error.place_of().is_none() => {
                    error.place(&error::place(&question.query, span.start))
                }
                _ => error,
            }
        })?;
        values.push(value);
    }
    Ok(values)
}

fn bound_one(bind: &Bind, question: &GraphQuery, view: &View<'_>) -> Result<Value, ToolError> {
    match bind {
        Bind::Moment => Ok(Value::Int(view.at)),
        Bind::Value(value) => Ok(value.clone()),
        Bind::Parameter(name) => {
            let value = parameter(question, name)?;
            if depth(value) > usize::from(MAX_DEPTH) {
                let message = format!("parameter `{name}` is more than {MAX_DEPTH} lists or maps deep");
                return Err(ToolError::new(Code::Budget, message).help("pass it in parts"));
            }
            within(value, name)?;
            Ok(from_json(value))
        }
        Bind::Count { clause, name } => {
            let value = parameter(question, name)?;
            if value.is_number() {
                within(value, name)?;
            }
            match count(value) {
                Value::Int(number) if number >= 0 => Ok(Value::Int(number)),
                Value::Int(number) => Err(unfit(
                    "NegativeIntegerArgument",
                    format!("{clause} needs an integer that is not negative, parameter `{name}` is {number}"),
                )),
                other => Err(unfit(
                    "InvalidArgumentType",
                    format!("{clause} needs an integer, parameter `{name}` is {}", other.noun()),
                )
                .help(format!("pass a number: {{\"{name}\": 10}}"))),
            }
        }
        Bind::Hidden(moment) => match (bound_one(moment, question, view)?, view.hidden) {
            (Value::Int(moment), Some(hidden)) => Ok(Value::Text(hidden(moment)?.as_ref().to_owned())),
            // A statement that leaves something out is never run without what it leaves out.
            _ => Err(ToolError::new(Code::Internal, "what the query may not see is not known")),
        },
        Bind::Revision(name) => (view.moments)(name).map(Value::Int),
        Bind::RevisionParameter(name) => match parameter(question, name)? {
            serde_json::Value::String(revision) => (view.moments)(revision).map(Value::Int),
            _ => Err(unfit("InvalidArgumentType", format!("parameter `{name}` is the name of a revision"))
                .help("pass a string")),
        },
    }
}

/// What SKIP or LIMIT are given. What is inside lists and maps does not matter: they are refused.
fn count(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Array(_) => Value::List(Vec::new()),
        serde_json::Value::Object(_) => Value::Map(Vec::new()),
        plain => from_json(plain),
    }
}

/// A parameter that the query cannot use.
fn unfit(kind: &str, message: String) -> ToolError {
    ToolError::new(Code::Validation, message).detail("kind", kind).detail("phase", "run")
}

fn parameter<'a>(question: &'a GraphQuery, name: &str) -> Result<&'a serde_json::Value, ToolError> {
    question.params.get(name).ok_or_else(|| {
        unfit("MissingParameter", format!("the query needs the parameter `{name}`"))
            .help(format!("pass it: {{\"{name}\": ...}}"))
    })
}

/// From here on a float is not an integer of 64 bits.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// Refuses a number that is, or may have been, an integer beyond 64 bits. What JSON has without a fraction and is too
/// large for an integer was made a float when it was parsed, and is another number now.
fn within(value: &serde_json::Value, name: &str) -> Result<(), ToolError> {
    let Some(path) = beyond(value) else { return Ok(()) };
    Err(unfit("IntegerOverflow", format!("the number of `params.{name}{path}` is beyond 64 bits"))
        .help("pass it as a string; a float of this size is written in the query: 1e300"))
}

/// The path of such a number.
fn beyond(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::Number(number) if number.as_i64().is_none() => {
            number.as_f64().is_none_or(|float| float.abs() >= BEYOND).then(String::new)
        }
        serde_json::Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| beyond(item).map(|path| format!("[{at}]{path}")))
        }
        serde_json::Value::Object(entries) => {
            entries.iter().find_map(|(key, item)| beyond(item).map(|path| format!(".{key}{path}")))
        }
        _ => None,
    }
}

/// How deep a parameter is. What comes over a wire was parsed with its own cap, so this may recurse.
fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// What a failed statement means.
fn failure(error: &rusqlite::Error, query: &str, program: &Program, limits: &QueryLimits) -> ToolError {
    let told = |refusal: CypherError| {
        if refusal.message == LATE { too_slow(query, limits) } else { refusal.into_error(query, Phase::Run) }
    };
    if let rusqlite::Error::UserFunctionError(inner) = error
        && let Some(refusal) = error::read(&inner.to_string(), query, &program.sites)
    {
        return told(refusal);
    }
    let rusqlite::Error::SqliteFailure(code, message) = error else {
        // A statement that SQLite cannot take: the query asks for more than one statement can hold.
        if let rusqlite::Error::SqlInputError { msg, .. } = error {
            return too_complex(msg, query);
        }
        return broken(error);
    };
    if let Some(refusal) = message.as_deref().and_then(|message| error::read(message, query, &program.sites))
    {
        return told(refusal);
    }
    match code.code {
        ErrorCode::OperationInterrupted => too_slow(query, limits),
        ErrorCode::TooBig | ErrorCode::OutOfMemory => {
            CypherError::too_much("a value of the query is too large", "collect less, or use LIMIT")
                .into_error(query, Phase::Run)
        }
        _ => match message {
            Some(message) if is_complex(message) => too_complex(message, query),
            _ => broken(error),
        },
    }
}

/// The time of the query is over.
fn too_slow(query: &str, limits: &QueryLimits) -> ToolError {
    let message = format!("the query took more than {} milliseconds", limits.time.as_millis());
    CypherError::too_much(message, "anchor it: name a label and a path, or give paths an upper length")
        .into_error(query, Phase::Run)
        .detail(LIMIT_MS, u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX))
}

/// Whether SQLite says that a statement is more than it takes.
fn is_complex(message: &str) -> bool {
    ["too large", "too many", "at most", "too deep", "parser stack overflow"]
        .iter()
        .any(|words| message.contains(words))
}

fn too_complex(message: &str, query: &str) -> ToolError {
    if is_complex(message) {
        return CypherError::too_much(
            "the query is more than one statement can hold",
            "split it, or use fewer clauses",
        )
        .into_error(query, Phase::Compile)
        .detail("sqlite", message);
    }
    ToolError::new(Code::Sql, format!("the query was compiled to SQL that is not valid: {message}"))
        .help("this is a fault of the compiler; please report the query")
}
