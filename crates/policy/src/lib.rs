//! What may happen: built-in rules, rules of files, sequence rules, and tokens that narrow them further.
//!
//! A [`Policy`] is loaded from files and answers a [`PolicyRequest`] with a [`PolicyDecision`]. The strictest rule wins whatever
//! the order; only the defaults can be overridden, and only by an `allow`. Nothing here reads a clock or an
//! environment, and no file but the token ledger.
#![forbid(unsafe_code)]

mod arguments;
mod below;
mod decision;
mod explain;
mod history;
mod limits;
mod lint;
mod named;
mod parse;
mod pattern;
mod policy;
mod problem;
mod protect;
mod question;
mod rule;
mod runs_later;
mod selector;
mod token;
mod yaml;

pub use decision::{ExtensionVerdict, PolicyDecision, RuleEffect};
pub use explain::{PolicyExplanation, RuleFinding, RuleReport};
pub use history::{HistoryReplay, HistoryReservation, MissingDetails, PastCall, PastOutcome, SessionHistory};
pub use policy::{
    Judgement, Policy, PolicySettings, PolicySource, PolicyTool, RuleSummary, SourceTrust, ToolCatalogue,
};
pub use problem::{PolicyError, PolicyProblem};
pub use protect::{Protection, Protections, protected};
pub use question::PolicyRequest;
pub use runs_later::{always_runs_later, may_run_later, runs_later};
pub use token::{Caveats, Grant, Reservation, TokenKey, TokenLedger, attenuate, mint, verify};
