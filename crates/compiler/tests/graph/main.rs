//! The module graph through its public face.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod configuration;
mod names;
mod node;
mod packages;
mod support;
mod tools;
