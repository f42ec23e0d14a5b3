//! Tools that the embedding program keeps: read once, held in memory, and every write goes to the program first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tgp_contract::{Change, Code, FileSystem, FsError, HostFiles, RelativePath, ToolError};
use tgp_fs::MemoryFs;
use tgp_git::{Edited, Persisted, ToolEdit};
use tokio::sync::Mutex;

/// See the module's documentation.
#[derive(Debug)]
pub struct HostStore {
    host: Arc<dyn HostFiles>,
    mirror: Arc<MemoryFs>,
    revision: AtomicU64,
    /// One write at a time: what an edit was made from is what it replaces.
    turn: Mutex<()>,
}

/// A file before and after an edit, and where git has it.
pub(super) struct FileEdit {
    pub(super) before: Option<Vec<u8>>,
    pub(super) after: Vec<u8>,
    pub(super) persisted: Option<Persisted>,
}

impl From<Edited> for FileEdit {
    fn from(edited: Edited) -> Self {
        Self { before: edited.before, after: edited.after, persisted: Some(edited.persisted) }
    }
}

impl HostStore {
    /// Reads everything that the program keeps.
    ///
    /// # Errors
    /// What the program says, or what no tool repository can hold.
    pub async fn load(host: Arc<dyn HostFiles>) -> Result<Self, ToolError> {
        let mirror = MemoryFs::new();
        for (path, content) in host.load().await? {
            mirror.write(&path, &content)?;
        }
        Ok(Self { host, mirror: Arc::new(mirror), revision: AtomicU64::new(0), turn: Mutex::default() })
    }

    /// The files as they are now.
    pub fn files(&self) -> Arc<dyn FileSystem> {
        Arc::clone(&self.mirror) as _
    }

    /// Changes with every write.
    pub(super) fn revision(&self) -> String {
        self.revision.load(Ordering::Acquire).to_string()
    }

    pub(super) async fn edit(&self, path: &RelativePath, edit: ToolEdit) -> Result<FileEdit, ToolError> {
        let _turn = self.turn.lock().await;
        let before = match self.mirror.read(path) {
            Ok(bytes) => Some(bytes),
            Err(FsError::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let after = edit(before.as_deref())?;
        let change = Change::Write { path: path.clone(), content: after.as_slice().into() };
        self.host.apply(std::slice::from_ref(&change)).await?;
        self.mirror.apply(&[change])?;
        self.revision.fetch_add(1, Ordering::AcqRel);
        Ok(FileEdit { before, after, persisted: None })
    }
}

/// What git does for tools that lie on the disk.
pub(super) fn no_git() -> ToolError {
    ToolError::new(Code::Capability, "the host keeps the tools, so they have no git repository")
        .help("the host keeps their versions; boot without `files` to have a repository")
}
