//! `tgp graph`: ask the code, at any commit.

mod drawing;
mod progress;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};
use tgp::Kernel;
use tgp::contract::{Code, ToolError};
use tgp::results::{GraphIngestResult, GraphQueryResult};

use super::{done, parse_json, result_of, text_of};
use crate::arguments::Global;
use crate::exit::{Failure, ShownError};
use crate::printer::Printer;
use crate::session;
use crate::text::{count, single_line, visible};
use drawing::Drawing;

#[derive(Debug, Args)]
pub struct GraphArgs {
    #[command(subcommand)]
    command: GraphCommand,
}

#[derive(Debug, Subcommand)]
enum GraphCommand {
    /// Read a commit and its history into the graph.
    Ingest {
        /// Any revision, or WORKTREE for the files as they are.
        #[arg(long, value_name = "REV", default_value = "HEAD")]
        commit: String,
    },
    /// Ask in Cypher, read-only.
    Query {
        /// Such as "MATCH (f:File) RETURN f.path".
        #[arg(allow_hyphen_values = true)]
        cypher: String,
        /// Any revision, or WORKTREE for the files; else the head.
        #[arg(long, value_name = "REV")]
        commit: Option<String>,
        /// Values for $names in the query.
        #[arg(long, value_name = "JSON", default_value = "{}")]
        params: String,
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Count what the graph knows.
    Stats {
        /// Any revision; else the head.
        #[arg(long, value_name = "REV")]
        commit: Option<String>,
    },
    /// Write all nodes and relationships of a commit.
    Export {
        /// Any revision; else the head.
        #[arg(long, value_name = "REV")]
        commit: Option<String>,
        #[arg(long, value_enum, default_value_t = Format::Json)]
        format: Format,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Table,
    Dot,
    Mermaid,
}

pub async fn run(arguments: GraphArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let outcome = match arguments.command {
        GraphCommand::Ingest { commit } => ingest(&kernel, &commit, printer).await,
        GraphCommand::Query { cypher, commit, params, format } => {
            query(&kernel, &cypher, commit, &params, format, printer).await
        }
        GraphCommand::Stats { commit } => stats(&kernel, commit, printer).await,
        GraphCommand::Export { commit, format } => export(&kernel, commit, format, printer).await,
    };
    kernel.shutdown().await;
    outcome
}

async fn ingest(kernel: &Kernel, commit: &str, printer: &Printer) -> Result<(), Failure> {
    let arguments = json!({ "commit": commit });
    let work = session::call(kernel, "graph_ingest", arguments, session::typed(false));
    let data = progress::shown(kernel, printer, work).await?;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let ingested: GraphIngestResult = result_of(data)?;
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let short: String = visible(&ingested.commit).chars().take(12).collect();
    let on = if short.is_empty() { String::new() } else { format!(" at {short}") };
    printer.line(&format!(
        "{}{on}: {} new, {} parsed",
        count(number(ingested.files), "file"),
        count(number(ingested.commits), "commit"),
        count(number(ingested.parsed.unwrap_or_default()), "blob")
    ));
    if ingested.broken > 0 {
        printer.warn(&format!(
            "{} with syntax that the parser does not know; the rest of them is in the graph",
            count(number(ingested.broken), "file")
        ));
    }
    Ok(())
}

async fn query(
    kernel: &Kernel,
    cypher: &str,
    commit: Option<String>,
    params: &str,
    format: Format,
    printer: &Printer,
) -> Result<(), Failure> {
    if cypher.trim().is_empty() {
        let error = ToolError::new(Code::Validation, "there is no query");
        return Err(error.help("write one, such as \"MATCH (f:File) RETURN f.path\"").into());
    }
    let params = parse_json("--params", params)?;
    if !params.is_object() {
        let error = ToolError::new(Code::Validation, "--params is not JSON object");
        return Err(error.detail("field", "--params").help("write it as '{\"path\": \"src/a.ts\"}'").into());
    }
    let mut arguments = json!({ "query": cypher, "params": params });
    let named = commit.is_some();
    if let (Some(commit), Some(fields)) = (commit, arguments.as_object_mut()) {
        fields.insert("commit".to_owned(), json!(commit));
    }
    let work = session::call(kernel, "graph_query", arguments, session::typed(false));
    let answer = progress::shown(kernel, printer, work).await;
    let data = answer.map_err(|failure| shown_in(failure, cypher))?;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let answer: GraphQueryResult = result_of(data)?;
    let (columns, rows) = (&answer.columns, &answer.results);
    match format {
        Format::Json => printer.value(&json!(rows)),
        Format::Table => {
            let cells: Vec<Vec<String>> = rows
                .iter()
                .map(|row| columns.iter().map(|name| cell(row.get(name).unwrap_or(&Value::Null))).collect())
                .collect();
            printer.table(columns, &cells);
        }
        Format::Dot | Format::Mermaid => draw(&Drawing::of_rows(rows), format, printer),
    }
    show_commit(&answer, named, printer);
    if let Some(unread) = &answer.unread {
        let read = read_so_far(unread.read, unread.total, &unread.oldest);
        if unread.running {
            printer.note(&format!("an ingest is running; {read}"));
        } else if !answer.draft {
            printer.note(&format!("{read}; `tgp graph ingest` reads the rest"));
        }
    }
    Ok(())
}

/// Which commits can be asked about.
fn read_so_far(read: u64, total: u64, oldest: &str) -> String {
    let short: String = visible(oldest).chars().take(12).collect();
    match total {
        0 if short.is_empty() => "no commit can be asked about yet".to_owned(),
        0 => format!("commits since {short} can be asked about"),
        total => format!("{read} of {total} commits can be asked about, back to {short}"),
    }
}

/// Shows the place in the query.
fn shown_in(failure: Failure, cypher: &str) -> Failure {
    let Failure::Error(shown) = failure else { return failure };
    let source = shown.error.place_of().map(|_| cypher.to_owned());
    Failure::Error(Box::new(ShownError { source, ..*shown }))
}

/// Which commit the answer is about. Who has named one knows that others may be newer.
fn show_commit(answer: &GraphQueryResult, named: bool, printer: &Printer) {
    let short: String = visible(&answer.commit).chars().take(12).collect();
    let reference = visible(&answer.reference);
    let at = match (answer.draft, short.is_empty()) {
        (true, true) => "in the files as they are".to_owned(),
        (true, false) => format!("in the files as they are, on {short}"),
        (false, _) if reference.is_empty() || short.starts_with(&reference) => format!("at {short}"),
        (false, _) => format!("at {reference} ({short})"),
    };
    printer.note(&format!("{} {at}", count(answer.results.len(), "row")));
    if answer.truncated {
        printer.warn("there are more rows; add LIMIT and SKIP, or raise graph.maxRows");
    }
    if answer.behind && !named {
        printer.warn("the repository has moved on since; `tgp graph ingest` reads what is new");
    }
}

fn draw(drawing: &Drawing, format: Format, printer: &Printer) {
    printer.data(&if format == Format::Dot { drawing.dot() } else { drawing.mermaid() });
    if drawing.is_empty() {
        printer.warn("no row holds a node; RETURN nodes, relationships or paths to draw them");
    }
}

async fn stats(kernel: &Kernel, commit: Option<String>, printer: &Printer) -> Result<(), Failure> {
    let stats = kernel.knowledge().graph_stats(commit.as_deref()).await?;
    let stats = serde_json::to_value(stats).unwrap_or_default();
    if printer.json() {
        printer.document(&done(stats));
        return Ok(());
    }
    let rows = |name: &str| -> Vec<Vec<String>> {
        let counts = stats.get(name).and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
        counts.into_iter().map(|(name, number)| vec![name, number.to_string()]).collect()
    };
    let heads = |first: &str| vec![first.to_owned(), "count".to_owned()];
    printer.table(&heads("node"), &rows("nodes"));
    printer.data("\n");
    printer.table(&heads("relationship"), &rows("relationships"));
    let number = |name: &str| stats.get(name).and_then(Value::as_u64).unwrap_or_default();
    said_stats(&stats, number("commits"), number("bytes"), printer);
    if let Some(unread) = kernel.knowledge().unread_history().await? {
        let so_far = read_so_far(unread.read, unread.total, &unread.oldest);
        printer.note(&if unread.running {
            format!("an ingest is running; {so_far}")
        } else {
            format!("{so_far}; `tgp graph ingest` reads the rest")
        });
    }
    Ok(())
}

fn said_stats(stats: &Value, commits: u64, bytes: u64, printer: &Printer) {
    let short: String = text_of(stats, "commit").chars().take(12).collect();
    let commits = usize::try_from(commits).unwrap_or(usize::MAX);
    let at = if short.is_empty() { "no commit yet".to_owned() } else { format!("at {short}") };
    printer.note(&format!("{at}; {} ingested, {} KB on disk", count(commits, "commit"), bytes / 1024));
    if stats.get("cut").and_then(Value::as_bool).unwrap_or_default() {
        printer.warn("older commits were left out; graph.history says how many are read");
    }
    if stats.get("behind").and_then(Value::as_bool).unwrap_or_default() {
        printer.warn("the repository has moved on since; `tgp graph ingest` reads what is new");
    }
}

async fn export(
    kernel: &Kernel,
    commit: Option<String>,
    format: Format,
    printer: &Printer,
) -> Result<(), Failure> {
    let export = kernel.knowledge().graph_export(commit.as_deref()).await?;
    let export = serde_json::to_value(export).unwrap_or_default();
    let list = |name: &str| export.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let flat = || [list("nodes"), list("relationships")].concat().iter().map(flat).collect::<Vec<_>>();
    match format {
        _ if printer.json() => printer.document(&done(export)),
        Format::Json => printer.value(&export),
        Format::Table => {
            let cells: Vec<Vec<String>> = flat().iter().map(|row| vec![kind(row), cell(row)]).collect();
            printer.table(&["kind".to_owned(), "what".to_owned()], &cells);
        }
        Format::Dot | Format::Mermaid => {
            draw(&Drawing::of(&flat()), format, printer);
        }
    }
    Ok(())
}

/// A node or relationship of an export as a query gives it.
fn flat(value: &Value) -> Value {
    let mut fields = value.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, given) in
        [("id", "_id"), ("labels", "_labels"), ("type", "_type"), ("from", "_from"), ("to", "_to")]
    {
        if let Some(found) = value.get(name) {
            fields.insert(given.to_owned(), found.clone());
        }
    }
    Value::Object(fields)
}

fn kind(value: &Value) -> String {
    let labels = value.get("_labels").and_then(Value::as_array);
    let labels: Option<Vec<&str>> = labels.map(|labels| labels.iter().filter_map(Value::as_str).collect());
    labels.map_or_else(|| text_of(value, "_type"), |labels| labels.join(":"))
}

/// A value in one line of a table.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.replace('\n', "\\n").replace('\t', "\\t"),
        Value::Object(fields) if fields.contains_key("_labels") => {
            let shown = single_line(&drawing::title(value));
            format!("(:{} {shown})", kind(value))
        }
        Value::Object(fields) if fields.contains_key("_type") => format!("[:{}]", kind(value)),
        Value::Array(items) => {
            let cells: Vec<String> = items.iter().map(cell).collect();
            format!("[{}]", cells.join(", "))
        }
        other => other.to_string(),
    }
}
