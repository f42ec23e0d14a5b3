//! The Guardian itself: what it works with.

use std::sync::Arc;

use tgp_contract::{Chronicle, ChronicleRevision, FileSystem, Graph, RelativePath, ToolError};
use tokio::sync::Mutex;

use crate::{Halt, Invariants};

/// Reads `.sage/invariants.yml` again; none where there is no such file.
pub type InvariantSource = Arc<dyn Fn() -> Result<Invariants, ToolError> + Send + Sync>;

/// Provides the time as RFC 3339.
pub type WallClock = Arc<dyn Fn() -> String + Send + Sync>;

/// The chronicle of the Guardian's own events.
pub const GUARDIAN_CHRONICLE: &str = ".sage/guardian.sage";

/// What a Guardian works with.
#[derive(Clone)]
pub struct GuardianParts {
    pub graph: Arc<dyn Graph>,
    pub chronicle: Arc<dyn Chronicle>,
    pub invariants: InvariantSource,
    pub clock: WallClock,
    /// The work tree, to read what a plan would edit. Nothing is written to it.
    pub files: Arc<dyn FileSystem>,
}

/// Knows what must hold, and says so before and after.
pub struct Guardian {
    pub(crate) parts: GuardianParts,
    /// Held from the read of the Guardian's chronicle to the event that follows from it.
    pub(crate) writing: Mutex<()>,
    /// The halt in force by the content of the Guardian's chronicle: it is asked for before every call.
    pub(crate) known_halt: std::sync::Mutex<Option<(ChronicleRevision, Option<Halt>)>>,
}

impl Guardian {
    #[must_use]
    pub fn new(parts: GuardianParts) -> Self {
        Self { parts, writing: Mutex::new(()), known_halt: std::sync::Mutex::default() }
    }

    /// The invariants of the project, as its file has them now.
    ///
    /// # Errors
    /// `ECONFIG` when the file cannot be read or has a mistake.
    pub fn invariants(&self) -> Result<Invariants, ToolError> {
        (self.parts.invariants)()
    }

    pub(crate) fn now(&self) -> String {
        (self.parts.clock)()
    }
}

pub(crate) fn own_chronicle() -> Result<RelativePath, ToolError> {
    Ok(RelativePath::new(GUARDIAN_CHRONICLE)?)
}
