//! What outlives the process: tools are committed, described, and found again.

mod catalogue;
mod duplicates;
mod host_store;
mod index_state;
mod library;
mod refused_source;
mod remote;
mod results;

pub use duplicates::DuplicatePolicy;
pub use duplicates::shown_score;
pub use host_store::HostStore;
pub use library::{StartupNotices, ToolLibrary};
pub use library::{WriteOptions, refuse_derived, shown_index};
pub use remote::RemoteName;
pub use results::{SimilarTool, SyncResult, ToolLog, ToolVersion, ToolWriteResult};

/// The index of the tools, which is made from them.
pub const META_FILE: &str = "meta.json";

/// Where tools are, below the tool root.
pub const TOOLS_DIRECTORY: &str = "tools";
