//! Commands for contributors. `cargo xtask test` is the one command that checks and tests everything.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who runs it")]

mod databases;
mod deny;
mod dist;
mod dist_check;
mod fixtures;
mod fuzz;
mod git_servers;
mod graph_server;
mod lints;
mod messages;
mod ratchet;
mod run;
mod runners;
mod sdk;
mod setup;
mod sources;
mod test_output;
mod test_times;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::setup::Need;

const HELP: &str = "\
cargo xtask test    tidy, dependencies, formatting, lints, every test, a smoke test of the measurements, and the
                    ratchet; runs setup as root or with CI=true
cargo xtask setup [PACKAGE...]
                    installs the Debian packages that tests need; without root it prints the command
cargo xtask tidy    the rules of the workspace: layers, architecture page, docs, file sizes, messages, licences
cargo xtask messages [--json] [PATH]
                    every message that a user can read, with its code and help, in files whose path contains PATH
cargo xtask with-databases COMMAND...
                    a command with PostgreSQL, MariaDB, ArcadeDB and two git servers started for it, as the
                    tests have them
cargo xtask hostile [FAMILY...] [--case NAME] [--entry ENTRY]
                    every attack of hostile/cases against the built binary (see hostile/README.md)
cargo xtask soak [--minutes N] [--seed S]
                    mixed load with kills and a full disk, then every check (see soak/README.md)
cargo xtask fuzz [TARGET] [--minutes N]
                    one fuzz target or all, each for N minutes (1); guided by coverage where cargo-fuzz and a nightly
                    toolchain are installed
cargo xtask sdk [node] [python]
                    the tests of the clients in sdk/, on the built program; installs what they need from npm and PyPI
cargo xtask bench   the measurements against peers (see bench/README.md)
cargo xtask dist [--target TARGET] [--binary FILE] [--output DIR]
                    the packages of a release in dist/: an archive, npm packages, a wheel, install.sh, checksums;
                    of a program that is there already with --binary; npm installs the compiler of @tgp/core once
cargo xtask dist-check [DIR]
                    installs each of them into an empty root without Rust, and runs `tgp demo` and the clients there;
                    needs root and Debian's busybox-static, npm and python3
cargo xtask ratchet [--update --reason TEXT]
                    compares system calls and instructions of a call with bench/ratchet.toml, or records them";

/// The longest that the smoke test of the measurements may take; it usually takes a minute.
const SMOKE_PATIENCE: Duration = Duration::from_secs(600);

fn main() -> ExitCode {
    match chore() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore() -> Result<()> {
    let root = root()?;
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("test") => test(&root),
        Some("setup") => setup::command(&arguments.collect::<Vec<_>>()),
        Some("fuzz") => fuzz::command(&root, &arguments.collect::<Vec<_>>()),
        Some("tidy") => tidy::check(&root),
        Some("messages") => messages::command(&root, &arguments.collect::<Vec<_>>()),
        Some("with-databases") => with_databases(&root, &arguments.collect::<Vec<_>>()),
        Some("bench") => bench(&root, &arguments.collect::<Vec<_>>()),
        Some("dist") => dist::command(&root, &arguments.collect::<Vec<_>>()),
        Some("dist-check") => dist_check::command(&root, &arguments.collect::<Vec<_>>()),
        Some("ratchet") => ratchet::command(&root, &arguments.collect::<Vec<_>>()),
        Some("hostile") => against_the_binary(&root, "tgp-hostile", &arguments.collect::<Vec<_>>()),
        Some("sdk") => sdk::command(&root, &arguments.collect::<Vec<_>>()),
        Some("soak") => against_the_binary(&root, "tgp-soak", &arguments.collect::<Vec<_>>()),
        Some("help" | "--help" | "-h") | None => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("unknown command `{other}`\n{HELP}"),
    }
}

/// The workspace's root, wherever the command was started.
fn root() -> Result<PathBuf> {
    // Cargo names it when it starts the program. What was true when it was built may be another clone's folder: builds
    // are reused between clones.
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Ok(PathBuf::from(manifest).parent().context("xtask is a folder of the workspace")?.to_owned())
}

fn test(root: &std::path::Path) -> Result<()> {
    tidy::check(root)?;
    deny::check(root)?;
    run::cargo(root, &["fmt", "--all", "--check"], &[])?;
    let lints = lints::Lints::new()?;
    lints.build(root)?;
    setup::ensure(&[Need::Fixtures, Need::Servers])?;
    let mut environment = fixtures::prepare(root)?;
    environment.extend(fixtures::package_list(root)?);
    environment.extend(fixtures::mcp_clients(root)?);
    environment.extend(runners::install(root)?);
    // Held until the tests are over, then stopped.
    let databases = databases::start(&fixtures::target(root));
    environment.extend_from_slice(databases.environment());
    environment.extend_from_slice(lints.environment());
    run::cargo_test(root, &lints.arguments(&["test", "--workspace", "--no-fail-fast"]), &environment)?;
    // With the programs that the tests have built; another build would have other features and take minutes.
    sdk::check_all(root, &environment)?;
    bench_smoke(root, &environment)?;
    ratchet::check(root, None)
}

/// Runs every section of the measurements once with the debug build, so that they stay usable.
fn bench_smoke(root: &std::path::Path, environment: &[(String, String)]) -> Result<()> {
    println!("xtask: tgp-bench --smoke");
    let program = fixtures::target(root).join("debug/tgp-bench");
    run::program_within(SMOKE_PATIENCE, &program, &["--smoke"], environment)
}

fn with_databases(root: &std::path::Path, command: &[String]) -> Result<()> {
    let Some((program, arguments)) = command.split_first() else { bail!("name the command to run\n{HELP}") };
    setup::ensure(&[Need::Fixtures, Need::Servers])?;
    let mut environment = fixtures::prepare(root)?;
    environment.extend(fixtures::package_list(root)?);
    environment.extend(fixtures::mcp_clients(root)?);
    environment.extend(runners::install(root)?);
    let databases = databases::start(&fixtures::target(root));
    environment.extend_from_slice(databases.environment());
    run::program(program, arguments, &environment)
}

fn bench(root: &std::path::Path, arguments: &[String]) -> Result<()> {
    // Writes a page from numbers that were measured before.
    let is_page = arguments.first().is_some_and(|argument| argument.starts_with("--docs"));
    if is_page {
        let mut command = vec!["run", "--quiet", "--package", "tgp-bench", "--"];
        command.extend(arguments.iter().map(String::as_str));
        return run::cargo(root, &command, &[]);
    }
    setup::ensure(&[Need::Fixtures])?;
    let environment = fixtures::prepare(root)?;
    run::cargo(root, &["build", "--release"], &[])?;
    let mut command = vec!["run", "--release", "--quiet", "--package", "tgp-bench", "--"];
    command.extend(arguments.iter().map(String::as_str));
    run::cargo(root, &command, &environment)
}

/// Builds `tgp` and a program that tests it, and runs that with the test databases.
fn against_the_binary(root: &std::path::Path, program: &str, arguments: &[String]) -> Result<()> {
    setup::ensure(&[Need::Fixtures, Need::Servers])?;
    let mut environment = fixtures::prepare(root)?;
    // With the features of the whole workspace, as the tests build it: the dependencies are compiled once.
    run::cargo(root, &["build", "--workspace", "--bin", "tgp", "--bin", program], &[])?;
    // Held until the program is over, then stopped.
    let databases = databases::start(&fixtures::target(root));
    environment.extend_from_slice(databases.environment());
    let program = fixtures::target(root).join("debug").join(program);
    run::program(&program.to_string_lossy(), arguments, &environment)
}
