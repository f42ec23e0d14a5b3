//! The machine and the build that the numbers belong to.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The profile of a build whose numbers count.
pub const RELEASE: &str = "release";

/// The machine and the build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub kernel: String,
    /// Load averages when the measurement began: numbers from a busy machine are ratios at best.
    pub load: String,
    pub profile: String,
}

pub fn describe() -> Machine {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = text("/proc/cpuinfo")
        .lines()
        .find_map(|line| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned()))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    Machine {
        cpu,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: format!("{} {}", std::env::consts::OS, text("/proc/sys/kernel/osrelease").trim()),
        load: text("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
        profile: if cfg!(debug_assertions) { "debug (no number counts)" } else { RELEASE }.to_owned(),
    }
}

/// The most memory that this process has had at once.
pub fn peak_megabytes() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status").context("this system does not tell memory")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let kilobytes: f64 = peak.context("this system does not tell the peak")?.trim().parse()?;
    Ok(kilobytes / 1024.0)
}

impl std::fmt::Display for Machine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cpu, cores, kernel, load, profile } = self;
        write!(formatter, "{cpu}, {cores} cores, {kernel}, load {load}, profile {profile}")?;
        // A contender that needs two processors at once loses more to company than one that needs one.
        let latest: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default();
        if latest > *cores as f64 / 2.0 {
            write!(formatter, "\nthe machine is busy with something else: no verdict below is final")?;
        }
        Ok(())
    }
}
