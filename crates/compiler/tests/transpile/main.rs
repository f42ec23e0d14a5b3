//! The transpiler through its public face.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod golden;
mod hostile;
mod literals;
mod loops;
mod maps;
mod node;

use tgp_compiler::{SourceRole, Unit};

/// A tool with this source.
fn tool(source: impl Into<String>) -> Unit {
    Unit { id: "tools/sample.ts".to_owned(), source: source.into(), role: SourceRole::Tool }
}
