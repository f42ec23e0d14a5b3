//! The numbers TGP promises, measured against the peers a user would pick instead. See `bench/README.md`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement is for the person who runs it")]

mod agent;
mod callers;
mod chart;
mod check;
mod cold;
mod counts;
mod exec;
mod gates;
mod graph;
mod graph_history;
mod growth;
mod hydrate;
mod machine;
mod mcp;
mod memory;
mod page;
mod peer_process;
mod peers;
mod persist;
mod project;
mod report;
mod reuse;
mod samples;
mod settings;
mod sql;
mod standard;
mod trades;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use tokio::runtime::Runtime;

use peers::Peers;
use report::{Report, Section};
use settings::{BenchSettings, Scale};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", about = "The numbers TGP promises, against peers, on this machine")]
struct Arguments {
    /// What to measure; everything when nothing is named.
    #[arg(value_enum)]
    sections: Vec<Measurement>,
    /// Print one JSON document on standard output.
    #[arg(long)]
    json: bool,
    /// Write a chart of every contender and of every growth into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Fail when a budget is missed.
    #[arg(long)]
    strict: bool,
    /// Run every section once with tiny sizes and the peers that are installed; fail when a section fails.
    #[arg(long, conflicts_with_all = ["strict", "long", "runs", "processes"])]
    smoke: bool,
    /// Measure the largest sizes of `growth` too.
    #[arg(long)]
    long: bool,
    /// Runs of each contender in `exec` and `check`; the number the budgets are held on is 300 or more.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u16).range(10..))]
    runs: u16,
    /// Processes of each contender in `cold`; the number the budgets are held on is 30 or more.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(5..))]
    processes: u16,
    /// Measure nothing; write `docs/benchmarks.md` and its chart from a report that `--json` printed.
    #[arg(long, value_name = "REPORT", exclusive = true)]
    docs: Option<PathBuf>,
}

impl Arguments {
    fn settings(&self) -> BenchSettings {
        if self.smoke {
            return BenchSettings { scale: Scale::Smoke, runs: 2, processes: 1, peers: Peers::FindInstalled };
        }
        BenchSettings {
            scale: if self.long { Scale::Long } else { Scale::Usual },
            runs: usize::from(self.runs),
            processes: usize::from(self.processes),
            peers: Peers::Install,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// exec_tool on a warm pool against a new isolate of isolated-vm
    Exec,
    /// runs per second through the socket, with 1, 4 and 16 callers
    Callers,
    /// tgp exec as a process against node and deno run
    Cold,
    /// what tgp mcp adds to a cold start and to a call
    Mcp,
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
    /// the code graph on projects with a history: the newest commit, each older one, a proposed change
    GraphHistory,
    /// search by meaning on a labelled set, with 100 and with 10,000 tools
    Reuse,
    /// time over the number of tools, of parallel sessions, and of audit entries
    Growth,
}

impl Measurement {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    fn measure(self, runtime: &Runtime, settings: &BenchSettings) -> Result<Section> {
        let mut section = Section::new(&self.name());
        let to = &mut section;
        match self {
            Self::Exec => runtime.block_on(exec::measure(to, settings)),
            Self::Callers => callers::measure(to, settings),
            Self::Cold => cold::measure(to, settings),
            Self::Mcp => runtime.block_on(mcp::measure(to, settings)),
            Self::Check => runtime.block_on(check::measure(to, settings)),
            Self::Memory => memory::measure(to, settings),
            Self::Gates => runtime.block_on(gates::measure(to, settings)),
            Self::Agent => agent::measure(to, settings),
            Self::Persist => runtime.block_on(persist::measure(to, settings)),
            Self::Hydrate => runtime.block_on(hydrate::measure(to, settings)),
            Self::Sql => runtime.block_on(sql::measure(to, settings)),
            Self::Std => runtime.block_on(standard::measure(to, settings)),
            Self::Graph => runtime.block_on(graph::measure(to, settings)),
            Self::GraphHistory => runtime.block_on(graph_history::measure(to, settings)),
            Self::Reuse => runtime.block_on(reuse::measure(to, settings)),
            Self::Growth => runtime.block_on(growth::measure(to, settings)),
        }
        .with_context(|| format!("`{}` could not be measured", self.name()))?;
        Ok(section)
    }
}

fn main() -> ExitCode {
    // The kernel whose memory is measured starts this binary again as its workers, as `tgp` does.
    let special = tgp::worker_main().or_else(memory::held_kernel_main).or_else(counts::main);
    if let Some(code) = special {
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
    if let Some(report) = &arguments.docs {
        page::write(report)?;
        return Ok(ExitCode::SUCCESS);
    }
    // The shipped binary makes a single call on one thread as well.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let settings = arguments.settings();
    let wanted =
        |measurement: &Measurement| arguments.sections.is_empty() || arguments.sections.contains(measurement);
    let mut report = Report::new(machine::describe());
    let mut failed = false;
    for measurement in Measurement::value_variants().iter().filter(|measurement| wanted(measurement)) {
        let name = measurement.name();
        if !settings.is_smoke() {
            eprintln!("bench: measuring {name}");
            report.sections.push(measurement.measure(&runtime, &settings)?);
            continue;
        }
        let started = Instant::now();
        let measured = measurement.measure(&runtime, &settings);
        let line = smoke_line(&name, started.elapsed().as_secs_f64(), &measured);
        if arguments.json {
            eprintln!("{line}")
        } else {
            println!("{line}")
        }
        failed |= measured.is_err();
        report.sections.extend(measured);
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else if !settings.is_smoke() {
        println!("{report}");
    }
    if let Some(file) = &arguments.svg {
        fs::write(file, chart::svg(&report)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    failed |= arguments.strict && report.misses();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One line for a section of a smoke test.
fn smoke_line(name: &str, seconds: f64, measured: &Result<Section>) -> String {
    match measured {
        Ok(section) => {
            let skipped = match section.skipped.len() {
                0 => String::new(),
                count => format!(", {count} skipped"),
            };
            format!("{name}: ok, {} rows{skipped}, {seconds:.1} s", section.rows.len())
        }
        Err(error) => format!("{name}: FAILED after {seconds:.1} s: {error:#}"),
    }
}
