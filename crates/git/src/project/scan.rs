//! What is not committed: staged, changed on the disk, and new.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{DiffOptions, IndexEntry, ObjectType, Oid};
use tgp_contract::{RelativePath, ToolError};

use super::delta::{DeltaKind, FileDelta, FileVersion, TreeEntry, VersionSource, between};
use super::{ProjectRepo, Reading};

/// New files that are named; a project with more has a directory that an ignore file should name.
const MAX_UNTRACKED: usize = 20_000;

/// Bytes of a file on the disk that is compared: the largest that the project's tools read.
pub(super) const MAX_WORK_FILE_BYTES: u64 = 64 << 20;

/// Bits of an index entry's flags.
const STAGE: u16 = 0x3000;
const ASSUME_UNCHANGED: u16 = 0x8000;
/// Of the extended flags: not in the work tree of a sparse checkout.
const SKIP_WORKTREE: u16 = 0x4000;

/// The files of the project as a caller may see them, and how long it waits.
pub trait WorkFiles {
    /// Whether the caller may know of a file.
    fn shows(&self, path: &RelativePath) -> bool;

    /// Bytes of a plain file; none where there is none that the caller may see.
    ///
    /// # Errors
    /// When it cannot be read.
    fn size(&self, path: &RelativePath) -> Result<Option<u64>, ToolError>;

    /// The bytes of a plain file; none where there is none that the caller may see.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, path: &RelativePath) -> Result<Option<Vec<u8>>, ToolError>;

    /// Visits every plain file below a directory that the caller may see and that no ignore file names, until `visit`
    /// returns false. Returns whether all of them were visited.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn walk(
        &self,
        start: &RelativePath,
        visit: &mut dyn FnMut(&RelativePath) -> bool,
    ) -> Result<bool, ToolError>;

    /// Whether the caller has waited long enough, or does not wait any more.
    fn is_due(&self) -> bool;
}

/// What is not committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusScan {
    /// What the index has and the commit of `HEAD` does not.
    pub staged: Vec<FileDelta>,
    /// What the disk has and the index does not, of files that the index knows.
    pub unstaged: Vec<FileDelta>,
    /// Files that the index does not know and no ignore file names.
    pub untracked: Vec<RelativePath>,
    /// Files that a merge has left in conflict.
    pub conflicted: Vec<RelativePath>,
    /// False when not everything was compared.
    pub complete: bool,
}

/// Which files are meant: these, and what is below them; all of them where there is none.
pub(super) fn is_meant(scope: &[RelativePath], path: &RelativePath) -> bool {
    scope.is_empty() || scope.iter().any(|one| path == one || path.is_inside(one))
}

impl ProjectRepo {
    /// Compares the commit of `HEAD`, the index and the disk, for the files of `scope` and what is below them.
    ///
    /// # Errors
    /// `EGIT` when the repository cannot be read.
    pub fn status(&self, scope: &[RelativePath], files: &dyn WorkFiles) -> Result<StatusScan, ToolError> {
        let mut scan = StatusScan { staged: self.staged(scope, files)?, ..StatusScan::default() };
        let index = self.index()?;
        let is_unstaged_whole = self.unstaged(&index, scope, files, &mut scan)?;
        let is_untracked_whole = self.untracked(&index, scope, files, &mut scan)?;
        scan.complete = is_unstaged_whole && is_untracked_whole;
        Ok(scan)
    }

    /// What the index has and the commit of `HEAD` does not.
    ///
    /// # Errors
    /// `EGIT` when the repository cannot be read.
    pub fn staged(&self, scope: &[RelativePath], files: &dyn WorkFiles) -> Result<Vec<FileDelta>, ToolError> {
        const DOING: &str = "compare the index with HEAD";
        let index = self.index()?;
        let tree = match self.head_commit()? {
            Some(id) => Some(self.repo.find_commit(id).and_then(|commit| commit.tree()).reading(DOING)?),
            None => None,
        };
        let mut options = self.diff_options();
        let diff =
            self.repo.diff_tree_to_index(tree.as_ref(), Some(&index), Some(&mut options)).reading(DOING)?;
        Ok(self.deltas(&diff, scope, files))
    }

