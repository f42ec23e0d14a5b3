//! Sessions: a task that an agent works on, with a transcript on disk that outlives the process.
//!
//! A session is a folder in the kernel's own state: `session.json` says what was asked for and never changes,
//! `transcript.ndjson` only ever grows. The process that works on a session holds the lock of its transcript.

mod listing;
mod ports;
mod prompt;
mod provider;
mod recall;
mod run;
mod session_run;
mod setup;
mod step;
mod store;

pub use listing::{SessionInfo, SessionReplay, SessionState, TranscriptIntegrity};
pub(crate) use ports::{AuditRecovery, SystemClock};
pub use provider::ModelChoice;
pub(crate) use recall::recall_tool;
pub(crate) use run::new_id;
pub use run::{Bounds, ResumeRequest, SessionRequest};
pub use setup::{KeySetup, ModelSetup};
pub(crate) use step::StepRunner;
pub use store::Sessions;
