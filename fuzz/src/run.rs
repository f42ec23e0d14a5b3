//! Runs an oracle on inputs: panics are caught, and an input that takes too long is a failure too.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use crate::Oracle;

/// No reader takes a hundredth of this for an input of the largest size.
pub const LONGEST_RUN: Duration = Duration::from_secs(10);
/// As much as the main thread of a program has.
const STACK_BYTES: usize = 8 << 20;
/// The name of the threads whose panics are failures.
const THREAD: &str = "oracle";
/// How the message about an input that hangs begins.
pub(crate) const HANGS: &str = "it hangs";

thread_local! {
    /// Where the last panic of this thread was: what unwinds does not carry it.
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A thread that runs one input after the other, and is replaced after one that failed.
pub struct Runner {
    oracle: Oracle,
    worker: Option<Worker>,
}

struct Worker {
    /// Inputs come in batches: a change of threads for each costs more than most oracles.
    batches: SyncSender<Vec<Vec<u8>>>,
    outcomes: Receiver<Result<(), Failure>>,
    /// Inputs that were run, to distinguish a slow batch from an input that hangs.
    progress: Arc<AtomicUsize>,
}

/// An input for which an invariant does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its place in the batch.
    pub index: usize,
    /// Which invariant is broken, where it panicked, or that it hangs.
    pub message: String,
}

impl Runner {
    #[must_use]
    pub fn new(oracle: Oracle) -> Self {
        Self { oracle, worker: None }
    }

    /// Whether the invariants hold for an input.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(&mut self, input: &[u8]) -> Result<(), String> {
        self.run_all(&[input.to_vec()]).map_err(|failure| failure.message)
    }

    /// The same for several inputs, up to the first that fails.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_all(&mut self, inputs: &[Vec<u8>]) -> Result<(), Failure> {
        let fault = |message: String| Failure { index: 0, message };
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => {
                start(self.oracle).map_err(|error| fault(format!("no thread can be started: {error}")))?
            }
        };
        let mut before = worker.progress.load(Ordering::Relaxed);
        let first = before;
        if worker.batches.send(inputs.to_vec()).is_err() {
            return Err(fault("the thread of the oracle has ended".to_owned()));
        }
        loop {
            match worker.outcomes.recv_timeout(LONGEST_RUN) {
                Ok(Ok(())) => {
                    self.worker = Some(worker);
                    return Ok(());
                }
                // What a failed run leaves in the thread's own state must not reach the next input.
                Ok(Err(failure)) => return Err(failure),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(fault("the thread of the oracle has ended".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let now = worker.progress.load(Ordering::Relaxed);
                    if now == before {
                        // A thread cannot be ended from outside: it is left behind.
                        let message = format!("{HANGS}: no end after {} s", LONGEST_RUN.as_secs());
                        return Err(Failure { index: now - first, message });
                    }
                    before = now;
                }
            }
        }
    }
}

fn start(oracle: Oracle) -> std::io::Result<Worker> {
    let (batches, received) = sync_channel::<Vec<Vec<u8>>>(1);
    let (sender, outcomes) = sync_channel(1);
    let progress = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&progress);
    let work = move || {
        while let Ok(batch) = received.recv() {
            let run = |(index, input): (usize, &Vec<u8>)| {
                let outcome = guarded(oracle, input).map_err(|message| Failure { index, message });
                counter.fetch_add(1, Ordering::Relaxed);
                outcome
            };
            if sender.send(batch.iter().enumerate().try_for_each(run)).is_err() {
                break;
            }
        }
    };
    thread::Builder::new().name(THREAD.to_owned()).stack_size(STACK_BYTES).spawn(work)?;
    Ok(Worker { batches, outcomes, progress })
}

fn guarded(oracle: Oracle, input: &[u8]) -> Result<(), String> {
    panic::catch_unwind(AssertUnwindSafe(|| oracle(input))).unwrap_or_else(|cause| {
        let words = cause.downcast_ref::<&str>().map(|words| (*words).to_owned());
        let words = words.or_else(|| cause.downcast_ref::<String>().cloned()).unwrap_or_default();
        let place = PANICKED_AT.take();
        Err(format!("panicked{place}: {words}"))
    })
}

/// Remembers where oracles panic, and prints it no more: a run would print thousands.
pub fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().name() == Some(THREAD) {
                let place = info.location().map(|place| format!(" at {place}")).unwrap_or_default();
                PANICKED_AT.set(place);
            } else {
                usual(info);
            }
        }));
    });
}