    /// What the disk has and the index does not, of files that the index knows; and whether all of them were compared.
    ///
    /// # Errors
    /// `EGIT` when the repository cannot be read.
    pub fn unstaged_only(
        &self,
        scope: &[RelativePath],
        files: &dyn WorkFiles,
    ) -> Result<StatusScan, ToolError> {
        let mut scan = StatusScan::default();
        scan.complete = self.unstaged(&self.index()?, scope, files, &mut scan)?;
        Ok(scan)
    }

    pub(super) fn diff_options(&self) -> DiffOptions {
        let mut options = DiffOptions::new();
        options.ignore_submodules(false).include_typechange(true).disable_pathspec_match(true);
        if !self.checked.prefix().as_os_str().is_empty() {
            options.pathspec(self.checked.prefix());
        }
        options
    }

    /// The deltas of a comparison of objects, without what the caller may not see.
    pub(super) fn deltas(
        &self,
        diff: &git2::Diff<'_>,
        scope: &[RelativePath],
        files: &dyn WorkFiles,
    ) -> Vec<FileDelta> {
        let entry = |file: &git2::DiffFile<'_>| {
            file.exists().then(|| TreeEntry { id: file.id(), mode: u32::from(file.mode()) })
        };
        let mut found = Vec::new();
        for delta in diff.deltas() {
            if delta.status() == git2::Delta::Conflicted {
                continue;
            }
            let (old, new) = (delta.old_file(), delta.new_file());
            let path = new.path_bytes().or_else(|| old.path_bytes()).and_then(|path| self.in_project(path));
            let Some(path) = path.filter(|path| is_meant(scope, path) && files.shows(path)) else { continue };
            found.push(between(path, entry(&old), entry(&new)));
        }
        found
    }

    fn unstaged(
        &self,
        index: &git2::Index,
        scope: &[RelativePath],
        files: &dyn WorkFiles,
        scan: &mut StatusScan,
    ) -> Result<bool, ToolError> {
        let modes_count =
            self.repo.config().is_ok_and(|config| config.get_bool("core.filemode").unwrap_or(true));
        let index_time =
            self.repo.path().join("index").metadata().ok().map(|found| (found.mtime(), found.mtime_nsec()));
        for entry in index.iter() {
            if files.is_due() {
                return Ok(false);
            }
            let Some(path) = self.in_project(&entry.path) else { continue };
            if !is_meant(scope, &path) || !files.shows(&path) {
                continue;
            }
            if entry.flags & STAGE != 0 {
                if scan.conflicted.last() != Some(&path) {
                    scan.conflicted.push(path);
                }
                continue;
            }
            if entry.flags & ASSUME_UNCHANGED != 0 || entry.flags_extended & SKIP_WORKTREE != 0 {
                continue;
            }
            scan.unstaged.extend(self.compare_with_disk(path, &entry, modes_count, index_time, files)?);
        }
        Ok(true)
    }

    /// What differs between an entry of the index and the disk.
    fn compare_with_disk(
        &self,
        path: RelativePath,
        entry: &IndexEntry,
        modes_count: bool,
        index_time: Option<(i64, i64)>,
        files: &dyn WorkFiles,
    ) -> Result<Option<FileDelta>, ToolError> {
        let before = TreeEntry { id: entry.id, mode: entry.mode };
        // A submodule has its own repository, whose files are not the project's.
        if before.is_submodule() {
            return Ok(None);
        }
        let place = self.top().join(self.in_repository(&path));
        let found = place.symlink_metadata().ok();
        let is_same = found.as_ref().is_some_and(|found| has_stamp(entry, found, index_time));
        if before.is_link() {
            let target = || place.read_link().ok().map(|target| target.into_os_string().into_encoded_bytes());
            let is_unchanged = is_same
                || target().is_some_and(|target| {
                    Oid::hash_object(ObjectType::Blob, &target).is_ok_and(|id| id == entry.id)
                });
            return Ok((!is_unchanged)
                .then(|| FileDelta { kind: DeltaKind::Link, ..between(path, Some(before), None) }));
        }
        let deleted = |path| Ok(Some(between(path, Some(before), None)));
        let Some(found) = found else { return deleted(path) };
        if found.file_type().is_symlink() {
            return Ok(Some(FileDelta { kind: DeltaKind::Link, ..between(path, Some(before), None) }));
        }
        if !found.is_file() {
            return deleted(path);
        }
        let executable = if modes_count { found.mode() & 0o100 != 0 } else { before.is_executable() };
        let has_same_mode = executable == before.is_executable();
        if is_same && has_same_mode {
            return Ok(None);
        }
        let has_same_content = is_same || self.has_content(&path, entry.id, found.len(), files)?;
        let after = FileVersion { source: VersionSource::WorkTree, executable };
        let delta = FileDelta { after: Some(after), ..between(path, Some(before), None) };
        Ok((!has_same_content || !has_same_mode).then_some(delta))
    }

    /// Whether a file of the disk has the content of an object.
    fn has_content(
        &self,
        path: &RelativePath,
        id: Oid,
        size: u64,
        files: &dyn WorkFiles,
    ) -> Result<bool, ToolError> {
        if size > MAX_WORK_FILE_BYTES {
            // It is not read, and counts as changed.
            return Ok(false);
        }
        let Some(bytes) = files.read(path)? else { return Ok(false) };
        let hash = |bytes: &[u8]| Oid::hash_object(ObjectType::Blob, bytes).reading("hash a file");
        if hash(&bytes)? == id {
            return Ok(true);
        }
        let has_returns = bytes.contains(&b'\r');
        Ok(has_returns && hash(&self.line_endings(path).stored(bytes))? == id)
    }

    fn untracked(
        &self,
        index: &git2::Index,
        scope: &[RelativePath],
        files: &dyn WorkFiles,
        scan: &mut StatusScan,
    ) -> Result<bool, ToolError> {
        let mut others = OtherRepositories::default();
        let root = [RelativePath::root()];
        let starts = if scope.is_empty() { &root[..] } else { scope };
        let (mut complete, mut is_full) = (true, false);
        for start in starts {
            let mut visit = |path: &RelativePath| {
                let is_known = index.get_path(&self.in_repository(path), 0).is_some()
                    || (1..4).any(|stage| index.get_path(&self.in_repository(path), stage).is_some());
                if is_known || others.hold(&self.top().join(self.checked.prefix()), path) {
                    return true;
                }
                if scan.untracked.len() >= MAX_UNTRACKED {
                    is_full = true;
                    return false;
                }
                scan.untracked.push(path.clone());
                true
            };
            if files.size(start)?.is_some() {
                // A file that is named is meant unless git ignores it.
                if !self.is_ignored(start)? {
                    visit(start);
                }
                continue;
            }
            complete &= files.walk(start, &mut visit)?;
        }
        scan.untracked.sort();
        scan.untracked.dedup();
        Ok(complete && !is_full)
    }

    /// Whether an ignore file of git names a file.
    pub(super) fn is_ignored(&self, path: &RelativePath) -> Result<bool, ToolError> {
        self.repo.is_path_ignored(self.in_repository(path)).reading("read ignore files")
    }
}

