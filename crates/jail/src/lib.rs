//! The operating system's sandbox: namespaces, Landlock, seccomp and resource limits.
//!
//! There are two ways in. A worker that runs tool code locks itself with [`lock_this_process`] before it reads its
//! first request. A shell or a test run is started through [`jailed_command`], whose child locks itself between fork
//! and exec. Both take a [`Profile`]; [`probe`] tells what this machine can enforce.
//!
//! A platform that lacks a part is not an error: the part is named in [`LockReport::missing`]. A part that is there and
//! cannot be applied is a [`JailError`], and nothing runs.
//!
//! What each layer is for, and what it leaves to the others:
//!
//! | layer | stops | does not stop |
//! | --- | --- | --- |
//! | no new privileges | set-user-id programs, file capabilities | |
//! | namespaces | reaching other processes, networks, System V IPC; left-over processes; `chmod` outside | a kernel bug |
//! | rlimits | eating memory, CPU, descriptors; core files with secrets | |
//! | Landlock | opening, creating, removing, running files; TCP; abstract sockets and signals to the outside | `stat`, `chmod`, `chown`; path sockets before ABI 9 |
//! | seccomp | everything that has no use here, above all ways to undo the other layers | what an allowed call does |
//!
//! A jail does not change what its process already holds: open descriptors stay usable (a jailed command keeps only
//! 0, 1 and 2), and so does every secret in its memory or environment.

mod error;
mod profile;
mod report;

#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod platform;

pub use error::JailError;
pub use platform::{jailed_command, lock_this_process, probe};
pub use profile::{
    FileAccess, Limits, NamespaceSet, NetworkAccess, PathAccess, PathRule, Profile, SyscallFilter,
};
pub use report::LockReport;
