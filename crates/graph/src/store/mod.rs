//! The tables of the graph, and who sees which row.

pub(crate) mod connect;
mod current;
mod draft;
mod export;
mod face;
mod facts;
pub(crate) mod failure;
mod hidden;
pub(crate) mod identity;
mod moments;
mod options;
mod query;
pub(crate) mod schema;
mod stats;
mod tools;
pub(crate) mod write;
mod writing;

pub use export::{Export, ExportNode, ExportRelationship};
pub use face::GraphStore;
pub use facts::{FactLimits, Facts, Stretch};
pub use options::GraphOptions;
pub use stats::Stats;
pub use tools::ToolFact;
