//! What a process carries in: capabilities, descriptors, the right to be traced.
#![expect(unsafe_code, reason = "capset, capget and close_range have no safe wrapper among our dependencies")]

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit};

use super::Refusal;

/// Which capabilities outlive the lock, as far as the process has them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    None,
    /// What root needs to work on files of other owners; Landlock says which files.
    FileOwnership,
}

/// CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, by their numbers in `linux/capability.h`.
const FILE_OWNERSHIP: u32 = 1 | (1 << 1) | (1 << 3) | (1 << 4);

pub(crate) fn no_new_privileges_known() -> bool {
    prctl::get_no_new_privs().is_ok()
}

pub(crate) fn forbid_new_privileges() -> Result<(), Refusal> {
    match prctl::set_no_new_privs() {
        // A kernel before 3.5 does not know it, and then has nothing else of this either.
        Ok(()) | Err(Errno::EINVAL) => Ok(()),
        Err(errno) => Err(Refusal { step: "forbid new privileges", errno }),
    }
}

/// A new session and process group.
pub(crate) fn leave_session() -> Result<(), Refusal> {
    match nix::unistd::setsid() {
        // It leads a group already.
        Ok(_) | Err(Errno::EPERM) => Ok(()),
        Err(errno) => Err(Refusal { step: "leave the session", errno }),
    }
}

/// No core file, no ptrace, no `/proc/<pid>/mem` for other processes of the user. An exec undoes it, so for commands the
/// Landlock domain does this work.
pub(crate) fn forbid_tracing() -> Result<(), Refusal> {
    prctl::set_dumpable(false).map_err(Refusal::of("forbid tracing"))
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// CAP_SYS_ADMIN, by its number.
const ADMINISTRATION: u32 = 1 << 21;

/// `_LINUX_CAPABILITY_VERSION_3`: two words of 32 bits each.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

fn capabilities() -> Result<[CapabilityData; 2], Errno> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut data = [CapabilityData::default(); 2];
    // SAFETY: header and data are valid for the call and have the layout of version 3 of the interface.
    Errno::result(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    Ok(data)
}

/// Whether this process may mount and make namespaces without its own user namespace.
pub(crate) fn may_administrate() -> bool {
    capabilities().is_ok_and(|[low, _]| low.effective & ADMINISTRATION != 0)
}

/// Gives capabilities up: those of root, and the full set that a new user namespace hands out, which opens much of the
/// kernel that ordinary users never reach. With no new privileges an exec cannot bring them back.
pub(crate) fn drop_capabilities(kept: Kept) -> Result<(), Refusal> {
    let step = "drop capabilities";
    let mut data = capabilities().map_err(Refusal::of(step))?;
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mask = match kept {
        Kept::None => [0, 0],
        Kept::FileOwnership => [FILE_OWNERSHIP, 0],
    };
    for (word, mask) in data.iter_mut().zip(mask) {
        word.permitted &= mask;
        word.effective &= mask;
        word.inheritable = 0;
    }
    // SAFETY: header and data have the layout of version 3 of the interface; the kernel only reads.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) })
        .map(drop)
        .map_err(Refusal::of(step))
}

/// Marks every descriptor above 2 to be closed by the exec. Closing at once would also take the pipe through which the
/// standard library learns that a step failed.
pub(crate) fn drop_descriptors() -> Result<(), Refusal> {
    let step = "close inherited descriptors";
    match close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) {
        Ok(()) => return Ok(()),
        // Before 5.11.
        Err(Errno::ENOSYS | Errno::EINVAL | Errno::EPERM) => {}
        Err(errno) => return Err(Refusal { step, errno }),
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(Refusal::of(step))?;
    for descriptor in 3..libc::c_int::try_from(hard).unwrap_or(libc::c_int::MAX).min(1 << 20) {
        // SAFETY: F_SETFD only sets a flag, and fails on a number that is not open.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// `close_range(2)`, with or without `CLOSE_RANGE_CLOEXEC`.
pub(crate) fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: called only in a child that runs nothing but this crate until it execs or exits, so nothing still holds
    // a descriptor that it closes.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}
