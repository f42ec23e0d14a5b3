//! What the sandbox needs of the operating system and POSIX does not have. Linux has all of it; elsewhere no worker
//! starts.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_pages;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::os::fd::RawFd;

use nix::unistd::Pid;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    CLOSE_ON_EXEC, NO_SIGNAL, check_support, clone_beside, close_all_from, cpu_clock, die_with_parent,
    is_from_parent, peek_sender, random_bytes, replace, report_sender, this_program, usable_size,
};
#[cfg(target_os = "linux")]
pub(crate) use linux_pages::{Heap, prepare_template};
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{
    CLOSE_ON_EXEC, Heap, NO_SIGNAL, check_support, clone_beside, close_all_from, cpu_clock, die_with_parent,
    is_from_parent, peek_sender, prepare_template, random_bytes, replace, report_sender, this_program,
    usable_size,
};

/// What waits on a connection.
#[derive(Debug)]
pub(crate) struct Peeked {
    /// 0 when the other end is closed.
    pub(crate) bytes: usize,
    /// The process that wrote it, as the system reports it.
    pub(crate) sender: Option<Pid>,
}

/// The first descriptor that is not a standard one.
pub(crate) const FIRST_OTHER: RawFd = 3;
