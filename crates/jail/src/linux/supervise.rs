//! A command in its own pid namespace. A process cannot move itself into one, only its children can be born there, so
//! the child that the standard library made stays outside as a supervisor, and starts two:
//!
//! - the namespace's first process, which does nothing but collect orphans; when it ends the kernel kills all others;
//! - the program, as the second process, so that signals and aborts work in it as they do anywhere.
//!
//! The first process waits for the end of a pipe whose other end only the supervisor holds, and for the end of the caller.
//! However either of them ends, by SIGKILL too, nothing that was started stays behind. With a [`ChildControl`] it also
//! waits for the kernel's message or its end, and the supervisor reports to the kernel how the program ended, after all
//! others have.
#![expect(unsafe_code, reason = "fork, sigwaitinfo and _exit have no safe form")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2};

use super::Refusal;
use super::caller_text::CallerText;
use super::privileges::close_range;
use super::process::ChildControl;

/// Returns in the program's process only. The calling process, whose pid namespace for children is new, never returns.
/// Every jailed program that shares its namespace with a copy of the caller comes from here, so here is where the
/// copies lose the caller's text.
pub(crate) fn move_to_new_pid_namespace(
    text: &CallerText,
    line: Option<&ChildControl>,
    caller: Option<&OwnedFd>,
) -> Result<(), Refusal> {
    let refused = Refusal::of("start in a new pid namespace");
    let (lifeline, held) = pipe2(OFlag::O_CLOEXEC).map_err(&refused)?;
    // The supervisor and the first process are copies of the caller's memory; no process may read them. They are marked
    // before they exist, so that the program cannot be faster. The mark goes when the program is executed.
    prctl::set_dumpable(false).map_err(&refused)?;
    text.erase_what_all_may_read().map_err(&refused)?;
    let mut mask = SigSet::empty();
    // Blocked from here on, so that no signal gets lost between the forks and the supervisor's loop.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut mask)).map_err(&refused)?;
    // SAFETY: this process is a fork with one thread, and its children make system calls only.
    let first = match unsafe { fork() }.map_err(&refused)? {
        ForkResult::Child => {
            drop(held);
            text.erase_environment();
            collect_orphans(&lifeline, line, caller)
        }
        ForkResult::Parent { child } => child,
    };
    // SAFETY: as above.
    match unsafe { fork() }.map_err(&refused)? {
        ForkResult::Child => sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None).map_err(&refused),
        ForkResult::Parent { child } => {
            drop(lifeline);
            text.erase_environment();
            supervise(first, child, &held, line)
        }
    }
}

/// The life of the namespace's first process.
fn collect_orphans(lifeline: &OwnedFd, line: Option<&ChildControl>, caller: Option<&OwnedFd>) -> ! {
    let kernel = line.map_or(lifeline.as_fd(), ChildControl::as_fd);
    let caller = caller.map_or(lifeline.as_fd(), AsFd::as_fd);
    close_all_but([lifeline.as_fd(), kernel, caller]);
    // SAFETY: ignoring installs no handler. The kernel then collects children by itself.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    let supervisor = PollFd::new(lifeline.as_fd(), PollFlags::POLLIN);
    let kernel = PollFd::new(kernel, PollFlags::POLLIN);
    let caller = PollFd::new(caller, PollFlags::POLLIN);
    let mut watched = [supervisor, kernel, caller];
    loop {
        let _ = poll(&mut watched, PollTimeout::NONE);
        let [supervisor, kernel, caller] = &watched;
        // Nothing is ever written to the lifeline, and a process can be read when it has ended.
        if supervisor.any().unwrap_or(true)
            || caller.any().unwrap_or(true)
            || kernel.any().unwrap_or(true) && line.is_none_or(ChildControl::says_end)
        {
            exit(0)
        }
    }
}

/// The life of the process that the caller knows as its child.
fn supervise(first: Pid, program: Pid, held: &OwnedFd, line: Option<&ChildControl>) -> ! {
    let kernel = line.map_or(held.as_fd(), ChildControl::as_fd);
    close_all_but([held.as_fd(), kernel, held.as_fd()]);
    let all = SigSet::all();
    loop {
        if let Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) =
            waitpid(program, Some(WaitPidFlag::WNOHANG))
        {
            // The first process is gone only after all others in its namespace are.
            let _ = kill(first, Signal::SIGKILL);
            while waitpid(first, None) == Err(Errno::EINTR) {}
            if let Some(line) = line {
                tell(line, status);
            }
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

fn tell(line: &ChildControl, status: WaitStatus) {
    match status {
        WaitStatus::Exited(_, code) => line.tell_exit(code),
        WaitStatus::Signaled(_, number, _) => line.tell_signal(number as i32),
        _ => {}
    }
}

/// Closes everything else, so that no process waits for us to close it.
fn close_all_but(kept: [BorrowedFd<'_>; 3]) {
    let mut kept = kept.map(|one| libc::c_uint::try_from(one.as_raw_fd()).unwrap_or(0));
    kept.sort_unstable();
    let mut from = 0;
    for number in kept {
        if from < number {
            let _ = close_range(from, number - 1, 0);
        }
        from = number.saturating_add(1);
    }
    let _ = close_range(from, libc::c_uint::MAX, 0);
}

/// A descriptor of the process that has started this one, which can be read when that has ended. `expected` is its number; a
/// caller that has ended already is another process. `None` where the kernel cannot watch a process.
pub(crate) fn watch_caller(expected: u32) -> Result<Option<OwnedFd>, Refusal> {
    let refused = Refusal::of("watch the caller");
    // SAFETY: takes a number and no memory.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, expected, 0) };
    let descriptor = match Errno::result(descriptor) {
        // A kernel before 5.3.
        Err(Errno::ENOSYS) => return Ok(None),
        opened => opened.map_err(&refused)?,
    };
    // SAFETY: the kernel has just opened it for this process only; descriptors fit an int.
    let watched = unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) };
    // Asked after it was opened: the number cannot have been given to another process in between.
    match u32::try_from(nix::unistd::getppid().as_raw()) == Ok(expected) {
        true => Ok(Some(watched)),
        false => Err(refused(Errno::ESRCH)),
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
