//! The router through its public face: every stage, in order, for every call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod guarded;
mod router;
