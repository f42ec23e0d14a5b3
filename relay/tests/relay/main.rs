//! The kit through its public face: hostile programs, wrong parts, the fakes, and the examples. One binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod examples;
mod fakes;
mod hostility;
mod mutants;
mod serving;
mod support;
mod wrong;
