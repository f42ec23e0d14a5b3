//! The face: one tool repository, its remote, and what can be done with them.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;
use tgp_contract::{Code, RelativePath, ToolError};

use crate::anchor::RepositoryAnchor;
use crate::branch_names::check_branch;
use crate::failure::blocking;
use crate::inner::Inner;
use crate::journal::Journal;
use crate::local::Context;
use crate::network::Network;
use crate::offline::Offline;
use crate::provider::Requests;
use crate::remote::Endpoint;
use crate::repair;
use crate::secret::Sieve;
use crate::{
    ChangeSet, Edited, History, Hydrated, Persisted, Remote, RepositoryStatus, Strategy, Synced, ToolEdit,
    ToolRepoOptions, history,
};

/// The memory of one tool repository. Cloning it is cheap, and all clones share one push.
#[derive(Clone)]
pub struct ToolRepo {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for ToolRepo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Memory").field("root", &self.inner.context.root).finish_non_exhaustive()
    }
}

impl ToolRepo {
    /// Opens the repository at `options.root`; makes one where there is none, and repairs what dead processes
    /// left.
    ///
    /// # Errors
    /// `ECONFIG` for a remote, branch or author that cannot be, `EGIT` when the repository cannot be used.
    pub async fn open(options: ToolRepoOptions) -> Result<Self, ToolError> {
        let mut sieve = Sieve::default();
        let opened = Self::prepare(options, &mut sieve).await;
        opened.map_err(|error| cleaned(&sieve, error))
    }

    /// Opens a repository that is only read: versions and status, without a remote. Nothing is made or repaired.
    ///
    /// # Errors
    /// `ECONFIG` for a branch that cannot be.
    pub fn open_to_read(options: &ToolRepoOptions) -> Result<Self, ToolError> {
        let context = context_of(options, true)?;
        let inner = Inner {
            context,
            strategy: options.strategy,
            timeouts: options.timeouts,
            network: None,
            requests: None,
            sieve: Sieve::default(),
            writer: Arc::default(),
            lane: tokio::sync::Mutex::new(()),
            set_aside: Mutex::default(),
            notes: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    async fn prepare(options: ToolRepoOptions, sieve: &mut Sieve) -> Result<Self, ToolError> {
        let context = context_of(&options, false)?;
        if let Some(token) = &options.token {
            sieve.add(token.expose());
        }
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
    /// unreachable remote alone is not an error.
    pub async fn hydrate(&self) -> Result<Hydrated, ToolError> {
        logged("hydrate", &self.inner.sieve, self.inner.hydrate()).await
    }

    /// Commits exactly `work` and delivers it.
    ///
    /// # Errors
    /// `ECONFLICT` when the remote has another change of the same file, `ESECURITY` for a path outside of the tools,
    /// `EVALIDATION` for work that is none, `EGIT` when it could not be committed. That it could not be *delivered*
    /// is not an error: see [`Persisted::why`].
    pub async fn persist(&self, work: ChangeSet) -> Result<Persisted, ToolError> {
        logged("persist", &self.inner.sieve, self.inner.persist(work)).await
    }

    /// Changes the file at `path` from its current content, commits that and delivers it, with no other change in
    /// between. What a person had left there uncommitted is committed first.
    ///
    /// # Errors
    /// That of `edit`, and nothing is changed then; `ESECURITY` when something other than a plain file is there;
    /// otherwise those of [`ToolRepo::persist`].
    pub async fn edit(&self, path: &RelativePath, edit: ToolEdit) -> Result<Edited, ToolError> {
        logged("edit", &self.inner.sieve, self.inner.edit(path, edit)).await
    }

    /// Commits what lies about, and exchanges everything with the remote.
    ///
    /// # Errors
    /// `EGIT` when the repository cannot be used.
    pub async fn sync(&self) -> Result<Synced, ToolError> {
        logged("sync", &self.inner.sieve, self.inner.sync()).await
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

    /// The state of the repository.
    ///
    /// # Errors
    /// `EGIT` when it cannot be read.
    pub async fn status(&self) -> Result<RepositoryStatus, ToolError> {
        let context = self.inner.context.clone();
        let remote = self.inner.network.as_ref().map(|network| self.inner.sieve.clean(&network.endpoint.url));
        blocking(move || history::status(&context, remote)).await
    }
}

/// What every operation on the repository needs to know.
///
/// # Errors
/// `ECONFIG` for a branch or a directory that cannot be.
fn context_of(options: &ToolRepoOptions, is_read_only: bool) -> Result<Context, ToolError> {
    check_branch(&options.branch).map_err(|error| {
        ToolError::new(Code::Config, error.message).help("set `git.branch`, to `main` for instance")
    })?;
    let root = std::path::absolute(&options.root).map_err(|error| {
        ToolError::new(Code::Config, format!("`{}` is not a folder: {error}", options.root.display()))
    })?;
    Ok(Context {
        root,
        branch: options.branch.clone(),
        author: options.author.clone(),
        derived: Arc::clone(&options.derived),
        clock: options.clock,
        patience: options.timeouts.lock,
        opens_requests: options.strategy == Strategy::Request
            && matches!(options.remote, Some(Remote::Hosted { .. })),
        is_read_only,
    })
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

/// Runs one piece of work on the repository, takes the secrets out of its error, and logs the result.
async fn logged<T>(
    what: &'static str,
    sieve: &Sieve,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let started = Instant::now();
    let done = work.await.map_err(|error| cleaned(sieve, error));
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match &done {
        Ok(_) => tracing::debug!(target: "git", ms, "{what}"),
        Err(error) => {
            tracing::warn!(target: "git", ms, code = error.code.as_str(), "{what}: {}", error.message)
        }
    }
    done
}
