//! `tgp sql`.

use clap::Args;
use serde_json::{Value, json};
use tgp::contract::SourceLocation;
use tgp::results::SqlResult;

use super::{done, parse_json, result_of};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::count;

#[derive(Debug, Args)]
pub struct SqlArgs {
    /// One statement; pass values in --params.
    #[arg(allow_hyphen_values = true)]
    sql: String,
    /// A JSON list for ? or $1, or a JSON object for :name.
    #[arg(long, value_name = "JSON", default_value = "[]", allow_hyphen_values = true)]
    params: String,
    /// Run it, show what it gives, and undo it.
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(arguments: SqlArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let params = parse_json("--params", &arguments.params)?;
    let kernel = session::boot(global, None, printer).await?;
    let call = json!({ "sql": arguments.sql, "params": params });
    let answer = session::call(&kernel, "exec_sql", call, session::typed(arguments.dry_run)).await;
    let data = answer.map_err(|failure| placed(failure, &arguments.sql))?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let SqlResult { rows, columns, changed, truncated, .. } = result_of(data)?;
    if !columns.is_empty() {
        let cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| columns.iter().map(|name| cell(row.get(name).unwrap_or(&Value::Null))).collect())
            .collect();
        printer.table(&columns, &cells);
    }
    let mut said = Vec::new();
    if !columns.is_empty() {
        said.push(count(rows.len(), "row"));
    }
    if changed > 0 || columns.is_empty() {
        said.push(format!("{} changed", count(usize::try_from(changed).unwrap_or(usize::MAX), "row")));
    }
    if arguments.dry_run {
        said.push("all of it undone (dry run)".to_owned());
    }
    printer.note(&said.join(", "));
    if truncated {
        printer.warn(if rows.is_empty() {
            "the first row alone is larger than db.maxBytes; select less of it, or raise db.maxBytes"
        } else {
            "there are more rows; add LIMIT and OFFSET, or raise db.maxRows and db.maxBytes"
        });
    }
    Ok(())
}

/// Shows the place in the statement where the database names one.
fn placed(failure: Failure, sql: &str) -> Failure {
    let Failure::Error(mut shown) = failure else { return failure };
    let number = |name: &str| {
        let value = shown.error.details.get("position")?.get(name)?.as_u64()?;
        u32::try_from(value).ok()
    };
    if let (Some(line), Some(column)) = (number("line"), number("column")) {
        let place = SourceLocation { file: "statement".to_owned(), line, column };
        shown.error = shown.error.place(&place);
        shown.source = Some(sql.to_owned());
    }
    Failure::Error(shown)
}

/// A value in one line of a table.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.replace('\n', "\\n").replace('\t', "\\t"),
        other => other.to_string(),
    }
}
