//! Where else the head of the audit is kept, in addition to its database: in the tool repository, whose pushes
//! take it along.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tgp_audit::{Anchor, FileAnchor, Head, Settle};
use tgp_contract::ToolError;
use tgp_git::RepositoryAnchor;

/// The anchor in a directory of state.
const ANCHOR_FILE: &str = "audit-anchor";

/// The repository's anchor; a file while the tool root is not a repository.
pub(crate) struct AuditAnchor {
    /// With its directory of git; `None` where the audit is not kept in the tool repository.
    repository: Option<(RepositoryAnchor, PathBuf)>,
    file: FileAnchor,
}

impl AuditAnchor {
    /// The anchor of the audit in the directory `state`; `repository` keeps it as well.
    pub(crate) fn new(state: &Path, repository: Option<&Path>) -> Self {
        let of_repository = |root: &Path| (RepositoryAnchor::at(root, SystemTime::now), root.join(".git"));
        Self { repository: repository.map(of_repository), file: FileAnchor::new(state.join(ANCHOR_FILE)) }
    }

    /// The repository's anchor, while there is a repository.
    fn usable(&self) -> Option<&RepositoryAnchor> {
        self.repository.as_ref().filter(|(_, git)| git.is_dir()).map(|(anchor, _)| anchor)
    }
}

impl Anchor for AuditAnchor {
    fn load(&self) -> Result<Option<Head>, ToolError> {
        let stored = self.usable().map(RepositoryAnchor::load).transpose()?.flatten();
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
        let stored = self.usable().map(|anchor| anchor.store_after(&head.chain, &head.to_string(), settle));
        if stored.is_some_and(|stored| stored.is_ok()) {
            return Ok(());
        }
        self.file.store(head, settle)
    }

    fn clear(&self) -> Result<(), ToolError> {
        if let Some((anchor, _)) = &self.repository {
            anchor.clear()?;
        }
        self.file.clear()
    }
}
