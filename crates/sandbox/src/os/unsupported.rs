//! Systems on which no worker starts: a process that cannot be locked must not run what an agent wrote.

use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use nix::time::ClockId;
use nix::unistd::Pid;

use super::Peeked;

pub(crate) const CLOSE_ON_EXEC: MsgFlags = MsgFlags::empty();

pub(crate) const NO_SIGNAL: MsgFlags = MsgFlags::empty();

pub(crate) fn check_support() -> Result<(), &'static str> {
    Err("Workers need Linux.")
}

pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

pub(crate) fn cpu_clock(_process: Pid) -> Option<ClockId> {
    None
}

pub(crate) fn report_sender(_connection: &UnixStream, _is_reported: bool) -> Result<(), Errno> {
    Err(Errno::ENOTSUP)
}

pub(crate) fn peek_sender(_connection: &UnixStream) -> Result<Peeked, Errno> {
    Err(Errno::ENOTSUP)
}

pub(crate) fn is_from_parent(_connection: &UnixStream) -> bool {
    false
}

pub(crate) fn close_all_from(_first: RawFd) -> Option<()> {
    None
}

pub(crate) fn die_with_parent() -> Option<()> {
    None
}

pub(crate) fn clone_beside() -> Result<Option<Pid>, Errno> {
    Err(Errno::ENOTSUP)
}

pub(crate) fn replace(_place: RawFd, _descriptor: &OwnedFd) -> Option<()> {
    None
}

/// # Safety
///
/// None is needed: nothing is read.
pub(crate) unsafe fn usable_size(_pointer: *mut u8) -> usize {
    0
}

pub(crate) fn random_bytes(_bytes: &mut [u8]) -> Option<usize> {
    None
}

/// Where the heap of the C library begins, which nothing here needs to know.
pub(crate) enum Heap {}

impl Heap {
    pub(crate) fn own(&self) {
        match *self {}
    }
}

pub(crate) fn prepare_template() -> Option<Heap> {
    None
}
