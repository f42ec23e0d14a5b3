//! `tgp state`: the state of test-driven work.

use clap::{Args, Subcommand};
use console::Style;
use serde_json::{Value, json};
use tgp::contract::{Code, TddState, ToolError};
use tgp::gates::{Scope, ScopeStatus};

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

/// Scopes in addition to the project that `show` prints without being asked for one.
const MAX_SHOWN: usize = 20;

#[derive(Debug, Args)]
pub struct StateArgs {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Debug, Subcommand)]
enum StateCommand {
    /// Show the state of the project and of the tools under work.
    Show {
        /// Only this one: `project`, or a tool such as tools/math/fib.ts.
        scope: Option<String>,
    },
    /// Set `idle`, `done` (only while green), or `halted`: no tool runs.
    Set {
        /// The new state.
        state: String,
        /// `project`, or a tool such as tools/math/fib.ts.
        #[arg(default_value = "project")]
        scope: String,
    },
}

pub async fn run(arguments: StateArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let outcome = match arguments.command {
        StateCommand::Show { scope } => show(&kernel, scope.as_deref(), printer),
        StateCommand::Set { state, scope } => set(&kernel, &state, &scope, printer).await,
    };
    kernel.shutdown().await;
    outcome
}

fn scope(text: &str) -> Result<Scope, Failure> {
    Scope::parse(text).ok_or_else(|| {
        let message = format!("`{text}` is neither `project` nor a tool such as tools/math/fib.ts");
        ToolError::new(Code::Validation, message).help("`tgp state show` lists what is under work").into()
    })
}

fn show(kernel: &tgp::Kernel, wanted: Option<&str>, printer: &Printer) -> Result<(), Failure> {
    let gate = kernel.state();
    let scopes: Vec<Scope> = match wanted {
        Some(text) => vec![scope(text)?],
        None => {
            let known = gate.tdd().scopes()?.into_iter().map(|(scope, _)| scope);
            let tools = known.filter(|scope| *scope != Scope::Project).take(MAX_SHOWN);
            std::iter::once(Scope::Project).chain(tools).collect()
        }
    };
    let standings: Vec<ScopeStatus> =
        scopes.iter().map(|scope| gate.tdd().standing(scope, gate.disk())).collect::<Result<_, _>>()?;
    if printer.json() {
        let all: Vec<Value> =
            standings.iter().map(|standing| serde_json::to_value(standing).unwrap_or_default()).collect();
        printer.document(&done(json!({ "mode": gate.tdd().mode(), "scopes": all })));
        return Ok(());
    }
    printer.line(&format!("mode {}", gate.tdd().mode().as_str()));
    standings.iter().for_each(|standing| print(standing, printer));
    Ok(())
}

fn print(standing: &ScopeStatus, printer: &Printer) {
    let style = match standing.state {
        TddState::Green | TddState::Done => Style::new().green(),
        TddState::Red | TddState::Halted => Style::new().red(),
        _ => Style::new().yellow(),
    };
    let state = printer.paint_out(&style, standing.state.as_str());
    let stale = if standing.stale { " (stale: files have changed since its run)" } else { "" };
    printer.line(&format!("{}: {state}{stale}", visible(&standing.scope.to_string())));
    let may = [
        ("write new code", standing.code.create),
        ("change code", standing.code.modify),
        ("delete code", standing.code.delete),
    ];
    let mut allowed: Vec<&str> = may.iter().filter(|(_, allowed)| *allowed).map(|(what, _)| *what).collect();
    // New files with code that has passed its tests, see docs/tdd.md.
    if standing.state == TddState::Green && standing.scope == Scope::Project && standing.code.modify {
        allowed.push("move and split files");
    }
    let allowed = match (standing.state, allowed.as_slice()) {
        (TddState::Halted, _) => match &standing.scope {
            Scope::Project => "do nothing; `tgp state set idle` lifts it".to_owned(),
            Scope::Tool(path) => {
                format!("do nothing; `tgp state set idle {}` lifts it", visible(path.as_str()))
            }
        },
        (_, []) => "write tests and exempt files only".to_owned(),
        (_, allowed) => allowed.join(", "),
    };
    printer.line(&format!("  an agent may: {allowed}"));
    if standing.stale || standing.state == TddState::TestWritten {
        let command = match &standing.scope {
            Scope::Project => "tgp call test_run '{}' --yes".to_owned(),
            Scope::Tool(path) => format!("tgp test {}", visible(path.as_str())),
        };
        printer.line(&format!("  next: run the tests (`{command}`)"));
    }
    for test in &standing.failing_tests {
        printer.line(&format!("  fails: {}", visible(test.as_str())));
    }
    if let Some(run) = &standing.last_run {
        let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        printer.line(&format!(
            "  last run: {}, {} passed, {} failed: {}",
            run.outcome.as_str(),
            number(run.passed),
            number(run.failed),
            visible(&run.command)
        ));
    }
}

async fn set(kernel: &tgp::Kernel, state: &str, text: &str, printer: &Printer) -> Result<(), Failure> {
    let scope = scope(text)?;
    let wanted = TddState::parse(state).ok_or_else(|| {
        let known: Vec<&str> = TddState::ALL.iter().map(|state| state.as_str()).collect();
        ToolError::new(Code::Validation, format!("`{state}` is not a state"))
            .help(format!("the states are: {}", known.join(", ")))
    })?;
    let gate = kernel.state();
    let before = gate.tdd().state(&scope)?;
    if let Some(warning) = kernel.set_state(&scope, wanted).await? {
        printer.warn(&visible(&warning));
    }
    if printer.json() {
        printer.document(&done(json!({ "scope": scope, "before": before, "state": wanted })));
    } else {
        printer.note(&format!("{scope}: {} -> {}", before.as_str(), wanted.as_str()));
    }
    Ok(())
}
