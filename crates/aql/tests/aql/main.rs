//! AQL through its public face: sources in, problems and plans out, and runs with fakes for everything outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod diagrams;
mod execute;
mod execute_errors;
mod execute_faults;
mod execute_hostile;
mod execute_limits;
mod execute_plans;
mod execute_property;
mod execute_resume;
mod execute_sources;
mod execute_types;
mod execute_world;
mod explained;
mod golden;
mod hostile;
mod property;
mod rules;
mod support;
