//! Agents as queries: a small typed language whose steps are agents, tools, questions and other queries.
//!
//! A source is parsed (`syntax`), its names are resolved and its types checked against what there is (`check`), which
//! gives a [`Plan`]; `execute` runs a plan through ports, and `explain` says what it would do. All but `execute` is plain
//! synchronous code.
#![forbid(unsafe_code)]

mod catalogue;
mod execute;
mod plan;
mod types;

pub use catalogue::{Catalogue, Forged};
pub use execute::{
    Cache, Fate, How, Journal, Line, Ports, RunEvent, RunOptions, RunReport, Scope, Tokens, World,
};
pub use plan::{
    Agent, Block, Budget, Comparison, Expression, Form, Input, Kind, Merge, OnError, Options, Part, Plan,
    Step,
};
pub use types::{Field, Record, Type};
