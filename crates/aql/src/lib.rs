//! Agents as queries: a small typed language whose steps are agents, tools, questions and other queries.
//!
//! A source is parsed (`syntax`), its names are resolved and its types checked against what there is (`check`), which
//! gives a [`QueryPlan`]; `execute` runs a plan through ports, and `explain` says what it would do. All but `execute` is plain
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

pub use catalogue::{ForgedToolSchema, QueryCatalogue};
pub use check::{CompiledQuery, compile};
pub use execute::{
    AttemptScope, Cache, EarlierOutcome, JournalLine, QueryHost, QueryJournal, QueryPorts, RunEvent,
    RunOptions, RunReport, TokenUsage, ValueSource, run,
};
pub use explain::{Estimate, PlannedCall, PlannedStep, PredictedVerdict, QueryExplanation, explain};
pub use plan::{
    Agent, Budget, Comparison, Expression, ExpressionForm, Input, Kind, Merge, OnError, Options, Part,
    PlanBlock, QueryPlan, Step,
};
pub use problem::{QueryProblem, QueryProblems, Source};
pub use syntax::format;
pub use types::{Field, Mismatch, QueryType, Record};
