//! Fakes: the smallest parts that keep the contracts, for testing one part without the others.
//!
//! A fake is naive in how it works and strict in what it promises. Each of them is checked by the same suites as the
//! real parts, so code built against a fake is built against the contract.
#![forbid(unsafe_code)]

mod chronicle;
mod commands;
mod cypher;
mod graph;
mod imports;
mod matching;
mod model;
mod questions;
mod repository;
mod runner;
mod tools;
mod valve;

pub use chronicle::FakeChronicle;
pub use graph::MemoryGraph;
pub use model::{FakeModel, ScriptedModel};
pub use questions::Question;
pub use runner::FakeRunner;
pub use tools::FakeTools;
pub use valve::{FakeValve, Persona};
