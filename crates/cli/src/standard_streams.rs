//! The standard streams of a command that another program drives.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tgp::contract::{Code, ToolError};
use tokio::fs::File;

/// Takes standard input and output away from everything else in this process and its children: what they print goes to
/// standard error, and they read nothing. So every byte that the host reads is a message.
///
/// # Errors
/// `EINTERNAL` when the system does not allow it.
pub fn take() -> Result<(File, File), ToolError> {
    let (input, output) = take_descriptors().map_err(|error| {
        ToolError::new(Code::Internal, format!("the standard streams cannot be used: {error}"))
    })?;
    Ok((stream(input), stream(output)))
}

fn take_descriptors() -> io::Result<(OwnedFd, OwnedFd)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    nix::unistd::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    nix::unistd::dup2_stdout(io::stderr())?;
    Ok((input, output))
}

fn stream(descriptor: OwnedFd) -> File {
    File::from_std(std::fs::File::from(descriptor))
}
