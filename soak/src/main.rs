//! `cargo xtask soak`: the load, the kills, the full disk and the checks.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to the person who runs it")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tgp_soak::disk;
use tgp_soak::plan::Plan;
use tgp_soak::run::run;

/// Mixed load on the built `tgp` with random kills and a disk that fills up; then everything is verified.
#[derive(Debug, Parser)]
struct Arguments {
    /// How long the load goes on.
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// The same in seconds.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    seconds: Option<u64>,
    /// What all random choices follow from; another one each time without it.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Copy the projects to this folder when something does not agree.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Only try whether a small disk can be mounted here.
    #[arg(long, value_name = "FOLDER", hide = true)]
    probe_disk: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(folder) = arguments.probe_disk {
        return match disk::probe(&folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:#}");
                ExitCode::FAILURE
            }
        };
    }
    let length = Duration::from_secs(arguments.seconds.unwrap_or(arguments.minutes * 60));
    let plan = Plan::of(length, arguments.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)));
    match run(&plan, arguments.keep.as_deref(), |line| println!("soak: {line}")) {
        Ok(report) => {
            print!("{}", report.text(&plan));
            if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("soak: {error:#} (seed {})", plan.seed);
            ExitCode::FAILURE
        }
    }
}
