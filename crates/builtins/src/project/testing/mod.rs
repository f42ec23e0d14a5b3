//! How a project's tests are run, and what a run's output says. Nothing is started here.

mod counts;
mod parsers;
mod runner;
mod scripts;
mod text;

pub use counts::{Counts, Failing, read_counts};
pub use runner::{Manifests, Runner, RunnerKind, detect};
pub use scripts::scripts;
