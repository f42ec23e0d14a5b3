//! The face: one tool repository, its remote, and what can be done with them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use git2::Oid;
use serde_json::Value;
use tgp_contract::{Code, RelativePath, ToolError};

use crate::anchor::RepositoryAnchor;
use crate::failure::blocking;
use crate::journal::Journal;
use crate::local::{Context, Local, MAX_NOTES};
use crate::lock::{Lock, busy};
use crate::network::Network;
use crate::offline::Offline;
use crate::provider::Requests;
use crate::remote::Endpoint;
use crate::repair;
use crate::secret::Sieve;
use crate::{
    Conflict, Edit, Edited, History, Hydrated, MemoryOptions, Persisted, Remote, Status, Strategy, Synced,
    Timeouts, Work, history,
};
use tgp_fs::jittered;

/// Files that lost a conflict before they were committed are remembered up to this number; then the oldest news is
/// forgotten, and their content still is on its branch.
const MAX_SET_ASIDE: usize = 10_000;
/// A push takes tens of milliseconds at least, so whoever waits for one looks seldom.
const LANE_LOOK: Duration = Duration::from_millis(20);

/// The memory of one tool repository. Cloning it is cheap, and all clones share one push.
#[derive(Clone)]
pub struct Memory {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) context: Context,
    pub(crate) strategy: Strategy,
    pub(crate) timeouts: Timeouts,
    pub(crate) network: Option<Network>,
    pub(crate) requests: Option<Requests>,
    sieve: Sieve,
    /// Keeps the threads of this process from racing for the file lock.
    writer: Arc<tokio::sync::Mutex<()>>,
    lane: tokio::sync::Mutex<()>,
    /// Uncommitted content that had to give way to the remote's, until somebody asks to persist it.
    set_aside: Mutex<BTreeMap<RelativePath, (Oid, Conflict)>>,
    notes: Mutex<Vec<String>>,
}

/// The right to talk to the remote: one at a time for each repository, so that a push delivers for all who wait.
pub(crate) struct Lane<'m> {
    _turn: tokio::sync::MutexGuard<'m, ()>,
    _lock: Lock,
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Memory").field("root", &self.inner.context.root).finish_non_exhaustive()
    }
}

impl Memory {
    /// Opens the repository at `options.root`; makes one where there is none, and mends what dead processes left.
    ///
    /// # Errors
    /// `ECONFIG` for a remote, branch or author that cannot be, `EGIT` when the repository cannot be used.
    pub async fn open(options: MemoryOptions) -> Result<Self, ToolError> {
        let mut sieve = Sieve::default();
        let opened = Self::prepare(options, &mut sieve).await;
        opened.map_err(|error| cleaned(&sieve, error))
    }

