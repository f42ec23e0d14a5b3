//! Through the public API: the table of what Node.js gives, and options at random.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod fuzz;
mod table;
