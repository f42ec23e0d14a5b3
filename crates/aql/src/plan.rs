//! A query that is right, in the form in which it is executed.
//!
//! Names are gone: a reference says how many blocks up a step is and which one of them. A plan is made by `check` only,
//! so the executor may rely on its indices and types.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tgp_contract::SourceLocation;

use crate::QueryType;

/// Blocks inside of each other, through queries too: the name of a step grows with each of them, and a plan is walked on
/// the stack.
pub(crate) const MAX_NESTING: usize = 64;

/// One query, ready to be executed.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryPlan {
    pub name: String,
    pub inputs: Vec<Input>,
    pub budget: Budget,
    pub body: PlanBlock,
    /// What the query's value is.
    pub ty: QueryType,
}

/// A parameter of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub name: String,
    pub ty: QueryType,
    /// The value where none is given. An input without one must be given.
    pub default: Option<Value>,
    pub place: SourceLocation,
}

/// Bounds of a whole run. Those of a query inside another one apply to it alone, in addition to the outer
/// ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    pub tokens: Option<u64>,
    pub calls: Option<u64>,
    pub time: Option<Duration>,
    pub parallel: Option<usize>,
}

/// Steps, and what comes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanBlock {
    /// In the order of the source.
    pub steps: Vec<Step>,
    /// What `return` says, or an object of the steps that no other step uses.
    pub value: Expression,
    pub ty: QueryType,
}

/// A step of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub name: String,
    pub place: SourceLocation,
    pub kind: Kind,
    pub options: Options,
    /// What comes back is checked against it, where `as` was said.
    pub checked: Option<QueryType>,
    /// What others see, null included where `on_error: skip` was said.
    pub ty: QueryType,
    /// The steps of the same block that it waits for, sorted: those it or anything inside it uses, and those of `after`.
    pub needs: Vec<usize>,
}

/// The options of a step: retries, time, concurrency.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Attempts after the first.
    pub retry: u32,
    /// For one attempt.
    pub timeout: Option<Duration>,
    pub on_error: OnError,
    pub cache: bool,
}

/// What happens when a step fails.
#[derive(Clone, Debug, PartialEq)]
pub enum OnError {
    Fail,
    Skip,
    Default(Expression),
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Agent(Agent),
    Tool {
        /// The tool's own name, never an alias.
        tool: String,
        /// An object.
        arguments: Expression,
    },
    Exec {
        path: String,
        arguments: Expression,
    },
    Graph {
        cypher: String,
        commit: Option<Expression>,
        /// An object.
        params: Expression,
    },
    Sql {
        sql: String,
        /// An object.
        params: Expression,
    },
    Merge {
        how: Merge,
        parts: Vec<Part>,
    },
    Map {
        list: Expression,
        concurrency: usize,
        /// Its item is the item of the nearest block.
        body: PlanBlock,
    },
    When {
        condition: Expression,
        then: PlanBlock,
        otherwise: Option<PlanBlock>,
    },
    Query {
        query: Arc<QueryPlan>,
        inputs: Vec<(String, Expression)>,
    },
}

impl Kind {
    /// The keyword for it in a query.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Tool { .. } => "tool",
            Self::Exec { .. } => "exec",
            Self::Graph { .. } => "graph",
            Self::Sql { .. } => "sql",
            Self::Merge { .. } => "merge",
            Self::Map { .. } => "map",
            Self::When { .. } => "when",
            Self::Query { .. } => "query",
        }
    }
}

/// The agent that a step asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub model: Option<String>,
    /// Own names of tools, sorted.
    pub tools: Vec<String>,
    pub system: Option<Expression>,
    pub temperature: Option<f64>,
    pub max_steps: u64,
    pub prompt: Expression,
}

/// How the results of branches become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Of a single part.
    Same,
    Record,
    Text,
    List,
    Object,
}

/// A part of a text: literal text or a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its field in a record.
    pub name: String,
    pub value: Expression,
}

/// An expression, and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub form: ExpressionForm,
    pub place: SourceLocation,
}

/// What an expression is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionForm {
    Value(Value),
    /// An input of this query, by its number.
    Input(usize),
    /// A step: how many blocks of this query up, and its number there.
    Step {
        up: usize,
        index: usize,
    },
    /// The item of a `map`: how many blocks up from here its body is.
    Item {
        up: usize,
    },
    Field(Box<Expression>, String),
    /// An element of a list, or a field by a computed name.
    Element(Box<Expression>, Box<Expression>),
    Text(Vec<Expression>),
    List(Vec<Expression>),
    Object(Vec<(String, Expression)>),
    /// The first one, or the second where the first is null.
    Or(Box<Expression>, Box<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
    All(Vec<Expression>),
    Some(Vec<Expression>),
    Not(Box<Expression>),
    Length(Box<Expression>),
    Join(Box<Expression>, Box<Expression>),
    Contains(Box<Expression>, Box<Expression>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}
