//! The repository on this machine, opened by the one writer: references, commits, and moving the branch.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::{Config, ConfigLevel, FileMode, Oid, Repository, RepositoryOpenFlags, Signature, Time, Tree};
use tgp_contract::{Code, ToolError};
use tgp_fs::{check_own_repository, read_plain, replace_plain};

use crate::branch_names::message;
use crate::entry::Entry;
use crate::failure::{At, Doing};
use crate::lock::Lock;
use crate::rebase::{self, ToolEdit};
use crate::worktree::Worktree;
use crate::{Author, CommitKind, GeneratedFile, PersistFile};

/// What our own git2 reads instead of every configuration file. The branch keeps a log from which it can be restored;
/// syncing is done by [`crate::fsync`].
const SETTINGS: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
                        \tlogAllRefUpdates = true\n";

/// The most sentences about repairs; more would not be read.
pub(crate) const MAX_NOTES: usize = 100;

/// What every operation on the repository needs to know.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) root: PathBuf,
    pub(crate) branch: String,
    pub(crate) author: Author,
    pub(crate) derived: Arc<dyn GeneratedFile>,
    pub(crate) clock: fn() -> SystemTime,
    pub(crate) patience: Duration,
    /// Whether there is an API that opens requests; otherwise people do, and no request is waited for.
    pub(crate) opens_requests: bool,
    /// Whether the repository is only read: it may be another user's, and no settings were written for it.
    pub(crate) is_read_only: bool,
}

impl Context {
    pub(crate) fn git(&self) -> PathBuf {
        self.root.join(".git")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.join(crate::branch_names::STATE)
    }

    pub(crate) fn writer_lock(&self) -> PathBuf {
        self.state().join("git.lock")
    }

    pub(crate) fn lane_lock(&self) -> PathBuf {
        self.state().join("git-network.lock")
    }

    pub(crate) fn local(&self, branch: &str) -> String {
        format!("refs/heads/{branch}")
    }

    pub(crate) fn tracking(&self, branch: &str) -> String {
        format!("refs/remotes/origin/{branch}")
    }
}

/// The repository in the hands of its writer.
pub(crate) struct LockedRepo {
    pub(crate) context: Context,
    pub(crate) repo: Repository,
    pub(crate) worktree: Worktree,
    /// Sentences about what was repaired or left out.
    pub(crate) notes: Vec<String>,
    // Dropped last: no other process writes until everything above is closed.
    pub(crate) lock: Lock,
}

impl LockedRepo {
    /// Waits for the lock and opens the repository. A move that a killed process left half done is finished first.
    pub(crate) fn open(context: &Context) -> Result<Self, ToolError> {
        let lock = Lock::take(&context.writer_lock(), context.patience)?;
        let mut local = Self::open_with(context, lock)?;
        if local.lock.abandoned.is_some() {
            crate::repair::after_a_kill(&mut local)?;
        }
        crate::repair::remove_dead_locks(&mut local)?;
        local.finish_move()?;
        Ok(local)
    }

    pub(crate) fn open_with(context: &Context, lock: Lock) -> Result<Self, ToolError> {
        let worktree = Worktree::open(&context.root)?;
        let repo = open_repository(context).doing("cannot open the tool repository")?;
        Ok(Self { context: context.clone(), repo, worktree, notes: Vec::new(), lock })
    }

