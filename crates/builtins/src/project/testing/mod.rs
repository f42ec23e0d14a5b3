//! How a project's tests are run, and what a run's output says. Nothing is started here.

mod combined;
mod counts;
mod discover;
mod node;
mod parsers;
mod python;
mod runner;
mod scripts;
mod selection;
mod text;

pub use combined::{CombinedRun, RunnerRun, combine, total};
pub use counts::{Counts, Failing, read_counts};
pub use discover::{DiscoverError, MAX_FOLDERS, MAX_RUNNERS, detect, discover};
pub(crate) use runner::joined;
pub use runner::{CacheUse, Manifests, Runner, RunnerKind, Unavailable};
pub use scripts::scripts;
pub use selection::{SelectedRunner, select};
