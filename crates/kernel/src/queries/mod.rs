//! AQL queries on this kernel: what they may use, how they run, and where a run is kept.
//!
//! A run is a folder in the kernel's own state: `run.json` says what was asked for, with all sources, and never changes;
//! `journal.ndjson` only ever grows. The process that works on a run holds the lock of its journal.

mod cache;
mod catalogue;
mod gate_preview;
mod host;
mod run;
mod store;

pub use run::{QueryRequest, ResumedQuery, choose_query};
pub use store::{RunInfo, RunState, Runs};
