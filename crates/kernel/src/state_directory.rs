//! Where the kernel keeps what is not source: audit, TDD store, sessions, tokens, caches. Usually `.state` in the tool
//! repository; the user's own state directory for a project that this user does not own or cannot write.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_audit::{Anchor, AuditReader};
use tgp_contract::{Code, ToolError};
use tgp_fs::{STATE_DIRECTORY, check_own_repository};

use crate::records::AuditAnchor;

/// The database of the audit, in a directory of state.
const AUDIT_FILE: &str = "audit.sqlite";

/// A directory of state. Whoever has one may write in it, because `ProjectAccess` has chosen it.
#[derive(Clone, Debug)]
pub(crate) struct StateDirectory {
    path: PathBuf,
    /// The tool repository that keeps the head of the audit as well.
    repository: Option<PathBuf>,
    /// Whether reading must not change a file either.
    is_unchanged: bool,
}

impl StateDirectory {
    /// The state in a tool repository.
    pub(crate) fn in_repository(root: &Path) -> Self {
        Self { path: root.join(STATE_DIRECTORY), repository: Some(root.to_owned()), is_unchanged: false }
    }

    /// A directory outside of the project.
    pub(crate) fn outside(path: PathBuf) -> Self {
        Self { path, repository: None, is_unchanged: false }
    }

    /// The same to be read without a change to any file.
    pub(crate) fn unchanged(&self) -> Self {
        Self { is_unchanged: true, ..self.clone() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The database of the audit.
    pub(crate) fn audit_file(&self) -> PathBuf {
        self.join(AUDIT_FILE)
    }

    /// Where else the head of the audit is kept, in addition to the database.
    pub(crate) fn audit_anchor(&self) -> Arc<dyn Anchor> {
        Arc::new(AuditAnchor::new(&self.path, self.repository.as_deref()))
    }

    /// Checks that the tool repository is its own, before the head of the audit is written to it.
    ///
    /// # Errors
    /// `ESECURITY` when something of it is outside.
    pub(crate) fn check_repository(&self) -> Result<(), ToolError> {
        self.repository.as_deref().map_or(Ok(()), check_own_repository)
    }

    /// Opens the audit to read it.
    ///
    /// # Errors
    /// `ENOTFOUND` when nothing was recorded yet, and when it cannot be read.
    pub(crate) fn audit_reader(&self) -> Result<AuditReader, ToolError> {
        let (file, anchor) = (self.audit_file(), self.audit_anchor());
        if self.is_unchanged {
            AuditReader::open_unchanged(file, anchor)
        } else {
            AuditReader::open(file, anchor)
        }
    }

    /// The same, `None` where nothing was recorded yet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn audit_reader_if_any(&self) -> Result<Option<AuditReader>, ToolError> {
        match self.audit_reader() {
            Err(error) if error.code == Code::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }
}
