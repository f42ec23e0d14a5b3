//! The Guardian compares what a caller wants to do, and what was done, with what the graph, the chronicle and the
//! repository's own invariants say is true. The Delegator carries out the plans that it approves.
#![forbid(unsafe_code)]

mod blast_radius;
mod claims;
mod conceal;
mod delegator;
mod evidence;
mod gate;
mod guardian;
mod halt;
mod inquiry;
mod invariants;
mod judge;
mod messages;
mod planned_actions;
mod questions;
mod reconcile;
mod review;
mod templates;
mod tree;
mod trial;
mod undecided;

pub use blast_radius::{BlastRadius, Caller, TruncatedList};
pub use delegator::{Delegator, PlanOutcome, PlanReport, StepReport, StepStatus};
pub use gate::{ChronicleCheck, EXEMPT_TOOLS, GuardianGate};
pub use guardian::{GUARDIAN_CHRONICLE, Guardian, GuardianParts, InvariantSource, WallClock};
pub use halt::{Assertion, Halt, InvariantCheck};
pub use inquiry::{AUDIT_FIELD, AuditIndex, FindingSeverity, GuardianFinding, InquirySources, Inspect};
pub use invariants::{Expect, Invariant, Invariants, MAX_INVARIANTS};
pub use judge::{Judgement, Violation};
pub use planned_actions::planned_files;
pub use reconcile::{ReconcileEdit, Reconciled};
pub use review::{Review, StepFinding};
/// The chronicle of files that may not have their own.
pub use tgp_contract::PROJECT_CHRONICLE;
pub use trial::{IdlePattern, InvariantTrial, InvariantVerdict};
pub use undecided::{UndecidedInvariant, UnreadFile, UnreadReason};
