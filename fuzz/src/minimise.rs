//! Makes a failing input smaller, as far as a bounded number of runs goes.

use crate::run::{HANGS, Runner};

/// Runs that are spent on one failure: a person reads the result, so it need not be the smallest.
const MOST_RUNS: u32 = 2_000;

/// A smaller input that fails too, in whatever way, and how it fails.
pub fn minimise(runner: &mut Runner, input: Vec<u8>, message: String) -> (Vec<u8>, String) {
    // A run that hangs takes too long to be repeated, and leaves a thread behind.
    if message.starts_with(HANGS) {
        return (input, message);
    }
    let (mut best, mut said) = (input, message);
    let mut runs = 0;
    let mut size = best.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.len() {
            if runs == MOST_RUNS {
                return (best, said);
            }
            runs += 1;
            let end = (at + size).min(best.len());
            let mut shorter = best.clone();
            shorter.drain(at..end);
            match runner.run(&shorter) {
                Err(message) if !message.starts_with(HANGS) => (best, said) = (shorter, message),
                _ => at = end,
            }
        }
        size /= 2;
    }
    (best, said)
}
