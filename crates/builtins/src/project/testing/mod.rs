//! How a project's tests are run, and what a run's output says. Nothing is started here.

mod combined;
mod counts;
mod discover;
mod node;
mod nothing_selected;
mod parsers;
mod python;
mod runner;
mod scripts;
mod selection;
mod text;
mod visible;

pub use combined::{CombinedRun, RunnerRun, combine, total};
pub use counts::{Counts, Failing, read_counts};
pub use discover::{DiscoverError, MAX_FOLDERS, MAX_RUNNERS, detect, discover};
pub use nothing_selected::nothing_selected;
pub use runner::{CacheUse, Manifests, Runner, RunnerKind, RunnerProblem};
pub(crate) use runner::{SET_THE_COMMAND, joined};
pub use scripts::scripts;
pub use selection::{SelectedRunner, select};
pub use visible::VisiblePrograms;
