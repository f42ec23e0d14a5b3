//! The local socket: `call` and `tools` for programs of the same user.
#![forbid(unsafe_code)]
