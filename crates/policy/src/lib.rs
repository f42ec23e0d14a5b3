//! What may happen: built-in rules, rules of files, sequence rules, and tokens that narrow them further.
//!
//! A [`Policy`] is loaded from files and answers a [`PolicyRequest`] with a [`Decision`]. The strictest rule wins whatever
//! the order; only the defaults give way, and only to an `allow`. Nothing here reads a clock or an environment, and no
//! file but the token ledger.
#![forbid(unsafe_code)]

mod arguments;
mod below;
mod decision;
mod explain;
mod history;
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

pub use decision::{Decision, ExtensionVerdict, RuleEffect};
pub use explain::{Explanation, Finding, RuleReport};
pub use history::{HistoryReservation, MissingDetails, Outcome, PastCall, Replay, SessionHistory};
pub use policy::{
    Catalogue, Judgement, Policy, PolicySettings, PolicySource, RuleSummary, SourceTrust, ToolInfo,
};
pub use problem::{PolicyError, Problem};
pub use protect::{Protection, Protections, protected};
pub use question::PolicyRequest;
pub use runs_later::{always_runs_later, may_run_later, runs_later};
pub use token::{Caveats, Grant, Reservation, TokenKey, TokenLedger, attenuate, mint, verify};
