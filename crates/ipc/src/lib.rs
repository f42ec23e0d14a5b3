//! Calls for other programs: the local socket, and the protocol of the SDKs.
//!
//! Whatever a client does, it costs the kernel one connection of a bounded number, bounded memory, and a bounded wait.
#![forbid(unsafe_code)]

mod buffer;
mod frames;
mod memory;
pub mod rpc;
mod server;

#[doc(hidden)]
pub use frames::{FrameError, Hello, MAX_FRAME_BYTES, SocketAnswer, SocketRequest, read_frame, write_frame};
pub use server::{ServeOptions, Server};
