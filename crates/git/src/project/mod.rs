//! The repository of the project, as the project's tools read it and commit to it.
//!
//! Everything here is local work on objects, the index and references with libgit2, which starts no program: no hook, no
//! clean or smudge filter, no external diff, no signing and no file system monitor, whatever the repository's configuration
//! and attributes say. Files of the work tree are read through [`WorkFiles`], so that a caller gets what it may see.

mod commit;
mod delta;
mod line_endings;
mod log;
mod plan;
mod revision;
mod scan;

use std::path::{Path, PathBuf};

use git2::{ErrorCode, Oid, Repository, RepositoryState};
use tgp_contract::{Code, RelativePath, ToolError};
use tgp_fs::{CheckedRepository, RepositoryAccess};

pub use commit::Committed;
pub use delta::{DeltaKind, FileDelta, FileVersion, ObjectId, VersionContent, VersionSource};
pub use log::{LogPage, LogRequest, LoggedCommit};
pub use plan::{CommitPlan, CommitRequest, PlannedFile};
pub use revision::VersionPair;
pub use scan::{StatusScan, WorkFiles};

/// Bytes of an index that is read; one entry takes about a hundred.
const MAX_INDEX_BYTES: u64 = 128 << 20;
/// Files that a repository may have.
pub(crate) const MAX_INDEX_ENTRIES: usize = 500_000;

/// The repository that a project is in.
pub struct ProjectRepo {
    repo: Repository,
    checked: CheckedRepository,
}

impl std::fmt::Debug for ProjectRepo {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ProjectRepo").field("top", &self.checked.top()).finish_non_exhaustive()
    }
}

/// Where `HEAD` is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadPosition {
    /// The branch; none when `HEAD` is detached.
    pub branch: Option<String>,
    /// The commit; none when the branch has no commit yet.
    pub commit: Option<String>,
}

impl ProjectRepo {
    /// Opens the repository that `project` is in.
    ///
    /// # Errors
    /// `ENOTFOUND` when it is in none; `EGIT` when it cannot be read; `ECONFIG` when `access` does not let it be used.
    pub fn open(project: &Path, access: &RepositoryAccess) -> Result<Self, ToolError> {
        match access.open(project)? {
            Some((checked, repo)) if !checked.is_bare() => Ok(Self { repo, checked }),
            _ => Err(ToolError::new(Code::NotFound, "the project is not in a git repository")
                .help("run `git init` in the project first")),
        }
    }

    /// The top of the work tree.
    fn top(&self) -> &Path {
        self.checked.top()
    }

    /// Where `HEAD` is.
    ///
    /// # Errors
    /// `EGIT` when it cannot be read.
    pub fn head(&self) -> Result<HeadPosition, ToolError> {
        let head = self.repo.find_reference("HEAD").reading("read HEAD")?;
        let name = head.symbolic_target().reading("read HEAD")?.map(str::to_owned);
        let Some(name) = name else {
            return Ok(HeadPosition { branch: None, commit: head.target().map(|id| id.to_string()) });
        };
        let branch = name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned();
        let commit = self.tip(&name)?.map(|id| id.to_string());
        Ok(HeadPosition { branch: Some(branch), commit })
    }

    /// The commit of `HEAD`; none before the first one.
    fn head_commit(&self) -> Result<Option<Oid>, ToolError> {
        match self.repo.head() {
            Ok(head) => head.peel_to_commit().map(|commit| Some(commit.id())).reading("read HEAD"),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(error).reading("read HEAD"),
        }
    }

    /// The commit of a reference; none where there is no such reference.
    fn tip(&self, name: &str) -> Result<Option<Oid>, ToolError> {
        match self.repo.refname_to_id(name) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error).reading("read a reference"),
        }
    }

    /// What git is in the middle of, in one word; none when nothing is.
    #[must_use]
    pub fn operation(&self) -> Option<&'static str> {
        match self.repo.state() {
            RepositoryState::Clean => None,
            RepositoryState::Merge => Some("merge"),
            RepositoryState::Revert | RepositoryState::RevertSequence => Some("revert"),
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => Some("cherry-pick"),
            RepositoryState::Bisect => Some("bisect"),
            RepositoryState::Rebase | RepositoryState::RebaseInteractive | RepositoryState::RebaseMerge => {
                Some("rebase")
            }
            RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => Some("am"),
        }
    }

    /// The index, when it is not larger than what is read.
    fn index(&self) -> Result<git2::Index, ToolError> {
        let file = self.repo.path().join("index");
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        if bytes > MAX_INDEX_BYTES {
            return Err(too_large(&format!("its index has {bytes} bytes, more than {MAX_INDEX_BYTES}")));
        }
        let index = self.repo.index().map_err(|error| {
            let message = format!("cannot read the index: {}", error.message());
            ToolError::new(Code::Git, message)
                .help("a sparse or split index is not supported: `git sparse-checkout disable` or `git update-index --no-split-index` rewrites it")
        })?;
        if index.len() > MAX_INDEX_ENTRIES {
            return Err(too_large(&format!("it has {} files, more than {MAX_INDEX_ENTRIES}", index.len())));
        }
        Ok(index)
    }

    /// The path in the repository of a file of the project.
    fn in_repository(&self, path: &RelativePath) -> PathBuf {
        let prefix = self.checked.prefix();
        if path.is_root() { prefix.to_owned() } else { prefix.join(path.as_str()) }
    }

    /// The file of the project that a path of the repository is; none for one outside of the project, and for a name that
    /// no tool could use.
    fn in_project(&self, path: &[u8]) -> Option<RelativePath> {
        let path = Path::new(std::str::from_utf8(path).ok()?);
        let path = path.strip_prefix(self.checked.prefix()).ok()?;
        RelativePath::new(path.to_str()?).ok().filter(|path| !path.is_root())
    }
}

fn too_large(what: &str) -> ToolError {
    ToolError::new(Code::Git, format!("the repository is too large for this tool: {what}"))
        .help("use git itself in this repository")
}

/// Says what could not be done when libgit2 failed.
trait Reading<T> {
    fn reading(self, doing: &str) -> Result<T, ToolError>;
}

impl<T> Reading<T> for Result<T, git2::Error> {
    fn reading(self, doing: &str) -> Result<T, ToolError> {
        self.map_err(|error| {
            let help = match error.code() {
                ErrorCode::Locked => {
                    "another git process works in this repository; try again when it has ended"
                }
                _ => "run `git fsck` and `git status` in the project to see what is wrong",
            };
            ToolError::new(Code::Git, format!("cannot {doing}: {}", error.message())).help(help)
        })
    }
}
