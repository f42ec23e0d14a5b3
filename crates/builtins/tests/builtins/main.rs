//! The router and the project's tools through their public face.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod approval;
mod cancellation;
mod discovery;
mod effect_gate;
mod git;
mod guarded;
mod project_changes;
mod project_jail;
mod project_reads;
mod project_search;
mod project_support;
mod router;
mod testing;
