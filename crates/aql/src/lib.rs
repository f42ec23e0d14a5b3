//! Agents as queries: a small typed language whose steps are agents, tools, questions and other queries.
//!
//! A source is parsed (`syntax`), its names are resolved and its types checked against what there is (`check`), which
//! gives a [`Plan`]; `execute` runs a plan through ports, and `explain` says what it would do. All but `execute` is plain
//! synchronous code.
#![forbid(unsafe_code)]

mod catalogue;
mod check;
mod execute;
mod explain;
mod plan;
mod problem;
mod suggest;
mod syntax;
mod types;

pub use catalogue::{Catalogue, ForgedToolSchema};
pub use check::{Compiled, compile};
pub use execute::{
    AttemptScope, Cache, EarlierOutcome, Journal, Line, Ports, QueryHost, RunEvent, RunOptions, RunReport,
    Tokens, ValueSource, run,
};
pub use explain::{Estimate, Explanation, PlannedCall, PlannedStep, PredictedVerdict, explain};
pub use plan::{
    Agent, Block, Budget, Comparison, Expression, Form, Input, Kind, Merge, OnError, Options, Part, Plan,
    Step,
};
pub use problem::{Problem, Problems, Source};
pub use syntax::format;
pub use types::{Field, Mismatch, Record, Type};
