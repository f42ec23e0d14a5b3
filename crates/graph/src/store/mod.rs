//! The graph as its callers see it: questions, moments, drafts of the work tree, and who sees which row.

mod current;
mod draft;
mod export;
mod graph_store;
mod hidden;
mod options;
mod progress;
mod query;
mod revisions;
mod stats;
mod test_graph;
mod tools;
mod write_session;

pub use export::{Export, ExportNode, ExportRelationship};
pub use graph_store::GraphStore;
pub use options::GraphOptions;
pub use progress::{IngestPhase, IngestProgress};
pub use stats::Stats;
pub use test_graph::{FactLimits, RevisionRange, TestGraph};
pub use tools::ToolFact;
