//! Counts that do not depend on the load of the machine, for `cargo xtask ratchet`: system calls and instructions.
//!
//! Started with a hidden argument, this program traces itself making calls, and prints the counts as JSON. What is counted
//! lies between two marks, so that neither boot nor shutdown count.

mod calls;
mod instructions;
mod system_calls;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;
use serde::Serialize;

/// The first argument that has this program count.
const COUNT_ARGUMENT: &str = "__counts";

/// What is counted: `exec_tool` on a warm pool.
const EXEC_TOOL: &str = "exec_tool_warm";
/// What is counted: `fs_read` through all gates.
const FS_READ: &str = "fs_read_gated";
/// What is counted: `tgp exec` as a process.
const COLD_EXEC: &str = "tgp_exec_cold";

/// What was counted. The names are those of the record, `bench/ratchet.toml`.
#[derive(Debug, Default, Serialize)]
struct Counts {
    /// Per call, rounded.
    counts: BTreeMap<String, u64>,
    /// For each count, what it consists of, the largest part first.
    parts: BTreeMap<String, String>,
    /// What could not be counted and why.
    skipped: Vec<String>,
}

/// Counts, or makes calls to be counted, when this process was started for one of them.
pub fn main() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let outcome = match arguments.next()?.as_str() {
        calls::CALLS_ARGUMENT => calls::make(&arguments.collect::<Vec<_>>()),
        COUNT_ARGUMENT => count(),
        _ => return None,
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    })
}

fn count() -> Result<()> {
    let mut counts = Counts::default();
    if installed("strace") {
        system_calls::count(&mut counts)?;
    } else {
        counts.skipped.push("system calls (strace is not installed; run `cargo xtask setup`)".to_owned());
    }
    if installed("valgrind") {
        instructions::count(&mut counts)?;
    } else {
        counts.skipped.push("instructions (valgrind is not installed; run `cargo xtask setup`)".to_owned());
    }
    println!("{}", serde_json::to_string(&counts)?);
    Ok(())
}

fn installed(program: &str) -> bool {
    let status = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The tracer of a program, with an environment in which nothing differs from user to user: where cargo has set
/// `LD_LIBRARY_PATH`, every process looks for its libraries in more places.
fn tracer(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
    command
}

/// The total of a window divided by its calls.
fn per_call(total: u64, calls: usize) -> u64 {
    let calls = calls.max(1) as u64;
    (total + calls / 2) / calls
}
