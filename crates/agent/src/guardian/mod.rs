//! The Guardian: it compares what somebody wants to do, and what was done, with what the graph, the chronicle and the
//! repository's own invariants say is true.

mod acts;
mod claims;
mod conceal;
mod evidence;
mod gate;
mod halt;
mod inquiry;
mod invariants;
mod judge;
mod questions;
mod radius;
mod reconcile;
mod review;
mod spelling;
mod tree;
mod wording;

use std::sync::Arc;

use tgp_contract::{Chronicle, FileSystem, Graph, ToolError};
use tokio::sync::Mutex;

pub use acts::planned_files;
pub use gate::{EXEMPT_TOOLS, GuardianGate, Vigilance};
pub use halt::{Assertion, Halt};
pub use inquiry::{AUDIT_FIELD, AuditIndex, Finding, Gravity, InquirySources, Inspect};
pub use invariants::{Expect, Invariant, Invariants, MAX_INVARIANTS};
pub use judge::Violation;
pub use radius::{BlastRadius, Caller, Listing};
pub use reconcile::{Edit, Reconciled};
pub use review::{Review, StepFinding};

pub(crate) use acts::{Act, MAX_STEPS, Replacement};
pub(crate) use review::Assessed;

/// Reads `.sage/invariants.yml` anew; none where there is no such file.
pub type InvariantSource = Arc<dyn Fn() -> Result<Invariants, ToolError> + Send + Sync>;

/// Tells the time as RFC 3339.
pub type WallClock = Arc<dyn Fn() -> String + Send + Sync>;

/// The chronicle of the Guardian's own events.
pub const GUARDIAN_CHRONICLE: &str = ".sage/guardian.sage";
/// The chronicle of files that may have none of their own.
pub use tgp_contract::PROJECT_CHRONICLE;

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
    parts: GuardianParts,
    /// Held from the look at the Guardian's chronicle to the event that follows from it.
    writing: Mutex<()>,
}

impl Guardian {
    #[must_use]
    pub fn new(parts: GuardianParts) -> Self {
        Self { parts, writing: Mutex::new(()) }
    }

    fn invariants(&self) -> Result<Invariants, ToolError> {
        (self.parts.invariants)()
    }

    fn now(&self) -> String {
        (self.parts.clock)()
    }
}
