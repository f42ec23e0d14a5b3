//! Systems that cannot limit another process: a remote must not fill the disk or the memory, so none is asked.

use std::io;

use nix::unistd::Pid;
use rustix::process::Resource;

pub(crate) fn limit(_process: Option<Pid>, _resource: Resource, _most: u64) -> io::Result<()> {
    let message = "this system cannot limit a process that was started; remotes need Linux";
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}
