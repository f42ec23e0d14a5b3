//! Where the head of the audit stands besides its database: in the tool repository, whose pushes take it along.

use std::path::Path;
use std::time::SystemTime;

use tgp_audit::{Anchor, FileAnchor, Head};
use tgp_contract::ToolError;
use tgp_git::RepositoryAnchor;

use crate::settings::state_directory;

/// The repository's anchor; a file while the tool root is no repository.
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
        match stored {
            Some(text) => Ok(Some(text.parse::<Head>()?)),
            // What was anchored before there was a repository counts until the repository has taken it over.
            None => self.file.load(),
        }
    }

    fn store(&self, head: &Head) -> Result<(), ToolError> {
        if self.git.is_dir() {
            self.repository.store(&head.chain, &head.to_string())
        } else {
            self.file.store(head)
        }
    }
}
