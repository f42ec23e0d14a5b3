//! The code graph through its public face, on real repositories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod draft;
mod gherkin;
mod history;
mod ingest;
mod kills;
mod languages;
mod oracle;
mod own;
mod property;
mod support;
mod tck;
mod tck_values;
mod visible;