    async fn prepare(options: MemoryOptions, sieve: &mut Sieve) -> Result<Self, ToolError> {
        if !git2::Reference::is_valid_name(&format!("refs/heads/{}", options.branch)) {
            let message = format!("`{}` is no name for a branch", options.branch);
            return Err(
                ToolError::new(Code::Config, message).help("set `git.branch`, to `main` for instance")
            );
        }
        if let Some(token) = &options.token {
            sieve.add(token.expose());
        }
        let root = std::path::absolute(&options.root).map_err(|error| {
            ToolError::new(Code::Config, format!("`{}` is no folder: {error}", options.root.display()))
        })?;
        let context = Context {
            root,
            branch: options.branch,
            author: options.author,
            derived: options.derived,
            clock: options.clock,
            patience: options.timeouts.lock,
            opens_requests: options.strategy == Strategy::Request
                && matches!(options.remote, Some(Remote::Hosted { .. })),
        };
        let beside = context.root.parent().unwrap_or(Path::new("/")).to_owned();
        let endpoint = options
            .remote
            .as_ref()
            .map(|remote| Endpoint::new(remote, options.token.as_ref(), &beside, sieve));
        let network = endpoint.transpose()?.map(|endpoint| Network {
            endpoint,
            sieve: sieve.clone(),
            surroundings: options.surroundings,
            timeouts: options.timeouts,
            limits: options.limits,
            git: context.git(),
            state: context.state(),
            offline: Offline::new(&context.state(), context.clock),
            anchors: RepositoryAnchor::at(&context.root, context.clock),
            refuses_anchors: Arc::default(),
            is_disputed: Arc::default(),
        });
        let requests = match &options.remote {
            Some(Remote::Hosted { provider, repo, api_base_url, .. })
                if options.strategy == Strategy::Request =>
            {
                let base = api_base_url.as_deref().unwrap_or(provider.api_base());
                Some(Requests::new(
                    *provider,
                    base,
                    repo,
                    options.token,
                    options.timeouts.api,
                    sieve.clone(),
                )?)
            }
            _ => None,
        };
        let opened = context.clone();
        let notes =
            blocking(move || repair::prepare(&opened).map(|mut local| std::mem::take(&mut local.notes)))
                .await?;
        let inner = Inner {
            context,
            strategy: options.strategy,
            timeouts: options.timeouts,
            network,
            requests,
            sieve: sieve.clone(),
            writer: Arc::default(),
            lane: tokio::sync::Mutex::new(()),
            set_aside: Mutex::default(),
            notes: Mutex::new(notes),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Brings the repository up to what the remote has; local commits are kept on top.
    ///
    /// # Errors
    /// `EGIT` when the remote cannot be reached and there is nothing here, or when the repository cannot be used. An
    /// unreachable remote alone is no error.
    pub async fn hydrate(&self) -> Result<Hydrated, ToolError> {
        self.inner.hydrate().await.map_err(|error| cleaned(&self.inner.sieve, error))
    }

    /// Commits exactly `work` and delivers it.
    ///
    /// # Errors
    /// `ECONFLICT` when the remote has another change of the same file, `ESECURITY` for a path outside of the tools,
    /// `EVALIDATION` for work that is none, `EGIT` when it could not be committed. That it could not be *delivered*
    /// is no error: see [`Persisted::why`].
    pub async fn persist(&self, work: Work) -> Result<Persisted, ToolError> {
        self.inner.persist(work).await.map_err(|error| cleaned(&self.inner.sieve, error))
    }

    /// Changes the file at `path` from what stands there, commits that and delivers it, with nobody else's change in
    /// between. What a person had left there uncommitted is committed first.
    ///
    /// # Errors
    /// That of `edit`, and nothing is changed then; `ESECURITY` when something else than a plain file stands there;
    /// otherwise those of [`Memory::persist`].
    pub async fn edit(&self, path: &RelativePath, edit: Edit) -> Result<Edited, ToolError> {
        self.inner.edit(path, edit).await.map_err(|error| cleaned(&self.inner.sieve, error))
    }

    /// Commits what lies about, and exchanges everything with the remote.
    ///
    /// # Errors
    /// `EGIT` when the repository cannot be used.
    pub async fn sync(&self) -> Result<Synced, ToolError> {
        self.inner.sync().await.map_err(|error| cleaned(&self.inner.sieve, error))
    }

    /// A few words that are kept beside the tools.
    #[must_use]
    pub fn anchor(&self) -> RepositoryAnchor {
        RepositoryAnchor::at(&self.inner.context.root, self.inner.context.clock)
    }

    /// The newest versions of `path`, or of everything; at most `limit`.
    ///
    /// # Errors
    /// `EGIT` when the history cannot be read.
    pub async fn history(&self, path: Option<&RelativePath>, limit: usize) -> Result<History, ToolError> {
        let question = history::Question {
            path: path.cloned(),
            limit,
            strategy: self.inner.strategy,
            has_remote: self.inner.network.is_some(),
        };
        let context = self.inner.context.clone();
        // Reading needs no lock: objects never change, and a reference is read whole.
        blocking(move || history::history(&context, &question)).await
    }

    /// The files that differ between two commits of the branch, whatever lies between them; `None` when one of them is
    /// not here (any more) or they are too large to be compared.
    ///
    /// # Errors
    /// `EGIT` when the trees cannot be read.
    pub async fn changed(&self, from: &str, to: &str) -> Result<Option<Vec<RelativePath>>, ToolError> {
        let (context, from, to) = (self.inner.context.clone(), from.to_owned(), to.to_owned());
        blocking(move || history::changed(&context, &from, &to)).await
    }

    /// Whether the working tree may still be behind the branch. Who reads the branch first, and finds then that it is
    /// not, finds the files of that commit or of a newer one.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        Journal::exists(&self.inner.context.state())
    }

    /// Where the repository stands.
    ///
    /// # Errors
    /// `EGIT` when it cannot be read.
    pub async fn status(&self) -> Result<Status, ToolError> {
        let context = self.inner.context.clone();
        let remote = self.inner.network.as_ref().map(|network| self.inner.sieve.clean(&network.endpoint.url));
        blocking(move || history::status(&context, remote)).await
    }
}

impl Inner {
    /// Runs `work` as the one writer of the repository.
    pub(crate) async fn local<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Local) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let turn = Arc::clone(&self.writer).lock_owned().await;
        let context = self.context.clone();
        let (result, notes) = blocking(move || {
            let _turn = turn;
            let mut local = Local::open(&context)?;
            let result = work(&mut local);
            Ok((result, std::mem::take(&mut local.notes)))
        })
        .await?;
        if !notes.is_empty() {
            let mut kept = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(notes);
            kept.truncate(MAX_NOTES);
        }
        result
    }

    /// Waits for the right to talk to the remote, but not beyond `deadline`.
    pub(crate) async fn lane(&self, deadline: Instant) -> Result<Lane<'_>, ToolError> {
        let lane = self.free_lane(deadline).await?;
        lane.ok_or_else(|| busy(&self.context.lane_lock(), self.timeouts.delivery))
    }

    /// The same; `None` when somebody else talks to the remote for longer than that.
    pub(crate) async fn free_lane(&self, deadline: Instant) -> Result<Option<Lane<'_>>, ToolError> {
        let path = self.context.lane_lock();
        let Ok(turn) = tokio::time::timeout_at(deadline.into(), self.lane.lock()).await else {
            return Ok(None);
        };
        loop {
            if let Some(lock) = Lock::try_take(&path)? {
                return Ok(Some(Lane { _turn: turn, _lock: lock }));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            tokio::time::sleep(jittered(LANE_LOOK)).await;
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeouts.delivery
    }

    /// What was mended since somebody last asked.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        notes.into_iter().map(|note| self.sieve.clean(&note)).collect()
    }

    pub(crate) fn remember_set_aside(&self, blobs: Vec<(RelativePath, Oid, Conflict)>) {
        let mut known = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, blob, conflict) in blobs {
            if known.len() >= MAX_SET_ASIDE {
                known.pop_first();
            }
            known.insert(path, (blob, conflict));
        }
    }

    /// The conflict that took exactly this content away from under its writer. It is told once: who persists the
    /// same bytes again after that means it.
    pub(crate) fn take_set_aside(&self, path: &RelativePath, blob: Option<Oid>) -> Option<Conflict> {
        let mut known = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, conflict) = known.remove(path)?;
        (Some(kept) == blob).then_some(conflict)
    }
}

/// The last line of defence: whatever an error says, it says it without secrets.
fn cleaned(sieve: &Sieve, mut error: ToolError) -> ToolError {
    error.message = sieve.clean(&error.message);
    for value in error.details.values_mut() {
        if let Value::String(text) = value {
            *text = sieve.clean(text);
        }
    }
    error
}
