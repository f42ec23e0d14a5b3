//! The limits of another process on Linux.

use std::io;

use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, prlimit};

/// Limits a process that was just started. One that is gone already needs no limit.
pub(crate) fn limit(process: Option<Pid>, resource: Resource, most: u64) -> io::Result<()> {
    let Some(process) = process.and_then(|process| rustix::process::Pid::from_raw(process.as_raw())) else {
        return Ok(());
    };
    match prlimit(Some(process), resource, Rlimit { current: Some(most), maximum: Some(most) }) {
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
