//! What outlives the process: tools are committed, described, and found again.

mod catalogue;
mod duplicates;
mod library;
mod remote;

pub use duplicates::OnDuplicate;
pub(crate) use duplicates::shown_score;
pub use library::{Library, Opening};
pub(crate) use library::{WriteTerms, refuse_derived, shown_index};
pub(crate) use remote::RemoteName;

/// The index of the tools, which is made from them.
pub(crate) const META_FILE: &str = "meta.json";

/// Where tools are, below the tool root.
pub(crate) const TOOLS_DIRECTORY: &str = "tools";

/// Where a tool root keeps what is not source; git ignores it and no call sees it.
pub const STATE_DIRECTORY: &str = ".state";
