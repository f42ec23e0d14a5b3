//! The bounded part of the soak: the same program with a short load.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the report is the result")]

use std::process::Command;
use std::time::Duration;

use tgp_hostile::process;

/// Names another seed than the usual one.
const SEED_VARIABLE: &str = "TGP_SOAK_SEED";

/// Seconds of load; recovery and checks take about as long again.
const LOAD: &str = "15";

/// The program has its own watchdog, which ends its projects too; this is the last resort. No check depends on how
/// long something takes.
const WATCHDOG: Duration = Duration::from_secs(600);

#[test]
fn a_short_soak_has_no_findings() {
    let seed = std::env::var(SEED_VARIABLE).unwrap_or_else(|_| "16".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tgp-soak"));
    command.args(["--seconds", LOAD, "--seed", &seed]);
    let ran = process::run(command, "", WATCHDOG, folder.path()).unwrap();
    println!("{}", ran.said());
    assert!(ran.code == Some(0) && !ran.timed_out, "seed {seed}: {:?}\n{}", ran.code, ran.said());
}
