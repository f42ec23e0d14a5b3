//! The graph on a server that speaks Bolt, for teams that outgrow the embedded store.
//!
//! `options` (where the server is), `connection` and `pack` (the wire), `rewrite` (a query with the moment it sees in it),
//! `values` (what comes back), `facts` and `mirror` (the rows of the embedded store, copied), `graph` (the trait).
//!
//! Servers' own read-only modes are asked for and not relied on: what keeps a question from writing is that a query is
//! rewritten from a tree of clauses that only read.
#![forbid(unsafe_code)]

mod connection;
mod facts;
mod failure;
mod graph;
mod mirror;
mod options;
mod pack;
mod rewrite;
mod values;

pub use graph::BoltGraph;
pub use options::BoltOptions;
