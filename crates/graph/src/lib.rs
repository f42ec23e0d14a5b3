//! The code at every commit: read from git, kept in SQLite, asked in Cypher.
#![forbid(unsafe_code)]

mod bolt;
mod cypher;
mod ingest;
mod store;

pub use bolt::{BoltGraph, BoltOptions, cannot_hide};
pub use cypher::query_columns;
pub use store::{
    Export, ExportNode, ExportRelationship, FactLimits, Facts, GraphOptions, GraphStore, Stats, Stretch,
    ToolFact,
};
