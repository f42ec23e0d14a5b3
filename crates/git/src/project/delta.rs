//! A file in two versions, and the content of each.

use git2::{FileMode, ObjectType, Oid};
use tgp_contract::{RelativePath, ToolError};

use super::{ProjectRepo, Reading, WorkFiles};

/// Bytes of a version that is read: it is held in memory as a whole, and an object of a few kilobytes can expand to
/// gigabytes.
pub(crate) const MAX_VERSION_BYTES: u64 = 16 << 20;

/// Where the content of a version is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSource {
    /// An object of the repository.
    Object(ObjectId),
    /// The file on the disk.
    WorkTree,
}

/// An object of the repository by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectId(pub(super) Oid);

/// One version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    pub source: VersionSource,
    pub executable: bool,
}

/// What kind of entry two versions are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaKind {
    /// A plain file on both sides.
    File,
    /// A symbolic link on one side. It is named and not read.
    Link,
    /// A submodule on one side. It is named and not read.
    Submodule,
}

/// A file that differs between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDelta {
    pub path: RelativePath,
    pub kind: DeltaKind,
    pub before: Option<FileVersion>,
    pub after: Option<FileVersion>,
}

impl FileDelta {
    /// What happened to the file, in one word.
    #[must_use]
    pub fn change(&self) -> &'static str {
        match (self.kind, self.before, self.after) {
            (DeltaKind::Link, ..) => "link",
            (DeltaKind::Submodule, ..) => "submodule",
            (DeltaKind::File, None, _) => "created",
            (DeltaKind::File, _, None) => "deleted",
            (DeltaKind::File, ..) => "changed",
        }
    }

    /// Whether the file can be executed afterwards, where that changes.
    #[must_use]
    pub fn executable(&self) -> Option<bool> {
        let after = self.after?.executable;
        let before = self.before.is_some_and(|version| version.executable);
        (before != after).then_some(after)
    }
}

/// The content of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionContent {
    Bytes(Vec<u8>),
    /// It has this many bytes, and is not read.
    TooLarge(u64),
    /// It is not there any more, or its object is missing.
    Absent,
}

/// One entry of a tree or of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) id: Oid,
    pub(super) mode: u32,
}

impl TreeEntry {
    pub(super) fn is_link(self) -> bool {
        self.mode == u32::from(FileMode::Link)
    }

    pub(super) fn is_submodule(self) -> bool {
        self.mode == u32::from(FileMode::Commit)
    }

    pub(super) fn is_executable(self) -> bool {
        self.mode == u32::from(FileMode::BlobExecutable)
    }

    pub(super) fn version(self) -> FileVersion {
        FileVersion { source: VersionSource::Object(ObjectId(self.id)), executable: self.is_executable() }
    }
}

/// The delta between two entries.
pub(super) fn between(path: RelativePath, before: Option<TreeEntry>, after: Option<TreeEntry>) -> FileDelta {
    let any = |test: fn(TreeEntry) -> bool| [before, after].into_iter().flatten().any(test);
    let kind = if any(TreeEntry::is_submodule) {
        DeltaKind::Submodule
    } else if any(TreeEntry::is_link) {
        DeltaKind::Link
    } else {
        DeltaKind::File
    };
    FileDelta { path, kind, before: before.map(TreeEntry::version), after: after.map(TreeEntry::version) }
}

impl ProjectRepo {
    /// The content of one version of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn content(
        &self,
        path: &RelativePath,
        version: FileVersion,
        files: &dyn WorkFiles,
    ) -> Result<VersionContent, ToolError> {
        let id = match version.source {
            VersionSource::Object(ObjectId(id)) => id,
            VersionSource::WorkTree => {
                let Some(size) = files.size(path)? else { return Ok(VersionContent::Absent) };
                if size > MAX_VERSION_BYTES {
                    return Ok(VersionContent::TooLarge(size));
                }
                let bytes = files.read(path)?;
                // As git would store it: line endings that it converts are not a difference.
                return Ok(bytes.map_or(VersionContent::Absent, |bytes| {
                    VersionContent::Bytes(self.line_endings(path).stored(bytes))
                }));
            }
        };
        let odb = self.repo.odb().reading("read objects")?;
        match odb.read_header(id) {
            Ok((size, ObjectType::Blob)) if size as u64 > MAX_VERSION_BYTES => {
                Ok(VersionContent::TooLarge(size as u64))
            }
            Ok((_, ObjectType::Blob)) => {
                let object = odb.read(id).reading("read an object")?;
                Ok(VersionContent::Bytes(object.data().to_vec()))
            }
            Ok(_) => Ok(VersionContent::Absent),
            // A partial clone does not have every object.
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(VersionContent::Absent),
            Err(error) => Err(error).reading("read an object"),
        }
    }
}
