//! The options of `tgp.exec_sql` and `tgp.query`.

use serde::Deserialize;
use serde_json::Value;
use tgp_contract::{Code, ToolError};

/// Rows of a batch when the tool does not say: some ten milliseconds of work for a tool, and small in its heap.
const BATCH_ROWS: usize = 500;

/// The most rows that a tool can ask for in one batch; the database's own caps may be lower.
const MAX_BATCH_ROWS: usize = 10_000;

/// What a tool wants of the rows of a statement.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RowOptions {
    /// At most this many rows; more are left out.
    #[serde(default)]
    max_rows: Option<usize>,
    /// Rows beyond the caps of the database are left out.
    #[serde(default)]
    allow_truncated: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryOptions {
    #[serde(default)]
    batch: Option<usize>,
}

fn read<T: Default + for<'a> Deserialize<'a>>(
    function: &str,
    known: &str,
    value: Option<Value>,
) -> Result<T, ToolError> {
    match value {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => serde_json::from_value(value).map_err(|error| {
            let message = format!("tgp.{function}: the options are not {known}: {error}");
            ToolError::new(Code::Validation, message)
        }),
    }
}

impl RowOptions {
    pub(super) fn read(value: Option<Value>) -> Result<Self, ToolError> {
        let options: Self = read("exec_sql", "{ maxRows?, allowTruncated? }", value)?;
        match options.max_rows {
            Some(0) => Err(ToolError::new(Code::Validation, "tgp.exec_sql: maxRows must be at least 1")),
            _ => Ok(options),
        }
    }

    /// The answer with as many rows as the tool wants, or an error when there are others that it does not know of.
    pub(super) fn apply(&self, mut answer: Value) -> Result<Value, ToolError> {
        let is_cut = answer.get("truncated").and_then(Value::as_bool).unwrap_or_default();
        let changed = answer.get("changed").and_then(Value::as_u64).unwrap_or_default();
        let Some(rows) = answer.get_mut("rows").and_then(Value::as_array_mut) else { return Ok(answer) };
        let found = rows.len();
        match self.max_rows {
            Some(most) if most <= found => {
                rows.truncate(most);
                if let Some(truncated) = answer.get_mut("truncated") {
                    *truncated = Value::Bool(is_cut || found > most);
                }
                Ok(answer)
            }
            _ if is_cut && !self.allow_truncated => Err(cut(found, self.max_rows, changed)),
            _ => Ok(answer),
        }
    }
}

fn cut(found: usize, wanted: Option<usize>, changed: u64) -> ToolError {
    let more = match wanted {
        Some(most) => {
            format!("maxRows asks for {most} rows, and the caps db.maxRows and db.maxBytes end at {found}")
        }
        None => format!(
            "the statement has more rows than the caps db.maxRows and db.maxBytes allow: {found} were read"
        ),
    };
    let done = if changed > 0 { " The rows that it changed stay changed in this run." } else { "" };
    let next = "read all of them with `for await (const row of tgp.query(sql, params))`, add a LIMIT, or pass \
                { maxRows: n } or { allowTruncated: true }";
    ToolError::new(Code::Sql, format!("{more}.{done} Next: {next}")).detail("rows", found)
}

/// How many rows a batch has.
pub(super) fn batch_size(value: Option<Value>) -> Result<usize, ToolError> {
    let options: QueryOptions = read("query", "{ batch? }", value)?;
    match options.batch.unwrap_or(BATCH_ROWS) {
        rows if (1..=MAX_BATCH_ROWS).contains(&rows) => Ok(rows),
        rows => Err(ToolError::new(
            Code::Validation,
            format!("tgp.query: a batch has 1 to {MAX_BATCH_ROWS} rows, not {rows}"),
        )),
    }
}

pub(super) fn cursor_number(value: Option<&Value>) -> Result<u64, ToolError> {
    value
        .and_then(Value::as_u64)
        .ok_or_else(|| ToolError::new(Code::Validation, "this query is closed, or was never opened"))
}

pub(super) fn no_database() -> ToolError {
    ToolError::new(Code::Sql, "no database is configured")
        .help("this kernel has no database; pass the rows as arguments")
}
