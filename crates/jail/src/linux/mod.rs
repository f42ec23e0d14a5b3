//! The Linux jail. Everything that allocates happens while a [`lock::Lock`] is prepared; applying one makes system calls
//! only, because it also runs between fork and exec of a process that may have many threads.

mod bpf;
mod caller_text;
mod descriptor_message;
mod files;
mod filter;
mod limits;
mod lock;
mod loopback;
mod mounts;
mod namespaces;
mod privileges;
mod process;
mod supervise;

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sched::CloneFlags;

use crate::{JailError, LockReport, NetworkAccess, Profile, SyscallFilter};
use caller_text::CallerText;
pub use lock::ChildLock;
use lock::Lock;
pub use loopback::JailListener;
pub use process::{
    JailedProcess, KillHandle, OverlayLayer, exceeds, process_support, remove_tree, start,
    start_with_listener,
};

/// The kernel refused a step. It carries no allocation, so that it can be made between fork and exec.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) step: &'static str,
    pub(crate) errno: Errno,
}

impl Refusal {
    /// For `map_err`: names the step of a failed system call.
    pub(crate) fn of(step: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self { step, errno }
    }
}

impl From<Refusal> for JailError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { step: refusal.step, source: io::Error::from(refusal.errno) }
    }
}

pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Locks the calling process for good.
///
/// It must have one thread only. The steps, in order: no new privileges, namespaces, capabilities, resource limits, no
/// core and no tracing, Landlock, and seccomp last, since it forbids all the others.
pub fn lock_this_process(profile: &Profile) -> Result<LockReport, JailError> {
    if !namespaces::single_threaded() {
        return Err(JailError::SeveralThreads);
    }
    let mut lock = Lock::prepare(profile)?;
    // Asked before the lock, which forbids asking.
    let no_new_privileges = privileges::no_new_privileges_known();
    let entered = lock.apply_to_self()?;
    Ok(report(&Found {
        no_new_privileges,
        landlock_abi: lock.landlock_abi(),
        seccomp: lock.seccomp_available(),
        wanted: lock.wanted_namespaces(),
        entered,
    }))
}

/// Prepares a command so that its child locks itself between fork and exec.
///
/// Of the descriptors only 0, 1 and 2 stay open in the child. The environment is the caller's business. Where a pid
/// namespace is asked for and allowed, the child that [`std::process::Child`] names is a small supervisor: it passes
/// signals on, ends as the program ends, and everything the program has started dies with it. For that reason the
/// command must be spawned, not put in place of the caller with `exec`.
pub fn jailed_command(profile: &Profile, command: Command) -> Result<Command, JailError> {
    if matches!(profile.syscalls, SyscallFilter::Compute | SyscallFilter::Template) {
        return Err(JailError::ComputeCommand);
    }
    locked_in_child(Lock::prepare(profile)?, command)
}

/// The same for a command that reaches the outside through its caller: on `127.0.0.1:port` of its own network, which has
/// nothing else, listens the socket that [`JailListener::receive`] returns.
///
/// A server behind that socket decides what the command can reach. For a program that has to reach some hosts of the
/// internet, it is the `ConnectProxy` of `tgp-fetch`, and the program gets the variables that `proxy_environment(port)` has
/// there. A program that ignores them has no network.
///
/// Unlike above, a machine that lacks a part of this is an error: where the network cannot be left, or its loopback
/// cannot be switched on, the spawn fails. Spawn the command once, then receive the listener.
///
/// # Errors
/// As above; when the profile does not have both its own network and [`NetworkAccess::Loopback`]; and for port 0, since
/// the program could not be told the port.
pub fn jailed_command_with_listener(
    profile: &Profile,
    command: Command,
    port: u16,
) -> Result<(Command, JailListener), JailError> {
    let order = |problem: &str| JailError::Order { problem: problem.to_owned() };
    if matches!(profile.syscalls, SyscallFilter::Compute | SyscallFilter::Template) {
        return Err(JailError::ComputeCommand);
    }
    if profile.network != NetworkAccess::Loopback || !profile.namespaces.network {
        return Err(order(
            "a listener in the jail needs a profile with `NetworkAccess::Loopback` and a network namespace",
        ));
    }
    if port == 0 {
        return Err(order("a listener in the jail needs a port other than 0"));
    }
    let (sender, listener) = loopback::listener_pair(port)?;
    Ok((locked_in_child(Lock::prepare(profile)?.with_listener(sender), command)?, listener))
}

fn locked_in_child(mut lock: Lock, mut command: Command) -> Result<Command, JailError> {
    let text = CallerText::find()?;
    #[expect(unsafe_code, reason = "the standard library has no other door between fork and exec")]
    // SAFETY: the closure makes system calls on memory that was allocated before the fork; it neither allocates nor
    // takes a lock, so the state in which other threads were interrupted does not matter.
    unsafe {
        command
            .pre_exec(move || lock.apply_to_child(&text).map_err(|refusal| io::Error::from(refusal.errno)));
    }
    Ok(command)
}

/// What this machine offers. Nothing is locked: the namespaces are tried in a short-lived child.
pub fn probe() -> LockReport {
    let wanted = namespaces::ALL.iter().fold(CloneFlags::empty(), |flags, (flag, _)| flags | *flag);
    report(&Found {
        no_new_privileges: privileges::no_new_privileges_known(),
        landlock_abi: files::abi(),
        seccomp: filter::available(),
        wanted,
        entered: namespaces::try_in_child(wanted),
    })
}

/// What a report is made of.
struct Found {
    no_new_privileges: bool,
    landlock_abi: Option<u32>,
    seccomp: bool,
    wanted: CloneFlags,
    entered: CloneFlags,
}

fn report(found: &Found) -> LockReport {
    let mut missing = Vec::new();
    if !found.no_new_privileges {
        missing.push("This kernel cannot forbid new privileges.".to_owned());
    }
    missing.extend(files::lacks(found.landlock_abi).map(str::to_owned));
    if !found.seccomp {
        missing.push(
            "This kernel or processor has no seccomp filters: system calls are not restricted.".to_owned(),
        );
    }
    let absent = namespaces::names(found.wanted & !found.entered);
    if !absent.is_empty() {
        missing.push(format!(
            "This user may not have new namespaces for: {}; unprivileged user namespaces may be switched off.",
            absent.join(", ")
        ));
    }
    LockReport {
        no_new_privileges: found.no_new_privileges,
        landlock_abi: found.landlock_abi,
        seccomp: found.seccomp,
        namespaces: namespaces::names(found.entered),
        missing,
    }
}
