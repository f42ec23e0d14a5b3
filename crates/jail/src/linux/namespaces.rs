//! Namespaces: entering as many as the kernel and the user's rights allow.
#![expect(unsafe_code, reason = "fork and _exit in the probe have no safe form")]

use std::ffi::CStr;
use std::io::Write;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, getegid, geteuid};

use super::Refusal;
use crate::NamespaceSet;

/// Every kind this crate knows, with its name in reports.
pub(crate) const ALL: [(CloneFlags, &str); 6] = [
    (CloneFlags::CLONE_NEWUSER, "user"),
    (CloneFlags::CLONE_NEWNET, "network"),
    (CloneFlags::CLONE_NEWIPC, "ipc"),
    (CloneFlags::CLONE_NEWPID, "pid"),
    (CloneFlags::CLONE_NEWNS, "mount"),
    (CloneFlags::CLONE_NEWUTS, "uts"),
];

pub(crate) fn flags(set: NamespaceSet) -> CloneFlags {
    let wanted = [set.user, set.network, set.ipc, set.pid, set.mount, set.uts];
    ALL.iter()
        .zip(wanted)
        .filter(|(_, wanted)| *wanted)
        .fold(CloneFlags::empty(), |flags, ((flag, _), _)| flags | *flag)
}

pub(crate) fn names(flags: CloneFlags) -> Vec<String> {
    ALL.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| (*name).to_owned()).collect()
}

/// Whether the process has one thread. Unsharing the thread group changes nothing in such a process and fails in any
/// other, which makes it the cheapest way to ask.
pub(crate) fn single_threaded() -> bool {
    unshare(CloneFlags::CLONE_THREAD) != Err(Errno::EINVAL)
}

/// Errors that mean "not here, or not for you" rather than "something broke".
fn lacking(errno: Errno) -> bool {
    matches!(errno, Errno::EPERM | Errno::ENOSYS | Errno::EINVAL | Errno::ENOSPC | Errno::EUSERS)
}

/// Enters what it can of the wanted namespaces and returns those. With `map_ids` the user keeps its numbers inside.
pub(crate) fn enter(wanted: CloneFlags, map_ids: bool) -> Result<CloneFlags, Refusal> {
    // Inside an unmapped namespace the ids read as `nobody`, so they are taken before.
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let entered = enter_unmapped(wanted).map_err(Refusal::of("enter namespaces"))?;
    if map_ids && entered.contains(CloneFlags::CLONE_NEWUSER) {
        map_to_itself(user, group).map_err(Refusal::of("map the user into its namespace"))?;
    }
    Ok(entered)
}

fn enter_unmapped(wanted: CloneFlags) -> Result<CloneFlags, Errno> {
    if wanted.is_empty() {
        return Ok(wanted);
    }
    match unshare(wanted) {
        Ok(()) => return Ok(wanted),
        Err(errno) if lacking(errno) => {}
        Err(errno) => return Err(errno),
    }
    // One by one. A user namespace is worth having only together with another one: alone it hides nothing, and some
    // systems hand one out whose owner may do nothing in it.
    let user = wanted & CloneFlags::CLONE_NEWUSER;
    let mut entered = CloneFlags::empty();
    for (flag, _) in ALL.iter().skip(1).filter(|(flag, _)| wanted.contains(*flag)) {
        let with_user = if entered.contains(user) { *flag } else { *flag | user };
        // Root may have the others where user namespaces are switched off for all.
        for attempt in [with_user, *flag] {
            match unshare(attempt) {
                Ok(()) => {
                    entered |= attempt;
                    break;
                }
                Err(errno) if lacking(errno) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(entered)
}

/// Maps one user and one group to themselves, the only mapping an ordinary user may write.
fn map_to_itself(user: u32, group: u32) -> Result<(), Errno> {
    match write_maps(user, group) {
        // The files of a process that may not be traced belong to root, and that mark is inherited over fork.
        Err(Errno::EACCES) => {
            prctl::set_dumpable(true)?;
            let outcome = write_maps(user, group);
            prctl::set_dumpable(false)?;
            outcome
        }
        // No /proc to write to: the process continues as `nobody`, with the same rights on files.
        Err(Errno::ENOENT) => Ok(()),
        outcome => outcome,
    }
}

fn write_maps(user: u32, group: u32) -> Result<(), Errno> {
    write_file(c"/proc/self/setgroups", b"deny")?;
    write_map(c"/proc/self/uid_map", user)?;
    write_map(c"/proc/self/gid_map", group)
}

fn write_map(path: &CStr, id: u32) -> Result<(), Errno> {
    let mut buffer = [0_u8; 32];
    let mut rest = buffer.as_mut_slice();
    // Two numbers of at most ten digits always fit, and formatting numbers does not allocate.
    write!(rest, "{id} {id} 1").map_err(|_| Errno::EOVERFLOW)?;
    let unused = rest.len();
    let length = buffer.len() - unused;
    write_file(path, buffer.get(..length).unwrap_or_default())
}

fn write_file(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    nix::unistd::write(&file, bytes).map(drop)
}

/// Tries the namespaces in a child that ends at once, and returns what it could enter.
pub(crate) fn try_in_child(wanted: CloneFlags) -> CloneFlags {
    // SAFETY: the child only makes system calls before it exits.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            let entered = enter(wanted, false).unwrap_or(CloneFlags::empty());
            let code =
                ALL.iter().rev().fold(0, |code, (flag, _)| code << 1 | i32::from(entered.contains(*flag)));
            // SAFETY: leaves without running the destructors and exit handlers that belong to the parent.
            unsafe { libc::_exit(code) }
        }
        Ok(ForkResult::Parent { child }) => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => ALL
                .iter()
                .enumerate()
                .filter(|(place, _)| code >> place & 1 == 1)
                .fold(CloneFlags::empty(), |flags, (_, (flag, _))| flags | *flag),
            _ => CloneFlags::empty(),
        },
        Err(_) => CloneFlags::empty(),
    }
}
