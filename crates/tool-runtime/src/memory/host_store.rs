//! Tools that the embedding program keeps: read once, held in memory, and every write goes to the program first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tgp_contract::{
    Change, Code, FileSystem, FsError, HostFiles, MAX_KEPT_BYTES, MAX_KEPT_FILES, RelativePath, ToolError,
};
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
    kept: Mutex<Kept>,
}

/// How much the program keeps.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    files: usize,
    bytes: usize,
}

impl Kept {
    /// The same with one more file, or another content of one. What could not be read again at the next start is refused.
    fn with(self, before: Option<usize>, after: usize) -> Result<Self, ToolError> {
        let files = self.files + usize::from(before.is_none());
        let bytes = self.bytes.saturating_sub(before.unwrap_or_default()).saturating_add(after);
        if files > MAX_KEPT_FILES || bytes > MAX_KEPT_BYTES {
            let message = format!(
                "the host would keep {files} files with {bytes} bytes, more than {MAX_KEPT_FILES} files or {MAX_KEPT_BYTES} bytes"
            );
            return Err(ToolError::new(Code::Budget, message)
                .help("a person removes tools that are not needed any more"));
        }
        Ok(Self { files, bytes })
    }
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
        let mut kept = Kept::default();
        for (path, content) in host.load().await? {
            kept = kept.with(None, content.len())?;
            mirror.write(&path, &content)?;
        }
        let mirror = Arc::new(mirror);
        Ok(Self { host, mirror, revision: AtomicU64::new(0), kept: Mutex::new(kept) })
    }

    /// Shows a file that the kernel makes itself; the program does not keep it.
    ///
    /// # Errors
    /// When the file cannot be held.
    pub fn show(&self, name: &str, text: &str) -> Result<(), ToolError> {
        Ok(self.mirror.write(&RelativePath::new(name)?, text.as_bytes())?)
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
        let mut kept = self.kept.lock().await;
        let before = match self.mirror.read(path) {
            Ok(bytes) => Some(bytes),
            Err(FsError::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let after = edit(before.as_deref())?;
        let now = kept.with(before.as_ref().map(Vec::len), after.len())?;
        let change = Change::Write { path: path.clone(), content: after.as_slice().into() };
        self.host.apply(std::slice::from_ref(&change)).await?;
        *kept = now;
        self.mirror.apply(&[change])?;
        self.revision.fetch_add(1, Ordering::AcqRel);
        Ok(FileEdit { before, after, persisted: None })
    }
}

/// What git does for tools that lie on the disk.
pub(super) fn no_git() -> ToolError {
    ToolError::new(Code::Capability, "the host keeps the tools, so they have no git repository").help(
        "the host keeps their versions; boot without files of the host (`files`, in Node `vfs`) to have one",
    )
}
