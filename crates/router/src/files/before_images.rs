//! What files were before the calls of a session changed them: kept where all changes of a call reach the disk.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use tgp_contract::{
    CallContext, Change, CommitVote, Entry, EntryKind, FileSystem, FsError, RelativePath, Root, canonical,
};

use super::Workspace;

/// A file that is about to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeforeImage {
    pub root: Root,
    pub path: RelativePath,
    pub before: BeforeState,
    /// SHA-256 of what it will be; none when it is removed.
    pub after: Option<String>,
}

/// What is at a path before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeforeState {
    /// Nothing; and how many of the directories above it do not exist either.
    Absent { missing_parents: usize },
    /// A file with this content and these permissions.
    File { content: Vec<u8>, mode: u32 },
    /// A file of so many bytes, whose content is not kept.
    TooLarge { bytes: u64 },
    /// Something whose content cannot be read.
    Unreadable,
}

/// Keeps what files were before the calls of a session changed them.
pub trait BeforeImages: Send + Sync {
    /// Whether the changes of this caller are kept.
    fn keeps(&self, context: &CallContext) -> bool;

    /// Bytes of a file whose content is kept.
    fn max_file_bytes(&self) -> u64;

    /// Keeps files that are about to change. The token is given back when it is known what came of it. What cannot be kept
    /// does not stop the change; it is noted that it cannot be undone.
    fn begin(&self, session: &str, images: Vec<BeforeImage>) -> BeforeImageToken;

    /// The changes were made, or none of them.
    fn end(&self, session: &str, token: BeforeImageToken, were_made: bool);
}

/// Stands for changes that were begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeforeImageToken(pub String);

/// The files of a workspace for the calls of one caller.
struct RecordedFs {
    inner: Arc<dyn FileSystem>,
    images: Arc<dyn BeforeImages>,
    context: CallContext,
    workspace: Workspace,
    /// The directory on the disk.
    place: PathBuf,
}

impl Workspace {
    /// The same with a keeper of what files were before they change.
    #[must_use]
    pub fn with_before_images(self, images: Arc<dyn BeforeImages>) -> Self {
        Self { before_images: Some(images), ..self }
    }

    /// The same for the calls of one caller, whose changes are kept. What a run writes passes here when it is committed.
    pub(crate) fn recorded_for(self, context: &CallContext) -> Self {
        let Some(images) = self.before_images.clone().filter(|_| !self.overlaid && !context.dry_run) else {
            return self;
        };
        let host = Arc::new(RecordedFs {
            inner: Arc::clone(&self.host),
            images,
            context: context.clone(),
            place: self.host_place(),
            workspace: Self { before_images: None, ..self.clone() },
        });
        Self { host, before_images: None, ..self }
    }
}

impl RecordedFs {
    fn image(&self, change: &Change) -> BeforeImage {
        let path = change.path();
        let (root, name) = self.workspace.name_of(path);
        BeforeImage {
            root,
            path: name,
            before: self.before(path),
            after: change.content().map(canonical::sha256_hex),
        }
    }

    fn before(&self, path: &RelativePath) -> BeforeState {
        match self.inner.entry(path) {
            Ok(None) | Err(FsError::NotFound(_)) => {
                let parents = std::iter::successors(Some(path.parent()), |path| Some(path.parent()));
                let is_missing = |parent: &RelativePath| matches!(self.inner.entry(parent), Ok(None));
                let missing_parents =
                    parents.take_while(|parent| !parent.is_root()).take_while(is_missing).count();
                BeforeState::Absent { missing_parents }
            }
            Ok(Some(Entry { kind: EntryKind::File, size, .. })) if size > self.images.max_file_bytes() => {
                BeforeState::TooLarge { bytes: size }
            }
            Ok(Some(Entry { kind: EntryKind::File, .. })) => {
                let mode =
                    self.place.join(path.as_str()).symlink_metadata().map(|found| found.mode() & 0o777);
                match (self.inner.read(path), mode) {
                    (Ok(content), Ok(mode)) => BeforeState::File { content, mode },
                    _ => BeforeState::Unreadable,
                }
            }
            Ok(Some(_)) | Err(_) => BeforeState::Unreadable,
        }
    }
}

impl FileSystem for RecordedFs {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        self.inner.read(path)
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        self.inner.entry(path)
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        self.inner.list(directory)
    }

    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        if changes.is_empty() || !self.images.keeps(&self.context) {
            return self.inner.apply_if(changes, last_word);
        }
        let session = &self.context.session;
        let token = self.images.begin(session, changes.iter().map(|change| self.image(change)).collect());
        let applied = self.inner.apply_if(changes, last_word);
        self.images.end(session, token, matches!(applied, Ok(true)));
        applied
    }
}
