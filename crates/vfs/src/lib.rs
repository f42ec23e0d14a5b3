//! Three file systems behind the one trait of `tgp-contract`: a jailed directory on disk, a tree in memory, and
//! an overlay that holds changes back until they are committed.
//!
//! All three plan a batch with the same code, so a conflict is the same error wherever it happens.
#![forbid(unsafe_code)]

mod batch;
mod disk;
mod limits;
mod memory;
mod overlay;

pub use disk::{DiskFs, DiskOptions, HardLinks, OpenError};
pub use limits::Limits;
pub use memory::MemoryFs;
pub use overlay::OverlayFs;
