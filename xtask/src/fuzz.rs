//! `cargo xtask fuzz`: the fuzz targets, guided by coverage where cargo-fuzz and a nightly toolchain are installed,
//! with the project's own generators elsewhere.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run;

/// Where the targets of cargo-fuzz are. They share the code of the package `tgp-fuzz`.
const CARGO_FUZZ_FOLDER: &str = "fuzz/cargo-fuzz";

const DEFAULT_MINUTES: u64 = 1;

/// What the command was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// All targets when there is none.
    target: Option<String>,
    /// For each target.
    minutes: u64,
}

pub fn command(root: &Path, arguments: &[String]) -> Result<()> {
    let request = parse(arguments)?;
    if !root.join("fuzz/Cargo.toml").is_file() {
        bail!("fuzz/ does not exist in this branch");
    }
    if has_cargo_fuzz(root) {
        return with_cargo_fuzz(root, &request);
    }
    println!("xtask: fuzzing on stable (coverage needs a nightly toolchain and `cargo install cargo-fuzz`)");
    let seconds = seconds(&request);
    let mut command = vec!["run", "--package", "tgp-fuzz", "--release", "--quiet", "--"];
    command.extend(request.target.as_deref());
    command.extend(["--seconds", &seconds]);
    run::cargo(root, &command, &[])
}

fn parse(arguments: &[String]) -> Result<Request> {
    let mut request = Request { target: None, minutes: DEFAULT_MINUTES };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--minutes" => {
                let value = arguments.next().context("`--minutes` needs a number")?;
                let minutes = value.parse().ok().filter(|minutes| (1..=60 * 24 * 7).contains(minutes));
                request.minutes = minutes
                    .with_context(|| format!("invalid number of minutes `{value}`: expected 1 to 10080"))?;
            }
            option if option.starts_with('-') => bail!("unknown option `{option}`: expected `--minutes N`"),
            target if request.target.is_none() => request.target = Some(target.to_owned()),
            target => bail!("unexpected argument `{target}`: one target is accepted"),
        }
    }
    Ok(request)
}

fn seconds(request: &Request) -> String {
    (request.minutes * 60).to_string()
}

/// Whether the targets of cargo-fuzz are there, and all that compiles them.
fn has_cargo_fuzz(root: &Path) -> bool {
    root.join(CARGO_FUZZ_FOLDER).join("Cargo.toml").is_file()
        && run::quiet("cargo-fuzz", &["--version"], root)
        && nightly(root).args(["--version"]).output().is_ok_and(|output| output.status.success())
}

/// Cargo of the nightly toolchain. `CARGO` names the toolchain that runs this program, so it cannot be used.
fn nightly(folder: &Path) -> Command {
    let mut command = Command::new("rustup");
    // Without installing it: a missing toolchain is a reason to fuzz on stable.
    command.args(["run", "nightly", "cargo"]).current_dir(folder);
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command
}

fn with_cargo_fuzz(root: &Path, request: &Request) -> Result<()> {
    let targets = match &request.target {
        Some(target) => vec![target.clone()],
        None => targets(root)?,
    };
    let limit = format!("-max_total_time={}", seconds(request));
    for target in targets {
        println!("xtask: cargo fuzz run {target}");
        let status = nightly(&root.join(CARGO_FUZZ_FOLDER))
            .args(["fuzz", "run", "--fuzz-dir", ".", &target, "--", &limit])
            .status()
            .context("cannot start cargo fuzz")?;
        if !status.success() {
            bail!("`cargo fuzz run {target}` failed");
        }
    }
    Ok(())
}

/// The names that `tgp-fuzz --list` prints, one per line.
fn targets(root: &Path) -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--package", "tgp-fuzz", "--release", "--quiet", "--", "--list"])
        .current_dir(root)
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`tgp-fuzz --list` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8_lossy(&output.stdout);
    // A description may follow the name.
    Ok(names.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expected: Result<(Option<&str>, u64), &str>) {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let found = parse(&arguments).map_err(|error| error.to_string());
        let found = found.as_ref().map(|request| (request.target.as_deref(), request.minutes));
        assert_eq!(found.map_err(String::as_str), expected);
    }

    #[test]
    fn arguments_are_a_target_and_a_time() {
        check(&[], Ok((None, 1)));
        check(&["cypher"], Ok((Some("cypher"), 1)));
        check(&["--minutes", "10", "cypher"], Ok((Some("cypher"), 10)));
        check(&["--minutes"], Err("`--minutes` needs a number"));
        check(&["--minutes", "0"], Err("invalid number of minutes `0`: expected 1 to 10080"));
        check(&["--hours"], Err("unknown option `--hours`: expected `--minutes N`"));
        check(&["a", "b"], Err("unexpected argument `b`: one target is accepted"));
    }
}
