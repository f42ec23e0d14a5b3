//! AQL through its public face: sources in, problems and plans out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod diagrams;
mod explained;
mod golden;
mod hostile;
mod property;
mod rules;
mod support;
