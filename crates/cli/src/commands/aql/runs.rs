//! `tgp aql runs`: what was run, and what can be resumed.

use clap::Args;
use serde_json::{Value, json};
use tgp::aql::{RunInfo, RunState};

use crate::arguments::Global;
use crate::commands::{done, shown_time};
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::single_line;

#[derive(Debug, Args)]
pub struct RunsArgs {
    /// How many, the newest first.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(super) async fn run(arguments: &RunsArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let runs = session::runs(global).await?.list(usize::from(arguments.limit))?;
    if printer.json() {
        let runs: Vec<Value> = runs.iter().map(as_json).collect();
        printer.document(&done(json!({ "runs": runs })));
        return Ok(());
    }
    if runs.is_empty() {
        printer.note("there is no run yet; `tgp aql run FILE` begins one");
        return Ok(());
    }
    let columns = ["run", "query", "file", "began", "state"].map(str::to_owned);
    let row = |run: &RunInfo| {
        let state = match &run.state {
            RunState::Failed(error) => format!("failed: {}", error.code),
            other => word(other).to_owned(),
        };
        let shown = |text: &str| single_line(text);
        vec![run.id.clone(), shown(&run.query), shown(&run.path), shown_time(run.created_ms), state]
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    printer.table(&columns, &rows);
    Ok(())
}

fn word(state: &RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Killed => "killed",
        RunState::Done => "done",
        RunState::Stopped => "stopped",
        RunState::Failed(_) => "failed",
    }
}

fn as_json(run: &RunInfo) -> Value {
    let mut value = json!({
        "id": run.id,
        "query": run.query,
        "file": run.path,
        "createdMs": run.created_ms,
        "state": word(&run.state),
    });
    if let (RunState::Failed(error), Some(fields)) = (&run.state, value.as_object_mut()) {
        fields.insert("error".to_owned(), json!(error));
    }
    value
}
