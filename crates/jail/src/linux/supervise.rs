//! A command in a pid namespace of its own. A process cannot move itself into one, only its children can be born there,
//! so the child that the standard library made stays outside as a supervisor, and starts two:
//!
//! - the namespace's first process, which does nothing but collect orphans; when it ends the kernel kills all others;
//! - the program, as the second process, so that signals and aborts work in it as they do anywhere.
//!
//! The first process waits for the end of a pipe whose other end only the supervisor holds. However the supervisor ends,
//! by SIGKILL too, nothing it has started stays behind.
#![expect(unsafe_code, reason = "fork, sigwaitinfo and _exit have no safe form")]

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2, read};

use super::Refusal;
use super::privileges::close_range;

/// Returns in the program's process only. The calling process, whose pid namespace for children is new, never returns.
pub(crate) fn move_to_new_pid_namespace() -> Result<(), Refusal> {
    let refused = Refusal::of("start in a new pid namespace");
    let (lifeline, held) = pipe2(OFlag::O_CLOEXEC).map_err(&refused)?;
    // The supervisor and the first process are copies of the caller's memory; nobody may look into them. They are marked
    // before they exist, so that the program cannot be faster. The mark goes when the program is executed.
    prctl::set_dumpable(false).map_err(&refused)?;
    let mut mask = SigSet::empty();
    // Blocked from here on, so that no signal gets lost between the forks and the supervisor's loop.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut mask)).map_err(&refused)?;
    // SAFETY: this process is a fork with one thread, and its children make system calls only.
    let first = match unsafe { fork() }.map_err(&refused)? {
        ForkResult::Child => {
            drop(held);
            collect_orphans(&lifeline)
        }
        ForkResult::Parent { child } => child,
    };
    // SAFETY: as above.
    match unsafe { fork() }.map_err(&refused)? {
        ForkResult::Child => sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None).map_err(&refused),
        ForkResult::Parent { child } => {
            drop(lifeline);
            supervise(first, child, &held)
        }
    }
}

/// The life of the namespace's first process.
fn collect_orphans(lifeline: &OwnedFd) -> ! {
    close_all_but(lifeline);
    // SAFETY: ignoring installs no handler. The kernel then collects children by itself.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    while matches!(read(lifeline, &mut [0]), Ok(1..) | Err(Errno::EINTR)) {}
    exit(0)
}

/// The life of the process that the caller knows as its child.
fn supervise(first: Pid, program: Pid, held: &OwnedFd) -> ! {
    close_all_but(held);
    let all = SigSet::all();
    loop {
        if let Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) =
            waitpid(program, Some(WaitPidFlag::WNOHANG))
        {
            // The first process is gone only after all others in its namespace are.
            let _ = kill(first, Signal::SIGKILL);
            let _ = waitpid(first, None);
            end_like(status);
        }
        // SAFETY: an all-zero value is a valid one for this plain C structure.
        let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid for the call.
        let number = unsafe { libc::sigwaitinfo(all.as_ref(), &raw mut information) };
        // What the terminal sends (SI_KERNEL), it has sent to the program as well.
        if let Ok(signal) = Signal::try_from(number)
            && signal != Signal::SIGCHLD
            && information.si_code != libc::SI_KERNEL
        {
            let _ = kill(program, signal);
        }
    }
}

/// Closes everything but one end of the pipe, so that nobody waits for us to close it.
fn close_all_but(pipe: &OwnedFd) {
    if let Ok(kept) = libc::c_uint::try_from(pipe.as_raw_fd()) {
        if let Some(below) = kept.checked_sub(1) {
            let _ = close_range(0, below, 0);
        }
        let _ = close_range(kept.saturating_add(1), libc::c_uint::MAX, 0);
    }
}

/// Ends with the same code or by the same signal, so that the caller sees the program's end and not the supervisor's.
fn end_like(status: WaitStatus) -> ! {
    match status {
        WaitStatus::Exited(_, code) => exit(code),
        WaitStatus::Signaled(_, number, _) => {
            // SAFETY: restores the default action, no handler.
            let _ = unsafe { signal(number, SigHandler::SigDfl) };
            let _ = kill(Pid::this(), number);
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
            exit(128 + number as i32)
        }
        _ => exit(1),
    }
}

fn exit(code: i32) -> ! {
    // SAFETY: leaves without running destructors and exit handlers that belong to the process this was forked from.
    unsafe { libc::_exit(code) }
}
