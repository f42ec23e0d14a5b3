//! Calls of the operating system that only Linux has, and what takes their place elsewhere.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod platform;

pub(crate) use platform::open_beneath;
pub use platform::sync_file_system;
