//! `tgp relay`: prove parts against the contracts, ours or other implementations.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use console::Style;
use serde_json::json;
use tgp::contract::{Code, ToolError};
use tgp_relay::{
    Externals, Kit, KitOptions, Listed, Origin, PartKind, RelayReport, RelayServeOptions, Row, SuiteOutcome,
    serve,
};

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, single_line};

#[derive(Debug, Args)]
pub struct RelayArgs {
    #[command(subcommand)]
    command: RelayCommand,
}

#[derive(Debug, Subcommand)]
enum RelayCommand {
    /// Run the suites for every combination of parts, and print the matrix.
    Run(RunArgs),
    /// List the cases.
    List,
    /// Serve one of our parts over the protocol, on standard input and output.
    Serve(ServeArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// A program that plays the model.
    #[arg(long, value_name = "CMD")]
    llm: Option<String>,
    /// A program that has the tools.
    #[arg(long, value_name = "CMD")]
    tools: Option<String>,
    /// A program that keeps the chronicle.
    #[arg(long, value_name = "CMD")]
    chronicle: Option<String>,
    /// A program that is the code graph.
    #[arg(long, value_name = "CMD")]
    graph: Option<String>,
    /// Only these suites or cases: t1, t3.veto, fixtures. Repeatable.
    #[arg(long, value_name = "SUITE")]
    suite: Vec<String>,
    /// Seconds that one case may take.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

#[derive(Debug, Args)]
struct ServeArgs {
    #[arg(value_enum)]
    part: Part,
    /// Serve the fake instead of the real part.
    #[arg(long)]
    fake: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    Llm,
    Tools,
    Chronicle,
    Graph,
}

impl From<Part> for PartKind {
    fn from(part: Part) -> Self {
        match part {
            Part::Llm => Self::Llm,
            Part::Tools => Self::Tools,
            Part::Chronicle => Self::Chronicle,
            Part::Graph => Self::Graph,
        }
    }
}

pub async fn run(arguments: RelayArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    // Programs from outside are started where the command is.
    let directory = session::working_directory(global)?;
    std::env::set_current_dir(&directory).map_err(|error| {
        ToolError::new(Code::Config, format!("`{}` cannot be entered: {error}", directory.display()))
    })?;
    match arguments.command {
        RelayCommand::Run(arguments) => run_kit(arguments, printer).await,
        RelayCommand::List => {
            list(printer);
            Ok(())
        }
        RelayCommand::Serve(arguments) => {
            let origin = if arguments.fake { Origin::Fake } else { Origin::Real };
            let options = RelayServeOptions { part: arguments.part.into(), origin, tgp: this_program()? };
            Ok(serve(&options, tokio::io::stdin(), tokio::io::stdout()).await?)
        }
    }
}

fn this_program() -> Result<PathBuf, ToolError> {
    std::env::current_exe().map_err(|error| {
        ToolError::new(Code::Internal, format!("the path of tgp itself is not known: {error}"))
            .help("start tgp by its full path")
    })
}

async fn run_kit(arguments: RunArgs, printer: &Printer) -> Result<(), Failure> {
    let RunArgs { llm, tools, chronicle, graph, suite, timeout } = arguments;
    let kit = Kit::new(KitOptions {
        externals: Externals { llm, tools, chronicle, graph },
        suites: suite,
        timeout: Duration::from_secs(timeout),
        ..KitOptions::new(this_program()?)
    })?;
    let total = kit.rows();
    let mut ended = 0;
    let report = kit
        .run(|row| {
            ended += 1;
            if !printer.json() {
                printer.note(&progress(ended, total, row, printer));
            }
        })
        .await;
    if printer.json() {
        printer.document(&done(json!({
            "green": report.is_green(),
            "passed": report.count(SuiteOutcome::Passed),
            "failed": report.count(SuiteOutcome::Failed),
            "skipped": report.count(SuiteOutcome::Skipped),
            "rows": report.rows,
        })));
    } else {
        show(&report, printer);
    }
    if report.is_green() { Ok(()) } else { Err(Failure::Silent(Code::Runtime)) }
}

fn progress(ended: usize, total: usize, row: &Row, printer: &Printer) -> String {
    let mark = match row.result {
        SuiteOutcome::Passed => printer.paint_err(&Style::new().green(), "✓"),
        SuiteOutcome::Failed => printer.paint_err(&Style::new().red(), "✗"),
        SuiteOutcome::Skipped => printer.paint_err(&Style::new().yellow(), "-"),
    };
    let width = total.to_string().len();
    format!("{ended:>width$}/{total} {mark} {} ({})", row.case, parts(row))
}

fn parts(row: &Row) -> String {
    let named = [("real", &row.real), ("fake", &row.fake), ("external", &row.external)];
    let shown = named.iter().filter(|(_, parts)| !parts.is_empty());
    shown.map(|(word, parts)| format!("{word} {}", parts.join(" "))).collect::<Vec<_>>().join(", ")
}

fn show(report: &RelayReport, printer: &Printer) {
    let columns = ["suite", "case", "under test", "real", "fake", "external", "result"].map(str::to_owned);
    let row = |row: &Row| {
        let list = |parts: &[String]| if parts.is_empty() { "-".to_owned() } else { parts.join(" ") };
        let case = row.case.split_once('.').map_or(row.case.as_str(), |(_, case)| case);
        vec![
            row.suite.clone(),
            case.to_owned(),
            list(&row.under_test),
            list(&row.real),
            list(&row.fake),
            single_line(&list(&row.external)),
            row.result.as_str().to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = report.rows.iter().map(row).collect();
    printer.table(&columns, &rows);
    for row in &report.rows {
        let Some(fault) = &row.fault else { continue };
        let word = row.result.as_str();
        printer.line(&format!("\n{} with {} {word}:", row.case, parts(row)));
        for line in fault.to_string().lines() {
            printer.line(&format!("  {}", single_line(line)));
        }
    }
    let mut facts = vec![format!("{} passed", report.count(SuiteOutcome::Passed))];
    facts.push(format!("{} failed", report.count(SuiteOutcome::Failed)));
    if report.count(SuiteOutcome::Skipped) > 0 {
        facts.push(format!("{} skipped", report.count(SuiteOutcome::Skipped)));
    }
    printer.note(&format!("{}: {}", count(report.rows.len(), "row"), facts.join(", ")));
}

fn list(printer: &Printer) {
    let cases = Kit::list();
    if printer.json() {
        printer.document(&done(json!({ "cases": cases })));
        return;
    }
    let columns = ["case", "under test", "says that"].map(str::to_owned);
    let row = |case: &Listed| vec![case.case.to_owned(), case.under_test.join(" "), case.title.to_owned()];
    let rows: Vec<Vec<String>> = cases.iter().map(row).collect();
    printer.table(&columns, &rows);
}
