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
mod servers;
mod session_run;
mod setup;
mod step;
mod store;
mod undo;

pub use listing::{SessionInfo, SessionReplay, SessionState, TranscriptIntegrity};
pub(crate) use ports::{AuditRecovery, SystemClock};
pub use provider::ModelChoice;
pub(crate) use run::new_id;
pub use run::{Bounds, ResumeRequest, SessionRequest};
pub use setup::{KeySetup, ModelSetup, TestSetup};
pub(crate) use step::StepRunner;
pub use store::Sessions;
pub use undo::{OtherEffect, UndoResult, UndoneFile, UnkeptFile};

use std::path::Path;
use std::sync::Arc;

use tgp_contract::ToolError;
use tgp_router::DynTool;
use tgp_router::files::BeforeImages;
use tgp_router::gates::TokenAuthority;

use crate::state_directory::StateDirectory;

/// The tools about sessions themselves.
///
/// # Errors
/// Never in practice: their names are constants.
pub(crate) fn session_tools(
    state: &StateDirectory,
    tokens: &Arc<TokenAuthority>,
) -> Result<Vec<Arc<dyn DynTool>>, ToolError> {
    let sessions = Sessions::below(state);
    Ok(vec![recall::recall_tool(sessions.clone(), Arc::clone(tokens))?, undo::undo_tool(sessions)?])
}

/// Keeps what files were before the calls of sessions changed them.
pub(crate) fn before_images(
    state: &StateDirectory,
    project: &Path,
    tokens: &Arc<TokenAuthority>,
) -> Arc<dyn BeforeImages> {
    Arc::new(undo::SessionImages::new(Sessions::below(state), project, Arc::clone(tokens)))
}
