//! The code at every commit: read from git, kept in SQLite, asked in Cypher.
#![forbid(unsafe_code)]

mod cypher;
mod ingest;
mod store;
mod tables;

pub use cypher::{PatternProbe, depends_on_contents, pattern_probes, query_columns};
pub use ingest::{SourceSummary, tracked};
pub use store::{
    Export, ExportNode, ExportRelationship, FactLimits, GraphOptions, GraphStore, IngestPhase,
    IngestProgress, RevisionRange, Stats, TestGraph, ToolFact,
};

/// What a copy of the graph on another server works with (`tgp-graph-bolt`): the rows of the store, the names of commits,
/// and queries that the store would take.
pub mod mirroring {
    pub use crate::cypher::{CypherError, CypherResult, Phase, QueryLimits, accepted, function_name};
    pub use crate::ingest::repository::Repo;
    pub use crate::tables::connect::reader;
    pub use crate::tables::failure::GraphError;
    pub use crate::tables::pieces::{pieces, prepare};
    pub use crate::tables::schema::{OPEN, RENAME};
}
