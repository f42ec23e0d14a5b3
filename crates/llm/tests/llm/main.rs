//! Providers against a real server on the loopback that speaks the wire formats, also in hostile ways.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
// Values of tables are made where they are used.
#![allow(clippy::needless_pass_by_value)]

mod accents;
mod attempts;
mod bounds;
mod drops;
mod failures;
mod keeping;
mod patience;
mod repeats;
mod requests;
mod script;
mod server;
mod splits;
mod strangers;
mod support;
mod whole;
