//! Why a run gave no result.

use std::os::unix::process::ExitStatusExt;

use tgp_contract::Code;

use super::RunLimits;
use super::watch::Overrun;
use crate::protocol::{Failure, FailureKind, FrameError, RelatedErrors, StopReport};

/// Bytes of an error's message.
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// Different stacks of a run that are looked at; a worker sends no more, unless a tool has taken it over.
const MAX_SAMPLES: usize = 256;

/// Why a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunErrorKind {
    Memory,
    CpuTime,
    WallTime,
    Thrown,
    Cap,
    NeverSettles,
    BadProgram,
    /// The worker died or spoke nonsense.
    Crashed,
}

/// Why a run gave no result. `stack` is in emitted places; the caller maps them back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    pub kind: RunErrorKind,
    pub name: String,
    pub message: String,
    pub stack: String,
    /// The `code` a thrown error carried.
    pub code: Option<String>,
    /// What a thrown error was caused by or made of; `message` names all of them.
    pub related: Box<RelatedErrors>,
    /// Where the time was spent, when a limit stopped the run; in emitted places as well.
    pub stop: Box<StopReport>,
}

impl RunError {
    pub(super) fn new(kind: RunErrorKind, message: String) -> Self {
        let (name, stack) = (String::new(), String::new());
        Self { kind, name, message, stack, code: None, related: Box::default(), stop: Box::default() }
    }

    /// Whether the worker was killed or failed. An exception of a tool is an answer like others.
    pub(super) fn is_of_worker(&self) -> bool {
        self.kind != RunErrorKind::Thrown
    }

    /// The stable code of this failure.
    #[must_use]
    pub fn code(&self) -> Code {
        match self.kind {
            RunErrorKind::Memory => Code::IsolateMemory,
            RunErrorKind::CpuTime | RunErrorKind::WallTime => Code::IsolateTimeout,
            RunErrorKind::BadProgram => Code::Internal,
            RunErrorKind::Thrown | RunErrorKind::Cap | RunErrorKind::NeverSettles | RunErrorKind::Crashed => {
                Code::Runtime
            }
        }
    }
}

pub(super) fn explain(failure: Failure, limits: &RunLimits) -> RunError {
    let (kind, message) = match failure.kind {
        FailureKind::Memory => (
            RunErrorKind::Memory,
            format!("the tool used more than its {} MB of memory", limits.heap_bytes >> 20),
        ),
        FailureKind::CpuTime => (RunErrorKind::CpuTime, overrun_error(Overrun::CpuTime, limits).message),
        FailureKind::WallTime => (RunErrorKind::WallTime, overrun_error(Overrun::WallTime, limits).message),
        FailureKind::Thrown => (RunErrorKind::Thrown, whole_message(&failure)),
        FailureKind::Cap => (RunErrorKind::Cap, failure.message),
        FailureKind::NeverSettles => (RunErrorKind::NeverSettles, failure.message),
        FailureKind::BadProgram => (RunErrorKind::BadProgram, failure.message),
    };
    let Failure { name, stack, code, related, mut stop, .. } = failure;
    stop.samples.truncate(MAX_SAMPLES);
    RunError { kind, name, message, stack, code, related, stop }
}

/// The message of a thrown error with what it was caused by. The worker has clipped each part; a worker that a tool has
/// taken over may not have, so the whole is clipped again.
fn whole_message(failure: &Failure) -> String {
    let mut message = failure.message.clone();
    let RelatedErrors { causes, errors } = failure.related.as_ref();
    if !errors.is_empty() {
        if message.is_empty() {
            message = format!("{} errors", errors.len());
        }
        message = format!("{message}: {}", errors.join("; "));
    }
    for cause in causes {
        message = format!("{message} (caused by: {cause})");
    }
    tgp_text::head(&message, MAX_MESSAGE_BYTES).to_owned()
}

pub(super) fn overrun_error(overrun: Overrun, limits: &RunLimits) -> RunError {
    match overrun {
        Overrun::CpuTime => RunError::new(
            RunErrorKind::CpuTime,
            format!("the tool used more than its {} ms of CPU time", limits.cpu.as_millis()),
        ),
        Overrun::WallTime => RunError::new(
            RunErrorKind::WallTime,
            format!("the tool did not finish within {} ms", limits.wall.as_millis()),
        ),
    }
}

pub(super) fn crash_error(error: &FrameError, status: Option<std::process::ExitStatus>) -> RunError {
    let how = match status.map(|status| (status.signal(), status.code())) {
        // Native code aborts when it gets no memory, and also when it finds itself in a state that cannot be. The signal
        // does not say which; the heap's own cap, which does, is reported by the worker itself.
        Some((Some(nix::libc::SIGABRT), _)) => {
            "it aborted (signal 6), because native code ran out of memory or failed a check of its own"
                .to_owned()
        }
        Some((Some(signal), _)) => format!("by signal {signal}"),
        Some((None, Some(code))) => format!("with exit status {code}"),
        _ => error.to_string(),
    };
    RunError::new(RunErrorKind::Crashed, format!("the worker ended before the tool did: {how}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::{RunErrorKind, crash_error};
    use crate::protocol::FrameError;

    #[test]
    fn bug_every_abort_was_called_a_lack_of_memory() {
        for (raw, how) in [
            (nix::libc::SIGABRT, "it aborted (signal 6), because native code ran out of memory or failed"),
            (nix::libc::SIGSEGV, "by signal 11"),
            (3 << 8, "with exit status 3"),
        ] {
            let error = crash_error(&FrameError::TooLarge(1), Some(ExitStatus::from_raw(raw)));
            assert_eq!((error.kind, error.code().as_str()), (RunErrorKind::Crashed, "ERUNTIME"));
            assert!(error.message.contains(how), "{}", error.message);
        }
    }
}
