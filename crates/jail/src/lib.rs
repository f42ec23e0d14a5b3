//! The operating system's sandbox: namespaces, Landlock, seccomp and resource limits.
//!
//! There are three ways in:
//!
//! - A worker that runs tool code locks itself with [`lock_this_process`] before it reads its first request, or was forked
//!   from a template that has, and adds its [`ChildLock`].
//! - A program that we choose is started through [`jailed_command`], whose child locks itself between fork and exec. One
//!   that needs some hosts of the internet is started through [`jailed_command_with_listener`], and a proxy of its caller
//!   is all that its network has.
//! - A command that an agent has written is started with [`start`]: in its own root, on a private layer over the
//!   project, with its whole tree of processes watched, bounded and ended. What it changed is read from the
//!   [`OverlayLayer`]. With [`start_with_listener`] its network has a proxy of the caller.
//!
//! The first two take a [`Profile`], and a platform that lacks a part is not an error: the part is named in
//! [`LockReport::missing`] ([`probe`] reports them without locking). The network of a command with a listener is the
//! exception: it must be its own, or nothing starts. The third takes a [`CommandSpec`] and all of it or nothing: what
//! [`process_support`] misses is [`JailError::Lacks`]. Everywhere a part that is there and cannot be applied is a
//! [`JailError`], and nothing runs.
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
mod order;
mod outcome;
mod profile;
mod report;

#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod platform;

pub use error::JailError;
pub use order::{
    CACHE_PLACE, CacheAccess, CacheMount, CommandSpec, MAX_STDIN_BYTES, ProcessLimits, Template,
};
pub use outcome::{Before, Captured, CommandExit, Exit, LayerChange, LayerChangeKind, ProcessSupport};
pub use platform::{
    ChildLock, JailListener, JailedProcess, KillHandle, OverlayLayer, exceeds, jailed_command,
    jailed_command_with_listener, lock_this_process, probe, process_support, remove_tree, start,
    start_with_listener,
};
pub use profile::{
    FileAccess, NamespaceSet, NetworkAccess, PathAccess, PathRule, Profile, ResourceLimits, SyscallFilter,
};
pub use report::LockReport;
