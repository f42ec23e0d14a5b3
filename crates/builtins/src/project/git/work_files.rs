//! The files of the project as git's comparison sees them: what the caller may see, and nothing else.

use tgp_contract::{ChronicleLayout, Entry, EntryKind, FsError, RelativePath, Root, ToolError, Visibility};
use tgp_git::WorkFiles;
use tgp_router::files::{Coverage, Flow, IgnorePolicy, ProjectFiles, Walk};

use super::Stop;

/// What a caller may see of the project.
pub(super) struct VisibleWorkFiles<'a> {
    pub(super) files: ProjectFiles,
    pub(super) visible: Visibility,
    pub(super) stop: &'a Stop,
}

/// A chronicle tells of all files, also of those that the caller may not see. It is left to a person.
fn is_chronicle(path: &RelativePath) -> bool {
    ChronicleLayout::Tree.reserves(path)
}

/// What is out of reach is as if it were not there.
fn absent<T>(error: FsError) -> Result<Option<T>, ToolError> {
    match error {
        FsError::NotFound(_)
        | FsError::NotDirectory(_)
        | FsError::IsDirectory(_)
        | FsError::Security { .. }
        | FsError::Path(_) => Ok(None),
        FsError::NotText { .. }
        | FsError::TooLarge { .. }
        | FsError::TooDeep { .. }
        | FsError::TooMany { .. }
        | FsError::Io { .. } => Err(error.into()),
    }
}

impl WorkFiles for VisibleWorkFiles<'_> {
    fn shows(&self, path: &RelativePath) -> bool {
        self.visible.shows(Root::Project, path) && !is_chronicle(path)
    }

    fn size(&self, path: &RelativePath) -> Result<Option<u64>, ToolError> {
        if is_chronicle(path) {
            return Ok(None);
        }
        match self.files.entry(path) {
            Ok(entry) => Ok(entry.filter(|entry| entry.kind == EntryKind::File).map(|entry| entry.size)),
            Err(error) => absent(error),
        }
    }

    fn read(&self, path: &RelativePath) -> Result<Option<Vec<u8>>, ToolError> {
        if is_chronicle(path) {
            return Ok(None);
        }
        match self.files.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => absent(error),
        }
    }

    fn walk(
        &self,
        start: &RelativePath,
        visit: &mut dyn FnMut(&RelativePath) -> bool,
    ) -> Result<bool, ToolError> {
        let is_due = || self.stop.is_due();
        let walk =
            Walk { files: &self.files, ignored: IgnorePolicy::Skipped, depth: usize::MAX, is_due: &is_due };
        let walked = walk.each(start, &mut |entry: &Entry| {
            let goes_on = entry.kind != EntryKind::File || is_chronicle(&entry.path) || visit(&entry.path);
            if goes_on { Flow::On } else { Flow::Stop }
        });
        match walked {
            // A name that is not UTF-8 is not committed, and prevents no commit of the others.
            Ok(walked) => Ok(walked.coverage == Coverage::Whole),
            Err(error) => absent::<()>(error).map(|_| true),
        }
    }

    fn is_due(&self) -> bool {
        self.stop.is_due()
    }
}
