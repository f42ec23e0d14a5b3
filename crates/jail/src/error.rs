//! Why a lock failed. What a platform does not have is not an error but a line in the report.

use std::ffi::OsString;
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
    /// This machine cannot hold a process; nothing was started.
    #[error("cannot run a process in the jail here: {}", missing.join(" "))]
    Lacks {
        /// What is missing, one plain sentence each.
        missing: Vec<String>,
    },
    /// The order contradicts itself or asks for what cannot be.
    #[error("cannot start the process: {problem}")]
    Order {
        /// What is wrong, and what to do about it.
        problem: String,
    },
    /// The kernel refused a step of the child before the program was executed.
    #[error("cannot {step} for the process: {source}")]
    Step {
        /// What was tried, as a verb phrase.
        step: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The program itself could not be executed.
    #[error("cannot execute `{}` in the jail: {source}", program.to_string_lossy())]
    Program {
        /// As the order has it.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// The layer could not be made, read or understood.
    #[error("cannot {step} `{}`: {source}", path.display())]
    Layer {
        /// What was tried, as a verb phrase.
        step: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process has changed more than the caller wants to read.
    #[error(
        "the process has changed more than {limit} paths; let it write to a directory that is not tracked"
    )]
    TooManyChanges {
        /// The caller's limit.
        limit: usize,
    },
    /// The supervisor was ended from outside, or a process hangs in the system and cannot be killed.
    #[error("it is unknown whether all processes of the command have ended; its changes are discarded")]
    Unaccounted,
}
