//! The code at every commit: read from git, kept in SQLite, asked in Cypher.
#![forbid(unsafe_code)]

mod cypher;
mod ingest;
mod store;

pub use store::{
    Export, ExportNode, ExportRelationship, FactLimits, Facts, GraphOptions, GraphStore, Stats, Stretch,
    ToolFact,
};
