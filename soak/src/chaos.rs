//! Signals to random workers and kernels.

use std::time::Duration;

use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use tgp_hostile::baseline::{children, command_of};

use crate::load::Soak;
use crate::plan::Plan;
use crate::program::pid;

/// What is hit, out of a hundred signals.
const WORKERS: u8 = 50;
const KERNELS_KILLED: u8 = 80;

/// Sends signals until the load is over.
pub fn signals(soak: &Soak, plan: &Plan, mut rng: Rng) {
    while !soak.is_over() {
        soak.sleep(Duration::from_millis(rng.u64(plan.kill_pause.clone())));
        if soak.is_over() {
            break;
        }
        match rng.u8(0..100) {
            0..WORKERS => worker(soak, &mut rng),
            WORKERS..KERNELS_KILLED => kernel(soak, &mut rng, Signal::SIGKILL),
            _ => {
                let signal = if rng.bool() { Signal::SIGTERM } else { Signal::SIGINT };
                kernel(soak, &mut rng, signal);
            }
        }
    }
}

/// Kills a process in which a tool runs, or which waits for one.
fn worker(soak: &Soak, rng: &mut Rng) {
    let mut kernels = soak.programs.running();
    rng.shuffle(&mut kernels);
    for (kernel, _) in kernels {
        let mut workers: Vec<u32> = children(kernel)
            .into_iter()
            .filter(|&worker| command_of(worker).starts_with("tgp-worker"))
            .collect();
        rng.shuffle(&mut workers);
        if let Some(&worker) = workers.first() {
            if kill(pid(worker), Signal::SIGKILL).is_ok() {
                soak.report.count("kills of workers");
            }
            return;
        }
    }
}

/// Ends one of the programs of the actors.
fn kernel(soak: &Soak, rng: &mut Rng, signal: Signal) {
    let kernels: Vec<(u32, String)> =
        soak.programs.running().into_iter().filter(|(_, name)| name.starts_with("tgp ")).collect();
    let Some((id, name)) = rng.choice(kernels) else { return };
    if soak.programs.signal(id, signal) {
        let kind =
            name.split(' ').filter(|word| !word.starts_with('-')).nth(1).unwrap_or_default().to_owned();
        soak.report.count(&format!("{signal} to kernels ({kind})"));
    }
}
