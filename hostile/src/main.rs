//! `cargo xtask hostile`: all attacks, or those that are named.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to the person who runs it")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use tgp_hostile::entry::Entry;
use tgp_hostile::report::Family;
use tgp_hostile::suite::{Selection, Suite};
use tgp_hostile::{binary, families, load, sandbox};

/// Runs the attacks of `hostile/cases` against the built `tgp`.
#[derive(Debug, Parser)]
struct Arguments {
    /// Families to run; without one all of them.
    families: Vec<String>,
    /// Another folder of families than hostile/cases.
    #[arg(long, value_name = "FOLDER")]
    cases: Option<PathBuf>,
    /// Only the case of this name.
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Only through this entry point: cli, socket, session, tool, aql or persona.
    #[arg(long, value_name = "ENTRY", value_parser = entry)]
    entry: Option<Entry>,
    /// Only the part that the test command runs.
    #[arg(long)]
    bounded: bool,
    /// Print what came of every step.
    #[arg(long, short)]
    verbose: bool,
}

fn entry(name: &str) -> Result<Entry, String> {
    Entry::named(name).ok_or_else(|| {
        let names: Vec<&str> = Entry::ALL.into_iter().map(Entry::name).collect();
        format!("the entry points are {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hostile: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything held.
fn run(arguments: Arguments) -> Result<bool> {
    let cases = load::all(&arguments.cases.unwrap_or_else(load::folder))?;
    for gap in families::gaps(&cases) {
        println!("gap: {gap}");
    }
    for family in &arguments.families {
        if family != load::SANDBOX && !cases.iter().any(|case| case.family == *family) {
            bail!("there is no family `{family}`; families are the folders of hostile/cases");
        }
    }
    let wants_sandbox =
        arguments.families.is_empty() || arguments.families.iter().any(|name| name == load::SANDBOX);
    let selection = Selection {
        families: arguments.families,
        case: arguments.case,
        entry: arguments.entry,
        bounded: arguments.bounded,
    };
    let suite = Suite::new(binary::find()?)?;
    let verbose = arguments.verbose;
    let tell = |family: &Family| {
        println!("{}", family.line());
        family.outcomes.iter().filter(|_| verbose).for_each(|outcome| println!("  {outcome}"));
    };
    let mut summary = suite.run(&cases, &selection, tell)?;
    if wants_sandbox && selection.entry.is_none_or(|entry| entry == Entry::Cli) {
        let family = sandbox::run(&suite, &selection)?;
        println!("{}", family.line());
        summary.families.push(family);
    }
    println!("{}", summary.text());
    Ok(summary.failures().next().is_none())
}
