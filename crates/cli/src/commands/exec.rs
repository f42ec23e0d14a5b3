//! `tgp exec`.

use std::sync::Arc;

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::json;
use tgp::contract::LimitRequest;
use tgp::results::{ExecToolResult, RunStats};

use super::input::json_argument;
use super::{done, result_of};
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::candidates;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, single_line, visible};

#[derive(Debug, Args)]
pub struct ExecArgs {
    /// The tool, such as tools/math/fib.ts.
    #[arg(add = ArgValueCandidates::new(candidates::tools))]
    path: String,
    /// Its arguments: JSON, @FILE, or - for standard input.
    #[arg(value_name = "JSON", conflicts_with = "args")]
    values: Option<String>,
    /// The same as an option; without either: {}.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    args: Option<String>,
    /// Run it, show what it would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// CPU time in milliseconds, up to sandbox.ceiling.
    #[arg(long, value_name = "N")]
    cpu_ms: Option<u64>,
    /// Wall clock in milliseconds.
    #[arg(long, value_name = "N")]
    wall_ms: Option<u64>,
    /// Memory in megabytes.
    #[arg(long, value_name = "N")]
    memory_mb: Option<u64>,
    /// Say on standard error what the run cost.
    #[arg(long)]
    stats: bool,
}

pub async fn run(arguments: ExecArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let values = match (&arguments.values, &arguments.args) {
        (Some(json), _) => json_argument("the argument after the path", json, global).await?,
        (None, args) => json_argument("--args", args.as_deref().unwrap_or("{}"), global).await?,
    };
    let kernel = session::boot(global, Some(Arc::new(TerminalApprover { has_yes: false })), printer).await?;
    let ExecArgs { cpu_ms, wall_ms, memory_mb, .. } = arguments;
    let limits = LimitRequest { cpu_ms, wall_ms, memory_mb };
    let mut call = json!({ "path": arguments.path, "args": values });
    if let Some(fields) = call.as_object_mut().filter(|_| !limits.is_empty()) {
        fields.insert("limits".to_owned(), json!(limits));
    }
    let data = session::call(&kernel, "exec_tool", call, session::typed(arguments.dry_run)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let ran: ExecToolResult = result_of(data)?;
    printer.logs(&ran.logs);
    ran.warnings.iter().for_each(|warning| printer.warn(&visible(warning)));
    for change in ran.changes.into_iter().flatten() {
        let path = visible(change.path.as_str());
        match change.diff {
            _ if change.removed => printer.note(&format!("removes {path}")),
            Some(diff) if !diff.is_empty() => printer.lines(visible(&diff).trim_end()),
            _ => printer.note(&format!("leaves {path} as it is")),
        }
    }
    for statement in ran.sql.iter().flat_map(|sql| &sql.statements).filter(|statement| statement.changed > 0)
    {
        let rows = count(usize::try_from(statement.changed).unwrap_or(usize::MAX), "row");
        printer.note(&format!("{rows} changed, then undone: {}", single_line(&visible(&statement.sql))));
    }
    printer.value(&ran.result);
    if arguments.stats {
        let RunStats { cpu_ms, wall_ms, heap_peak_bytes, .. } = ran.stats;
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        let heap = heap_peak_bytes as f64 / f64::from(1 << 20);
        printer.note(&format!("cpu {cpu_ms:.2} ms, wall {wall_ms:.2} ms, heap {heap:.1} MB"));
    }
    Ok(())
}