    /// Adds a sentence for people, up to [`MAX_NOTES`].
    pub(crate) fn note(&mut self, sentence: impl Into<String>) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(sentence.into());
        }
    }

    pub(crate) fn reference(&self, name: &str) -> Result<Option<Oid>, ToolError> {
        match self.repo.refname_to_id(name) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error).doing("cannot read a reference"),
        }
    }

    pub(crate) fn head(&self) -> Result<Option<Oid>, ToolError> {
        self.reference(&self.context.local(&self.context.branch))
    }

    /// Where the remote's branch was when it was last read.
    pub(crate) fn tracking(&self, branch: &str) -> Result<Option<Oid>, ToolError> {
        self.reference(&self.context.tracking(branch))
    }

    pub(crate) fn set(&self, name: &str, id: Oid, why: &str) -> Result<(), ToolError> {
        if self.reference(name)? == Some(id) {
            return Ok(());
        }
        self.repo.reference(name, id, true, why).doing("cannot move a reference")?;
        Ok(())
    }

    pub(crate) fn remove_reference(&self, name: &str) -> Result<(), ToolError> {
        match self.repo.find_reference(name).and_then(|mut reference| reference.delete()) {
            Err(error) if error.code() != git2::ErrorCode::NotFound => {
                Err(error).doing("cannot remove a reference")
            }
            _ => Ok(()),
        }
    }

    /// The names of all branches below `prefix` with the commits they point to.
    pub(crate) fn branches(&self, prefix: &str) -> Result<Vec<(String, Oid)>, ToolError> {
        const DOING: &str = "cannot list branches";
        let mut found = Vec::new();
        for reference in self.repo.references_glob(&format!("refs/heads/{prefix}*")).doing(DOING)? {
            let Ok(reference) = reference else { continue };
            let name =
                reference.name().ok().and_then(|name| name.strip_prefix("refs/heads/")).map(str::to_owned);
            if let Some((name, id)) = name.zip(reference.target()) {
                found.push((name, id));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Whether an object is here. It is not read: one that a remote names may be of any size.
    pub(crate) fn has_object(&self, id: Oid) -> Result<bool, ToolError> {
        Ok(self.repo.odb().doing("cannot read an object")?.exists(id))
    }

    /// True when `commit` is `tip` or one of its ancestors.
    pub(crate) fn has(&self, tip: Oid, commit: Oid) -> Result<bool, ToolError> {
        if tip == commit {
            return Ok(true);
        }
        match self.repo.graph_descendant_of(tip, commit) {
            Ok(answer) => Ok(answer),
            // A commit that is not here is not an ancestor.
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error).doing("cannot walk the history"),
        }
    }

    pub(crate) fn tree(&self, commit: Option<Oid>) -> Result<Tree<'_>, ToolError> {
        match commit {
            None => rebase::empty_tree(&self.repo),
            Some(id) => {
                self.repo.find_commit(id).and_then(|commit| commit.tree()).doing("cannot read a commit")
            }
        }
    }

    /// What has to be synced when a branch moved.
    pub(crate) fn reference_files(&self, branch: &str) -> Vec<PathBuf> {
        let file = self.context.git().join(self.context.local(branch));
        file.parent().map(Path::to_owned).into_iter().chain([file.clone()]).collect()
    }

    fn signature(&self) -> Result<Signature<'static>, ToolError> {
        let now = (self.context.clock)().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let time = Time::new(i64::try_from(now).unwrap_or(i64::MAX), 0);
        let Author { name, email } = &self.context.author;
        Signature::new(name, email, &time).map_err(|error| {
            ToolError::new(Code::Config, format!("commits cannot be signed by `{name}`: {}", error.message()))
                .help("set `git.auth.user` and `git.auth.email`")
        })
    }

    /// Commits exactly `files` on top of `parent`, and moves nothing. `None` when they are as they were.
    pub(crate) fn commit(
        &self,
        parent: Option<Oid>,
        files: &[PersistFile],
        verb: CommitKind,
        derived: Option<&dyn GeneratedFile>,
    ) -> Result<Option<Oid>, ToolError> {
        let base = self.tree(parent)?;
        let mut edits: Vec<ToolEdit> = Vec::new();
        for file in files {
            let path = PathBuf::from(file.path.as_str());
            let old = rebase::entry(&base, &path)?;
            let new = match &file.content {
                None => None,
                Some(content) => {
                    let mode =
                        old.filter(|old| old.is_plain()).map_or(i32::from(FileMode::Blob), |old| old.mode);
                    Some(Entry { id: self.repo.blob(content).doing("cannot write an object")?, mode })
                }
            };
            if old != new {
                edits.push((path, new));
            }
        }
        if edits.is_empty() {
            return Ok(None);
        }
        let mut tree = rebase::edit(&self.repo, &base, &edits)?;
        if let Some(derived) = derived {
            tree = rebase::with_derived(&self.repo, &tree, derived)?;
        }
        self.write_commit(parent, &tree, &message(verb, files)).map(Some)
    }

    pub(crate) fn write_commit(
        &self,
        parent: Option<Oid>,
        tree: &Tree<'_>,
        message: &str,
    ) -> Result<Oid, ToolError> {
        const DOING: &str = "cannot write a commit";
        let signature = self.signature()?;
        let parent = parent.map(|id| self.repo.find_commit(id)).transpose().doing(DOING)?;
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        self.repo.commit(None, &signature, &signature, message, tree, &parents).doing(DOING)
    }
}

pub(crate) fn open_repository(context: &Context) -> Result<Repository, git2::Error> {
    if context.is_read_only { open_to_read(&context.root) } else { open_repository_at(&context.root) }
}

/// The repository without any configuration. Its objects and references are only read, so it may belong to another user.
fn open_to_read(root: &Path) -> Result<Repository, git2::Error> {
    // Asked each time: its owner may replace it while it is read.
    check_own_repository(root).map_err(|error| git2::Error::from_str(&error.message))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the tool repository, none of whose files is outside of it"
    )]
    let repo = Repository::open_bare(root.join(".git"))?;
    repo.set_config(&Config::new()?)?;
    Ok(repo)
}

/// Files that the library reads when it opens a repository, and before the first object.
const READ_AT_OPENING: [&str; 5] = ["config", "HEAD", "commondir", "packed-refs", "objects/info/alternates"];

/// The repository of a tool root, with nothing of the user's own configuration.
pub(crate) fn open_repository_at(root: &Path) -> Result<Repository, git2::Error> {
    let git = root.join(".git");
    // The library would wait for a pipe. The audit is opened before `prepare` has looked for one.
    let is_special = |file: &str| {
        let found = git.join(file).symlink_metadata();
        found.is_ok_and(|found| !(found.is_file() || found.is_dir() || found.is_symlink()))
    };
    if let Some(file) = READ_AT_OPENING.iter().find(|file| is_special(file)) {
        return Err(git2::Error::from_str(&format!("`.git/{file}` is a pipe or a device")));
    }
    let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
    #[expect(clippy::disallowed_methods, reason = "the kernel's own repository, which `prepare` has checked")]
    let repo = Repository::open_ext(git, flags, &[] as &[&Path])?;
    let mut config = Config::new()?;
    config.add_file(&root.join(crate::branch_names::STATE).join(SETTINGS_NAME), ConfigLevel::Local, true)?;
    repo.set_config(&config)?;
    // Whatever `core.worktree` says.
    repo.set_workdir(root, false)?;
    Ok(repo)
}

pub(crate) const SETTINGS_NAME: &str = "git-settings";

/// Writes the settings that [`open_repository`] reads. Their text never changes, so a race writes the same again.
pub(crate) fn write_settings(state: &Path) -> Result<(), ToolError> {
    let path = state.join(SETTINGS_NAME);
    if read_plain(&path, SETTINGS.len() as u64).is_some_and(|text| text == SETTINGS.as_bytes()) {
        return Ok(());
    }
    replace_plain(&path, SETTINGS.as_bytes()).at("cannot write", &path)
}