/// Whether a file has the time and the size that the index has noted, and could not have changed since.
fn has_stamp(entry: &IndexEntry, found: &Metadata, index_time: Option<(i64, i64)>) -> bool {
    let (seconds, nanoseconds) = (i64::from(entry.mtime.seconds()), i64::from(entry.mtime.nanoseconds()));
    let is_settled = index_time.is_some_and(|(written, _)| seconds < written);
    is_settled
        && found.mtime() == seconds
        && (nanoseconds == 0 || found.mtime_nsec() == nanoseconds)
        && found.len() & u64::from(u32::MAX) == u64::from(entry.file_size)
        && found.len() > 0
}

/// Repositories inside the project, whose files are not the project's: what git does not look into.
#[derive(Default)]
struct OtherRepositories {
    known: BTreeMap<PathBuf, bool>,
}

/// Directories that are remembered.
const MAX_KNOWN: usize = 100_000;

impl OtherRepositories {
    fn hold(&mut self, project: &Path, path: &RelativePath) -> bool {
        let mut directory = path.parent();
        while !directory.is_root() {
            let place = project.join(directory.as_str());
            let is_one = match self.known.get(&place) {
                Some(known) => *known,
                None => {
                    let found = place.join(".git").symlink_metadata().is_ok();
                    if self.known.len() < MAX_KNOWN {
                        self.known.insert(place, found);
                    }
                    found
                }
            };
            if is_one {
                return true;
            }
            directory = directory.parent();
        }
        false
    }
}
