//! Test-driven work as a state machine that believes recorded runs and file hashes, and nothing else.
//!
//! [`Tdd`] is the interface. After a file was changed the caller reports it ([`Tdd::note_changes`]), after a test run
//! as well ([`Tdd::note_run`]), and before a call it asks ([`Tdd::judge`]). Every transition is one transaction in the
//! [`Store`], so several processes share one machine, and a restart continues where it was.
#![forbid(unsafe_code)]

mod classify;
mod judge;
mod machine;
mod origin;
mod refusal;
mod rules;
mod run;
mod schema;
mod scope;
mod snapshot;
mod store;
mod tdd;

pub use classify::{Classified, FileKind, TddOptions};
pub use judge::{FileHasher, WriteRequest};
pub use rules::{Contents, Permissions, Write, WriteKind};
pub use run::{RecordedRun, Selection, TestOutcome, TestRun, Transition};
pub use scope::Scope;
pub use snapshot::{SnapshotError, SourceSnapshot};
pub use store::Store;
pub use tdd::{ScopeStatus, Tdd};
