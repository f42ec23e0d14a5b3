//! `tgp exec`.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::{done, parse_json};
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

#[derive(Debug, Args)]
pub struct ExecArgs {
    /// The tool, such as tools/math/fib.ts.
    path: String,
    /// Its arguments as JSON.
    #[arg(long, value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    args: String,
    /// Run it, show what it would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Say on standard error what the run cost.
    #[arg(long)]
    stats: bool,
}

pub async fn run(arguments: ExecArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let values = parse_json("--args", &arguments.args)?;
    let kernel = session::boot(global, Some(Arc::new(TerminalApprover)), printer).await?;
    let call = json!({ "path": arguments.path, "args": values });
    let data = session::call(&kernel, "exec_tool", call, session::typed(arguments.dry_run)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    printer.logs(data.get("logs"));
    for change in data.get("changes").and_then(Value::as_array).into_iter().flatten() {
        match text(change, "diff") {
            _ if change.get("removed").is_some() => {
                printer.note(&format!("removes {}", text(change, "path")));
            }
            diff if diff.is_empty() => printer.note(&format!("leaves {} as it is", text(change, "path"))),
            diff => printer.lines(visible(&diff).trim_end()),
        }
    }
    printer.value(data.get("result").unwrap_or(&Value::Null));
    if arguments.stats {
        let number =
            |name: &str| data.pointer(&format!("/stats/{name}")).and_then(Value::as_f64).unwrap_or_default();
        printer.note(&format!(
            "cpu {:.2} ms, wall {:.2} ms, heap {:.1} MB",
            number("cpu_ms"),
            number("wall_ms"),
            number("heap_peak_bytes") / f64::from(1 << 20),
        ));
    }
    Ok(())
}
