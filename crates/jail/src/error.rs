//! Why a lock failed. What a platform does not have is no error but a line in the report.

use std::io;
use std::path::PathBuf;

/// A part of the jail that this platform has, and that could not be put in place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// Landlock and seccomp would lock one thread and leave the others free.
    #[error("cannot lock a process that already has several threads; lock it first thing in `main`")]
    SeveralThreads,
    /// A compute process has no `exec`, so nothing could be started in it.
    #[error(
        "cannot start a command under the compute filter, which forbids exec; let the process lock itself"
    )]
    ComputeCommand,
    /// A path of the profile does not exist or cannot be reached.
    #[error("cannot allow `{}` in the jail: {source}; create it or take it out of the profile", path.display())]
    Path {
        /// The path as the profile has it.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The Landlock rules could not be built.
    #[error("cannot build the Landlock rules")]
    Rules(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system call filter could not be compiled.
    #[error("cannot compile the system call filter")]
    Filter(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The kernel refused a step.
    #[error("cannot {step}: {source}")]
    Refused {
        /// What was tried, as a verb phrase.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}
