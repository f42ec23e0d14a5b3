//! Running programs, loudly.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

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

/// Runs the tests, shows what they print, and closes with one line that counts them all.
pub fn cargo_test(root: &Path, arguments: &[&str], environment: &[(String, String)]) -> Result<()> {
    println!("xtask: cargo {}", arguments.join(" "));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo cannot be started")?;
    let (mut passed, mut failed) = (0, 0);
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.context("the tests' output cannot be read")?;
            if let Some(counts) = line.strip_prefix("test result: ") {
                passed += count_before(counts, " passed");
                failed += count_before(counts, " failed");
            }
            println!("{line}");
        }
    }
    let status = child.wait().context("cargo did not end")?;
    println!("{passed} passed, {failed} failed");
    if !status.success() || passed == 0 {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}

/// The number that stands before `word`; 0 when there is none.
fn count_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    before.rsplit([' ', ';']).next().and_then(|number| number.parse().ok()).unwrap_or(0)
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
