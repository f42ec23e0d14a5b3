//! The graph on a server: what is sent to it, word for word, and the answers of a real one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod peer;
mod rewrite;
mod server;
#[path = "../../../graph/tests/graph/support.rs"]
#[allow(dead_code, reason = "the tests of the graph use all of it")]
mod support;
mod vocabulary;
mod wire;
