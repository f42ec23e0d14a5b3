//! Where else the head of the audit is kept, in addition to its database: in the tool repository, whose pushes
//! take it along.

use std::path::Path;
use std::time::SystemTime;

use tgp_audit::{Anchor, FileAnchor, Head, Settle};
use tgp_contract::ToolError;
use tgp_git::RepositoryAnchor;

use crate::settings::state_directory;

/// The repository's anchor; a file while the tool root is not a repository.
pub(super) struct AuditAnchor {
    repository: RepositoryAnchor,
    file: FileAnchor,
    git: std::path::PathBuf,
}

impl AuditAnchor {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            repository: RepositoryAnchor::at(root, SystemTime::now),
            file: FileAnchor::new(state_directory(root).join("audit-anchor")),
            git: root.join(".git"),
        }
    }
}

impl Anchor for AuditAnchor {
    fn load(&self) -> Result<Option<Head>, ToolError> {
        let stored = if self.git.is_dir() { self.repository.load()? } else { None };
        let stored = stored.map(|text| text.parse::<Head>()).transpose()?;
        // What was anchored while there was no repository, or a damaged one, counts until the repository has more.
        let beside = self.file.load()?;
        Ok(match (stored, beside) {
            (Some(head), Some(file)) if file.chain == head.chain && file.sequence > head.sequence => {
                Some(file)
            }
            (Some(head), _) => Some(head),
            (None, beside) => beside,
        })
    }

    fn store(&self, head: &Head, settle: Settle<'_>) -> Result<(), ToolError> {
        if self.git.is_dir() && self.repository.store_after(&head.chain, &head.to_string(), settle).is_ok() {
            return Ok(());
        }
        self.file.store(head, settle)
    }

    fn clear(&self) -> Result<(), ToolError> {
        self.repository.clear()?;
        self.file.clear()
    }
}
