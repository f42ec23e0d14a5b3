//! The older protocol of the socket: frames with their length before them. `docs/socket.md` describes it.

pub(crate) mod connection;
mod frame;
mod message;

pub use frame::{FrameError, MAX_FRAME_BYTES, read_frame, write_frame};
pub use message::{Hello, SocketAnswer, SocketRequest};
