//! Two versions of the project, compared.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use git2::Oid;
use tgp_contract::{Code, RelativePath, ToolError};

use super::delta::{FileDelta, TreeEntry, between};
use super::scan::is_meant;
use super::{ProjectRepo, Reading, WorkFiles, too_large};
use crate::bounds::{self, Stop};
use crate::entry::Entry;

/// Characters of a revision.
const MAX_REVISION: usize = 200;

/// Which two versions are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPair {
    /// The commit of `HEAD` with the index.
    Staged,
    /// The index with the disk.
    Unstaged,
    /// A commit with the disk.
    WithDisk { from: String },
    /// Two commits.
    Commits { from: String, to: String },
}

impl ProjectRepo {
    /// What differs, without what the caller may not see, in the order of the paths; and whether all of it was compared.
    ///
    /// # Errors
    /// `ENOTFOUND` for a revision that does not exist; `EGIT` when the repository cannot be read.
    pub fn compare(
        &self,
        what: &VersionPair,
        scope: &[RelativePath],
        files: &dyn WorkFiles,
    ) -> Result<(Vec<FileDelta>, bool), ToolError> {
        let (mut deltas, complete) = match what {
            VersionPair::Staged => (self.staged(scope, files)?, true),
            VersionPair::Unstaged => {
                let scan = self.unstaged_only(scope, files)?;
                (scan.unstaged, scan.complete)
            }
            VersionPair::WithDisk { from } => {
                self.compare_with_work_tree(self.commit_of(from)?, scope, files)?
            }
            VersionPair::Commits { from, to } => {
                (self.compare_commits(Some(self.commit_of(from)?), self.commit_of(to)?, scope, files)?, true)
            }
        };
        deltas.sort_by(|one, other| one.path.cmp(&other.path));
        Ok((deltas, complete))
    }

    pub(super) fn compare_commits(
        &self,
        from: Option<Oid>,
        to: Oid,
        scope: &[RelativePath],
        files: &dyn WorkFiles,
    ) -> Result<Vec<FileDelta>, ToolError> {
        let tree =
            |id: Oid| self.repo.find_commit(id).map(|commit| commit.tree_id()).reading("read a commit");
        let (from, to) = (from.map(tree).transpose()?, tree(to)?);
        let mut changes = Vec::new();
        bounds::compare(&self.repo, from, Some(to), &mut changes).map_err(|stop| match stop {
            Stop::Limit(limit) => too_large(&limit.to_string()),
            Stop::Failed(error) => error,
        })?;
        let entry =
            |entry: Entry| TreeEntry { id: entry.id, mode: u32::try_from(entry.mode).unwrap_or_default() };
        let mut found = Vec::new();
        for change in changes {
            let Some(path) = self.in_project(change.path.as_os_str().as_bytes()) else { continue };
            if is_meant(scope, &path) && files.shows(&path) {
                found.push(between(path, change.old.map(entry), change.new.map(entry)));
            }
        }
        Ok(found)
    }

    fn compare_with_work_tree(
        &self,
        from: Oid,
        scope: &[RelativePath],
        files: &dyn WorkFiles,
    ) -> Result<(Vec<FileDelta>, bool), ToolError> {
        const DOING: &str = "compare a commit with the index";
        let tree = self.repo.find_commit(from).and_then(|commit| commit.tree()).reading(DOING)?;
        let index = self.index()?;
        let mut options = self.diff_options();
        let diff =
            self.repo.diff_tree_to_index(Some(&tree), Some(&index), Some(&mut options)).reading(DOING)?;
        let mut deltas: BTreeMap<RelativePath, FileDelta> =
            self.deltas(&diff, scope, files).into_iter().map(|delta| (delta.path.clone(), delta)).collect();
        let scan = self.unstaged_only(scope, files)?;
        for on_disk in scan.unstaged {
            match deltas.get_mut(&on_disk.path) {
                Some(delta) => (delta.kind, delta.after) = (on_disk.kind, on_disk.after),
                // The commit has what the index has.
                None => {
                    deltas.insert(on_disk.path.clone(), on_disk);
                }
            }
        }
        deltas.retain(|_, delta| delta.before.is_some() || delta.after.is_some());
        Ok((deltas.into_values().collect(), scan.complete))
    }

    /// The commit that a revision names. Searches through commit messages and paths of a commit are not revisions here.
    pub(super) fn commit_of(&self, revision: &str) -> Result<Oid, ToolError> {
        let is_allowed = |character: char| character.is_alphanumeric() || "._/~^@{}-+#=".contains(character);
        let shown: String = revision.chars().filter(|character| !character.is_control()).take(80).collect();
        let is_plain = !revision.is_empty()
            && revision.len() <= MAX_REVISION
            && !revision.starts_with('-')
            && !revision.contains("{/")
            && !revision.contains("..")
            && revision.chars().all(is_allowed);
        if !is_plain {
            return Err(ToolError::new(Code::Validation, format!("invalid revision `{shown}`"))
                .help("name a branch, a tag, a commit id, or such as `HEAD~2`"));
        }
        let unknown = |_| {
            ToolError::new(Code::NotFound, format!("no commit is called `{shown}`"))
                .help("`git_log` lists the commits of the current branch")
        };
        self.repo
            .revparse_single(revision)
            .and_then(|object| object.peel_to_commit())
            .map(|commit| commit.id())
            .map_err(unknown)
    }
}
