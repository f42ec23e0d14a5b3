//! The numbers TGP promises, measured against the peers a user would pick instead. See `bench/README.md`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement is for the person who runs it")]

mod agent;
mod callers;
mod check;
mod cold;
mod exec;
mod gates;
mod graph;
mod hydrate;
mod machine;
mod memory;
mod node;
mod peers;
mod persist;
mod project;
mod report;
mod reuse;
mod samples;
mod sql;
mod standard;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

use report::{Report, Section};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", about = "The numbers TGP promises, against peers, on this machine")]
struct Arguments {
    /// What to measure; everything when nothing is named.
    #[arg(value_enum)]
    sections: Vec<Measurement>,
    /// Print one JSON document on standard output.
    #[arg(long)]
    json: bool,
    /// Fail when a budget is missed.
    #[arg(long)]
    strict: bool,
    /// Runs of each contender in `exec` and `check`; the number the budgets are held on is 300 or more.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u16).range(10..))]
    runs: u16,
    /// Processes of each contender in `cold`; the number the budgets are held on is 30 or more.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(5..))]
    processes: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// exec_tool on a warm pool against a new isolate of isolated-vm
    Exec,
    /// runs per second through the socket, with 1, 4 and 16 callers
    Callers,
    /// tgp exec as a process against node and deno run
    Cold,
    /// check_tool on 100 lines
    Check,
    /// an idle kernel with two warm workers
    Memory,
    /// gates and audit around a call, and the jail around a command
    Gates,
    /// an agent's session: the first streamed byte, and memory over a thousand calls
    Agent,
    /// write_file with its commit against git add and git commit
    Persist,
    /// a kernel that starts from a remote of 1,000 tools against git clone
    Hydrate,
    /// exec_sql against the driver alone
    Sql,
    /// @tgp/std in a worker against papaparse in Node
    Std,
    /// the code graph on a real package: ingest, a one-file commit, queries
    Graph,
    /// search by meaning on a labelled set, with 100 and with 10,000 tools
    Reuse,
}

/// Each round makes and removes thousands of files.
const HYDRATE_ROUNDS: usize = 7;

fn main() -> ExitCode {
    // The kernel whose memory is measured starts this binary again as its workers, as `tgp` does.
    if let Some(code) = tgp::worker_main() {
        return code;
    }
    if let Some(code) = memory::held_kernel_main() {
        return code;
    }
    match bench(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &Arguments) -> Result<ExitCode> {
    // The shipped binary makes a single call on one thread as well.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let wanted =
        |measurement: &Measurement| arguments.sections.is_empty() || arguments.sections.contains(measurement);
    let mut report = Report::new(machine::describe());
    for measurement in Measurement::value_variants().iter().filter(|measurement| wanted(measurement)) {
        let name =
            measurement.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        eprintln!("bench: measuring {name}");
        let mut section = Section::new(&name);
        let (runs, processes) = (usize::from(arguments.runs), usize::from(arguments.processes));
        match measurement {
            Measurement::Exec => runtime.block_on(exec::measure(&mut section, runs)),
            Measurement::Callers => callers::measure(&mut section, runs),
            Measurement::Cold => cold::measure(&mut section, processes),
            Measurement::Check => runtime.block_on(check::measure(&mut section, runs, processes)),
            Measurement::Memory => memory::measure(&mut section),
            Measurement::Gates => runtime.block_on(gates::measure(&mut section, runs, processes)),
            Measurement::Agent => agent::measure(&mut section, processes),
            Measurement::Persist => runtime.block_on(persist::measure(&mut section, processes)),
            Measurement::Hydrate => runtime.block_on(hydrate::measure(&mut section, HYDRATE_ROUNDS)),
            Measurement::Sql => runtime.block_on(sql::measure(&mut section, runs)),
            Measurement::Std => runtime.block_on(standard::measure(&mut section, runs)),
            Measurement::Graph => runtime.block_on(graph::measure(&mut section)),
            Measurement::Reuse => runtime.block_on(reuse::measure(&mut section, reuse::cache())),
        }
        .with_context(|| format!("`{name}` could not be measured"))?;
        report.sections.push(section);
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    let fails = arguments.strict && report.misses();
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
