//! What outlives the process: tools are committed, described, and found again.

mod catalogue;
mod library;

pub use library::{Library, OnDuplicate, Opening};
pub(crate) use library::{refuse_derived, shown_score};

/// The index of the tools, which is made from them.
const META_FILE: &str = "meta.json";

/// Where tools are, below the tool root.
pub(crate) const TOOLS_DIRECTORY: &str = "tools";

/// Where a tool root keeps what is not source; git ignores it and no call sees it.
pub const STATE_DIRECTORY: &str = ".state";
