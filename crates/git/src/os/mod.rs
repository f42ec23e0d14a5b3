//! Limits of a process that was started, which only Linux sets from outside.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod platform;

pub(crate) use platform::limit;
