//! The conformance kit: suites that are written once against the contracts and run for every combination of parts.
//!
//! [`Kit`] runs the matrix, [`serve`] shows a part of this product to another team's kit. Nothing here prints: a
//! [`Row`] has all that a table needs. What another team needs to know is in `relay/README.md`.
#![forbid(unsafe_code)]

mod conversation;
mod fault;
mod kit;
mod matrix;
mod program;
mod protocol;
mod real;
mod report;
mod substitutes;
mod suites;
mod valves;
mod workspace;
mod world;

pub use fault::{Fault, FaultKind};
pub use kit::{DEFAULT_TIMEOUT, Kit, KitOptions, Listed};
pub use matrix::{Against, Externals};
pub use protocol::{MAX_LINE, Origin, PROTOCOL, PartKind, RelayServeOptions, serve};
pub use report::{RelayReport, Row, SuiteOutcome};
pub use substitutes::{MakeForProject, MakePart, RunnerGround, Substitutes};
pub use valves::{FakeValves, ValveGround, ValvePart, Watching};
