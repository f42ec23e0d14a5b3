//! The files of a tool repository that the embedding program keeps.

use std::fmt;

use async_trait::async_trait;

use crate::{Change, RelativePath, ToolError};

/// Files that such a program keeps at most.
pub const MAX_KEPT_FILES: usize = 20_000;
/// Bytes of all of them: the kernel holds them in memory.
pub const MAX_KEPT_BYTES: usize = 64 << 20;

/// Where the embedding program keeps the tools, instead of a directory with a git repository.
///
/// The kernel reads everything once and is the only writer afterwards.
#[async_trait]
pub trait HostFiles: fmt::Debug + Send + Sync {
    /// Every file with its content.
    ///
    /// # Errors
    /// What the program says, and when there is more than a kernel takes.
    async fn load(&self) -> Result<Vec<(RelativePath, Vec<u8>)>, ToolError>;

    /// Applies all changes or none of them.
    ///
    /// # Errors
    /// What the program says; nothing was changed then, unless the error is of an
    /// [unknown outcome](ToolError::of_unknown_outcome).
    async fn apply(&self, changes: &[Change]) -> Result<(), ToolError>;
}
