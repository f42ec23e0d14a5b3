//! Running programs, loudly.

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::test_output::TestOutput;
use crate::test_times::TestTimes;

/// Runs cargo in the workspace and fails when it fails.
pub fn cargo(root: &Path, arguments: &[&str], environment: &[(String, String)]) -> Result<()> {
    println!("xtask: cargo {}", arguments.join(" "));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(root)
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}

/// Runs a program in the present directory and fails when it fails.
pub fn program(program: &str, arguments: &[String], environment: &[(String, String)]) -> Result<()> {
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .status()
        .with_context(|| format!("`{program}` cannot be started"))?;
    if !status.success() {
        bail!("`{program}` failed");
    }
    Ok(())
}

/// Runs a program in the present directory, and fails when it fails or takes longer: then it is killed.
pub fn program_within(
    patience: Duration,
    program: &Path,
    arguments: &[&str],
    environment: &[(String, String)],
) -> Result<()> {
    let mut child = Command::new(program)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("`{}` cannot be started", program.display()))?;
    match wait_within(patience, &mut child) {
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("`{}` failed: {status}", program.display()),
        None => bail!("`{}` was killed after {} s", program.display(), patience.as_secs()),
    }
}

/// Waits for the end of a program, or kills it.
fn wait_within(patience: Duration, child: &mut Child) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if started.elapsed() < patience => std::thread::sleep(Duration::from_millis(50)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// Runs the tests, shows their progress and failures, and closes with the number of tests, the skipped ones and the slowest
/// programs. Cargo itself is not quiet, since it names the programs; the programs are.
pub fn cargo_test(root: &Path, arguments: &[&str], environment: &[(String, String)]) -> Result<()> {
    println!("xtask: cargo {}", arguments.join(" "));
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if std::io::stderr().is_terminal() {
        // Behind a pipe, cargo would leave out the colours.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .args(arguments)
        .args(["--", "--quiet", "--show-output"])
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(root)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    // A second thread, or a full pipe would stop the tests.
    let errors = child.stderr.take().map(|errors| std::thread::spawn(move || forward_errors(errors)));
    let mut output = TestOutput::new();
    if let Some(pipe) = child.stdout.take() {
        for_each_line(pipe, |line| output.line(line).iter().for_each(|line| println!("{line}")))?;
    }
    output.end().iter().for_each(|line| println!("{line}"));
    let status = child.wait().context("cannot wait for cargo")?;
    let (reasons, mut times) = errors.and_then(|errors| errors.join().ok()).unwrap_or_default();
    times.end(Instant::now());
    for reason in reasons {
        output.skipped.add(None, &reason);
    }
    println!("{} passed, {} failed", output.passed, output.failed);
    for line in output.skipped.report().into_iter().chain(times.report()) {
        println!("{line}");
    }
    if !status.success() || output.passed == 0 {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}

/// Shows the standard error of cargo and of the tests without progress. Gives the reasons of the tests that report there
/// that they were skipped, and the times of the programs.
fn forward_errors(errors: impl Read) -> (Vec<String>, TestTimes) {
    let mut reasons = Vec::new();
    let mut times = TestTimes::default();
    let read = for_each_line(errors, |line| {
        if !times.line(line, Instant::now()) {
            eprintln!("{line}");
        }
        reasons.extend(line.strip_prefix("skipped: ").map(str::to_owned));
    });
    if let Err(error) = read {
        eprintln!("xtask: {error:#}");
    }
    (reasons, times)
}

/// Tests may print any bytes, so lines are not always text.
fn for_each_line(pipe: impl Read, mut each: impl FnMut(&str)) -> Result<()> {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).context("cannot read the output of the tests")? > 0 {
        each(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
        line.clear();
    }
    Ok(())
}

/// As [`quiet`], with an end to waiting: a program that takes longer is killed and has failed.
pub fn quiet_within(patience: Duration, program: &str, arguments: &[&str], directory: &Path) -> bool {
    let child = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    wait_within(patience, &mut child).is_some_and(|status| status.success())
}

/// Runs a program quietly; true when it succeeded.
pub fn quiet(program: &str, arguments: &[&str], directory: &Path) -> bool {
    Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
