//! The graph as its callers see it: questions, moments, drafts of the work tree, and who sees which row.

mod current;
mod draft;
mod export;
mod face;
mod facts;
mod hidden;
mod moments;
mod options;
mod query;
mod stats;
mod tools;
mod writing;

pub use export::{Export, ExportNode, ExportRelationship};
pub use face::GraphStore;
pub use facts::{FactLimits, Facts, Stretch};
pub use options::GraphOptions;
pub use stats::Stats;
pub use tools::ToolFact;
