//! The local socket: `call` and `tools` for programs on this machine.
//!
//! A client sends frames: four bytes of length, most significant first, and that many bytes of JSON. The first frame
//! says hello with a capability token; every other one is a request with an `id`, and is answered by one frame with the
//! same `id`. Whatever a client does, it costs the kernel one connection of a bounded number, bounded memory, and a bounded
//! wait.
#![forbid(unsafe_code)]

mod connection;
mod frame;
mod memory;
mod message;
mod server;

pub use frame::{FrameError, MAX_FRAME_BYTES, read_frame, write_frame};
pub use message::{Hello, SocketAnswer, SocketRequest};
pub use server::{ServeOptions, Server};
