//! `tgp-fuzz`: runs the oracles on random inputs for some time, or on one file.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to the person who runs it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use tgp_contract::canonical::sha256_hex;
use tgp_fuzz::minimise::minimise;
use tgp_fuzz::mutate::Inputs;
use tgp_fuzz::run::{Runner, quiet_panics};
use tgp_fuzz::{KnownFailure, TARGETS, Target, folder};

/// Failures of one target after which it is left: they are mostly one.
const MOST_FAILURES: usize = 3;

/// Inputs that are run at a time.
const BATCH: usize = 64;

/// Runs the oracles on seeds and on random inputs.
#[derive(Debug, Parser)]
struct Arguments {
    /// Targets to run; without one all of them.
    targets: Vec<String>,
    /// Seconds for each target.
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// The number that the inputs are made from.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Runs this file instead of random inputs.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Writes each input to a file before it runs: for an oracle that ends the whole process, as one that exhausts the stack does.
    #[arg(long)]
    careful: bool,
    /// Prints the targets and what holds for them.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tgp-fuzz: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything held.
fn run(arguments: &Arguments) -> Result<bool> {
    let mut targets: Vec<&Target> = Vec::new();
    for name in &arguments.targets {
        targets.push(
            Target::named(name).with_context(|| format!("unknown target `{name}`; --list names them"))?,
        );
    }
    if arguments.list {
        TARGETS.iter().for_each(|target| println!("{:16}{}", target.name, target.about));
        return Ok(true);
    }
    quiet_panics();
    if let Some(file) = &arguments.input {
        let [target] = targets.as_slice() else { bail!("--input needs exactly one target") };
        return reproduce(target, file);
    }
    if targets.is_empty() {
        targets.extend(TARGETS);
    }
    let mut held = true;
    for target in targets {
        held &= fuzz(target, arguments)?;
    }
    Ok(held)
}

fn reproduce(target: &Target, file: &Path) -> Result<bool> {
    let input = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    match Runner::new(target.oracle).run(&input) {
        Ok(()) => println!("{}: {} holds", target.name, file.display()),
        Err(message) => {
            println!("{}: {} fails: {message}", target.name, file.display());
            return Ok(false);
        }
    }
    Ok(true)
}

fn fuzz(target: &Target, arguments: &Arguments) -> Result<bool> {
    let seeds = target.seeds().with_context(|| format!("the seeds of {} cannot be read", target.name))?;
    let mut runner = Runner::new(target.oracle);
    let (mut failures, mut known, mut count) = (0, 0, 0);
    for (name, input) in &seeds {
        if let Err(message) = runner.run(input) {
            println!("{}: the seed {name} fails: {message}", target.name);
            failures += 1;
        }
    }
    let running = failures_folder()?.join(format!("{}-running", target.name));
    let mut inputs = Inputs::new(target, &seeds, arguments.seed);
    let (begin, time) = (Instant::now(), Duration::from_secs(arguments.seconds));
    while begin.elapsed() < time && failures < MOST_FAILURES {
        let size = if arguments.careful { 1 } else { BATCH };
        let batch: Vec<Vec<u8>> = (0..size).map(|_| inputs.make()).collect();
        if let (true, Some(input)) = (arguments.careful, batch.first()) {
            fs::write(&running, input)?;
        }
        count += size;
        let mut rest = batch.as_slice();
        while let Err(failure) = runner.run_all(rest) {
            let input = rest.get(failure.index).cloned().unwrap_or_default();
            rest = rest.get(failure.index + 1..).unwrap_or_default();
            if KnownFailure::covers(target.name, &failure.message) {
                known += 1;
            } else {
                failures += 1;
                let (input, message) = minimise(&mut runner, input, failure.message);
                report(target, &input, &message)?;
            }
        }
    }
    fs::remove_file(&running).ok();
    let speed = count as f64 / begin.elapsed().as_secs_f64();
    let passed_over = if known > 0 { format!(", {known} known failures") } else { String::new() };
    println!(
        "{:16}{} seeds, {count} inputs, {speed:.0} a second, {failures} failures{passed_over}",
        target.name,
        seeds.len()
    );
    Ok(failures == 0)
}

/// Keeps a failing input, and says how to run it again.
fn report(target: &Target, input: &[u8], message: &str) -> Result<()> {
    let hash: String = sha256_hex(input).chars().take(12).collect();
    let file = failures_folder()?.join(format!("{}-{hash}", target.name));
    fs::write(&file, input)?;
    println!("{}: {message}\n  input: {:?}", target.name, String::from_utf8_lossy(input));
    println!("  reproduce: tgp-fuzz {} --input {}", target.name, file.display());
    Ok(())
}

fn failures_folder() -> Result<PathBuf> {
    let folder = folder().join("failures");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}
