//! What a program decides: where the repository is, who writes, where it is delivered, and how long that may take.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tgp_contract::{RelativePath, ToolError};

use crate::{Remote, Secret};

/// How to keep one tool repository.
#[derive(Clone)]
pub struct ToolRepoOptions {
    /// The tool repository itself (`.tgp`), made when it is absent.
    pub root: PathBuf,
    pub remote: Option<Remote>,
    pub branch: String,
    pub author: Author,
    /// Sent to the remote's host and to the provider's API only, and shown nowhere.
    pub token: Option<Secret>,
    pub strategy: Strategy,
    pub derived: Arc<dyn GeneratedFile>,
    pub timeouts: GitTimeouts,
    pub limits: GitFetchLimits,
    pub surroundings: GitEnv,
    /// The clock that dates commits.
    pub clock: fn() -> SystemTime,
}

impl ToolRepoOptions {
    /// A local repository at `root` on branch `main`; everything else is set on the fields.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, author: Author, derived: Arc<dyn GeneratedFile>) -> Self {
        Self {
            root: root.into(),
            remote: None,
            branch: "main".to_owned(),
            author,
            token: None,
            strategy: Strategy::Direct,
            derived,
            timeouts: GitTimeouts::default(),
            limits: GitFetchLimits::default(),
            surroundings: GitEnv::default(),
            clock: SystemTime::now,
        }
    }
}

impl fmt::Debug for ToolRepoOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The remote may carry a password, so only its cleaned form (see `RepositoryStatus`) is ever shown.
        formatter
            .debug_struct("MemoryOptions")
            .field("root", &self.root)
            .field("branch", &self.branch)
            .field("strategy", &self.strategy)
            .finish_non_exhaustive()
    }
}

/// Who signs commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    pub name: String,
    pub email: String,
}

/// Where a persisted tool goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// To the branch itself (god mode).
    Direct,
    /// To its own branch, with a request that a person merges (gatekeeper mode).
    Request,
}

/// How long each part may take. Every wait of this crate ends by one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitTimeouts {
    /// Waiting for another writer of the same repository.
    pub lock: Duration,
    /// Asking the remote where its branch is.
    pub ask: Duration,
    /// The same when a program starts, which can continue with what is here.
    pub boot_ask: Duration,
    /// One fetch or push.
    pub transfer: Duration,
    /// All attempts of one delivery together, the wait for other deliveries included.
    pub delivery: Duration,
    /// One call of a provider's API.
    pub api: Duration,
}

impl Default for GitTimeouts {
    fn default() -> Self {
        Self {
            lock: Duration::from_secs(30),
            ask: Duration::from_secs(20),
            boot_ask: Duration::from_secs(5),
            transfer: Duration::from_secs(120),
            delivery: Duration::from_secs(240),
            api: Duration::from_secs(20),
        }
    }
}

/// How much a `git` process may take that talks to a remote. A remote decides what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitFetchLimits {
    /// The objects that are received at once, as they are sent.
    pub received_bytes: u64,
    /// Memory of each process. Git streams what is large, so only many or hostile objects need more.
    pub memory_bytes: u64,
}

impl Default for GitFetchLimits {
    fn default() -> Self {
        Self { received_bytes: 512 << 20, memory_bytes: 512 << 20 }
    }
}

/// What the `git` process may see of this machine. Nothing else of the environment reaches it.
#[derive(Clone)]
pub struct GitEnv {
    /// `PATH`, by which git (and ssh) are found.
    pub path: OsString,
    /// The real home, for ssh remotes only. ssh itself takes its keys and known hosts from the home that the system has
    /// for the user, whatever this says.
    pub home: Option<PathBuf>,
    /// `SSH_AUTH_SOCK`, for ssh remotes only.
    pub ssh_auth_sock: Option<OsString>,
    /// A proxy for http remotes, as `https_proxy` names it.
    pub proxy: Option<String>,
    /// A file of certificates that http remotes are checked against, instead of the system's.
    pub certificates: Option<PathBuf>,
}

impl Default for GitEnv {
    fn default() -> Self {
        Self {
            path: OsString::from("/usr/local/bin:/usr/bin:/bin"),
            home: None,
            ssh_auth_sock: None,
            proxy: None,
            certificates: None,
        }
    }
}

impl fmt::Debug for GitEnv {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A proxy can have a password in it.
        formatter.debug_struct("Surroundings").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A file that is computed from all others, such as `meta.json`: rebuilt on every tree, never merged.
pub trait GeneratedFile: Send + Sync {
    fn path(&self) -> &RelativePath;

    /// Computes the content for `tree`. Called on a thread that may block.
    ///
    /// # Errors
    /// Whatever keeps it from being computed; nothing is committed then.
    fn derive(&self, tree: &dyn RepositorySnapshot) -> Result<Vec<u8>, ToolError>;
}

/// The files of one tree.
pub trait RepositorySnapshot {
    /// Every plain file, sorted by path. Links and names that no working tree may hold are left out.
    ///
    /// # Errors
    /// `EGIT` when an object cannot be read.
    fn files(&self) -> Result<Vec<SnapshotFile>, ToolError>;

    /// The bytes of one of them.
    ///
    /// # Errors
    /// `ENOTFOUND` when it is not in the tree, `EGIT` when its object cannot be read.
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, ToolError>;
}

/// A file of a tree and the id of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    pub path: RelativePath,
    /// The git blob id, in hexadecimal.
    pub blob: String,
}

/// One change of the tool library, to be committed as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSet {
    pub files: Vec<PersistFile>,
    pub verb: CommitKind,
}

/// A file and the bytes that are committed for it, whatever the working tree says by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistFile {
    pub path: RelativePath,
    /// `None` removes it.
    pub content: Option<Vec<u8>>,
}

/// The first word of the commit message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitKind {
    /// The first commit: what a repository has before it has tools.
    Start,
    Forge,
    Refactor,
    Remove,
}

impl fmt::Display for CommitKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Start => "Start",
            Self::Forge => "Forge",
            Self::Refactor => "Refactor",
            Self::Remove => "Remove",
        })
    }
}
