//! The tools of a project: written, committed, described and found again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tgp_contract::{
    Actor, Code, FileEffect, FileSystem, FsError, RelativePath, Root, ToolError, Visibility, canonical,
};
use tgp_git::{Conflict, HydrateOutcome, ToolEdit, ToolRepo, ToolRepoOptions};
use tgp_registry::{Hit, Index, ReuseVerdict, SearchOutcome, Searcher, is_tool};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::catalogue::{MetaSync, ToolDescriber};
use super::duplicates::{DuplicatePolicy, similar_tool};
use super::host_store::{FileEdit, HostStore, no_git};
use super::index_state::IndexState;
use super::remote::RemoteName;
use super::{META_FILE, TOOLS_DIRECTORY};
use super::{SyncResult, ToolLog, ToolVersion, ToolWriteResult};
use crate::ToolRuntime;
use tgp_router::{ApprovedSnapshot, PointOfNoReturn};

/// Similar tools that a write names at most.
const MAX_SIMILAR: usize = 5;

/// Bytes of a file in the tool repository: every version of it stays in every clone's history.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// How often a patch is made anew because another process changes the same file.
const MAX_PATCH_ATTEMPTS: usize = 8;

/// Versions that are searched where some may not be seen.
const MAX_LOOKED_THROUGH: usize = 1_000;

/// How long a search waits until new tools are embedded; those that are not are compared by their words.
const SEARCH_PATIENCE: Duration = Duration::from_secs(60);
/// The same for a write, which only wants to know whether there is a double.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// Under which conditions a file is written.
pub struct WriteOptions<'a> {
    pub actor: &'a Actor,
    /// Tools that are known to do the same, and do not do.
    pub override_similar: &'a [RelativePath],
    /// What the user has agreed to.
    pub agreement: Option<Arc<ApprovedSnapshot>>,
    pub point: PointOfNoReturn,
    /// What the writer may see: only such tools are named as doing the same.
    pub visible: Visibility,
}

/// What is known of a file before it is written.
struct AdmittedWrite {
    /// Its content until now.
    stood: Option<Vec<u8>>,
    /// Which tools do what it would do.
    similar: Vec<Hit>,
    /// What the checker finds in it.
    errors: Vec<String>,
}

/// Where the tools are kept.
enum ToolStore {
    Repository(ToolRepo),
    /// Why the repository cannot be used: tools can be found and run without it, but not written.
    Unusable(ToolError),
    /// A repository whose files this process must not change, and why.
    ReadOnly(ToolRepo, ToolError),
    Host(Arc<HostStore>),
}

/// See the module's documentation.
pub struct ToolLibrary {
    store: ToolStore,
    pub(super) catalogue: Arc<ToolDescriber>,
    pub(super) searcher: Searcher,
    on_duplicate: DuplicatePolicy,
    has_remote: bool,
    remote: Option<RemoteName>,
    head_file: PathBuf,
    pub(super) known: Mutex<IndexState>,
}

/// What a person should know about the start.
#[derive(Clone, Debug, Default)]
pub struct StartupNotices {
    /// Conflicts and repairs, one sentence each.
    pub notices: Vec<String>,
    /// Why the remote could not be reached, when the local tools are used without it.
    pub offline: Option<String>,
}

impl std::fmt::Debug for ToolLibrary {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Library").field("on_duplicate", &self.on_duplicate).finish_non_exhaustive()
    }
}

impl ToolLibrary {
    /// Opens the repository, and brings it up to date with its remote. `git` gets this library's own way to make
    /// `meta.json`. Also answers what a person should know. With a reason in `read_only` the repository is only read.
    ///
    /// # Errors
    /// `EGIT` when there is no repository and none can be had.
    pub async fn open(
        forge: Arc<ToolRuntime>,
        searcher: Searcher,
        on_duplicate: DuplicatePolicy,
        git: impl FnOnce(Arc<dyn tgp_git::GeneratedFile>) -> ToolRepoOptions,
        state: &Path,
        read_only: Option<ToolError>,
    ) -> Result<(Self, StartupNotices), ToolError> {
        let catalogue = Arc::new(ToolDescriber::new(forge, state, Handle::current())?);
        let options = git(Arc::clone(&catalogue) as _);
        let has_remote = options.remote.is_some();
        let head_file = options.root.join(".git/refs/heads").join(&options.branch);
        let has_tools = options.root.join(TOOLS_DIRECTORY).is_dir();
        let mut opening = StartupNotices::default();
        let mut remote = None;
        let opened = match read_only {
            Some(why) => ToolRepo::open_to_read(&options).map(|git| ToolStore::ReadOnly(git, why)),
            None => hydrated(options, &mut opening).await.map(ToolStore::Repository),
        };
        let store = match opened {
            Ok(ToolStore::Repository(git)) => {
                if has_remote {
                    remote = git.status().await?.remote.map(RemoteName::new);
                }
                ToolStore::Repository(git)
            }
            Ok(other) => other,
            Err(error)
                if has_tools && matches!(error.code, Code::Git | Code::Permission | Code::Capability) =>
            {
                let why = &error.message;
                opening.notices.push(format!("tools can be run but not written: {why}"));
                ToolStore::Unusable(error)
            }
            Err(error) => return Err(error),
        };
        let known = Mutex::default();
        let library = Self { store, catalogue, searcher, on_duplicate, has_remote, remote, head_file, known };
        Ok((library, opening))
    }

    /// The tools that the embedding program keeps. They have no repository.
    ///
    /// # Errors
    /// Never in practice.
    pub fn of_host(
        forge: Arc<ToolRuntime>,
        searcher: Searcher,
        on_duplicate: DuplicatePolicy,
        store: Arc<HostStore>,
        state: &Path,
    ) -> Result<Self, ToolError> {
        Ok(Self {
            store: ToolStore::Host(store),
            catalogue: Arc::new(ToolDescriber::new(forge, state, Handle::current())?),
            searcher,
            on_duplicate,
            has_remote: false,
            remote: None,
            head_file: PathBuf::new(),
            known: Mutex::default(),
        })
    }

    pub(super) fn git(&self) -> Result<&ToolRepo, ToolError> {
        match &self.store {
            ToolStore::Repository(git) | ToolStore::ReadOnly(git, _) => Ok(git),
            ToolStore::Unusable(error) => Err(error.clone()),
            ToolStore::Host(_) => Err(no_git()),
        }
    }

    /// Why no file of the tool root is written.
    pub(super) fn refusal(&self) -> Option<&ToolError> {
        match &self.store {
            ToolStore::Unusable(error) | ToolStore::ReadOnly(_, error) => Some(error),
            ToolStore::Repository(_) | ToolStore::Host(_) => None,
        }
    }

    /// Whether not even `meta.json` is brought up to date.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self.store, ToolStore::ReadOnly(..))
    }

    /// Where every change is sent, when there is such a place.
    pub fn remote(&self) -> Option<&RemoteName> {
        self.remote.as_ref()
    }

    /// The state of the repository.
    ///
    /// # Errors
    /// `EGIT`.
    pub async fn status(&self) -> Result<tgp_git::RepositoryStatus, ToolError> {
        self.git()?.status().await
    }

    /// The head of the branch, by a cheap check: the content of its reference.
    pub(super) fn head(&self) -> Option<String> {
        if let ToolStore::Host(store) = &self.store {
            return Some(store.revision());
        }
        std::fs::read_to_string(&self.head_file).ok().map(|head| head.trim().to_owned())
    }

    /// Finds tools by what they do, among those that may be seen.
    pub async fn search(
        &self,
        files: &Arc<dyn FileSystem>,
        query: &str,
        limit: usize,
        visible: &Visibility,
    ) -> Result<(SearchOutcome, Vec<String>), ToolError> {
        let mut warnings = self.survey(files, SEARCH_PATIENCE, MetaSync::Mend).await?;
        let shows = |path: &RelativePath| visible.shows(Root::Tools, path);
        let found = self.searcher.search_among(query, limit, &shows).await?;
        warnings.extend(found.warning.clone());
        if found.pending > 0 {
            warnings.push(format!(
                "{} tools are not embedded yet and were compared by their words",
                found.pending
            ));
        }
        Ok((found, warnings))
    }

    /// Existing tools that do what a new one does. A search that fails is not a reason not to write.
    async fn similar(
        &self,
        files: &Arc<dyn FileSystem>,
        path: &RelativePath,
        content: &str,
        terms: &WriteOptions<'_>,
        care: MetaSync,
    ) -> Vec<Hit> {
        let shows = |path: &RelativePath| terms.visible.shows(Root::Tools, path);
        let found = async {
            self.survey(files, WRITE_PATIENCE, care).await?;
            let source = (path.clone(), content.as_bytes().to_vec());
            let described = self.catalogue.describe(vec![source]).await?;
            match described.first() {
                Some(tool) => Ok(self.searcher.similar_among(tool, MAX_SIMILAR, &shows).await?.results),
                None => Ok(Vec::new()),
            }
        };
        let hits: Result<Vec<Hit>, ToolError> = found.await;
        hits.unwrap_or_default().into_iter().filter(|hit| hit.verdict == ReuseVerdict::Reuse).collect()
    }

    /// Whether a file may have this content as far as can be known before it is written.
    pub async fn check_write(
        &self,
        files: &Arc<dyn FileSystem>,
        path: &RelativePath,
        content: &str,
        terms: &WriteOptions<'_>,
    ) -> Result<(), ToolError> {
        if let Some(error) = self.refusal() {
            return Err(error.clone());
        }
        self.admit(files, path, content, terms, MetaSync::Leave).await.map(|_| ())
    }

    /// What is known of a file that may be written.
    async fn admit(
        &self,
        files: &Arc<dyn FileSystem>,
        path: &RelativePath,
        content: &str,
        terms: &WriteOptions<'_>,
        care: MetaSync,
    ) -> Result<AdmittedWrite, ToolError> {
        refuse_large(path, content.len())?;
        let errors = self.check_content(path, content).await?;
        let stood = match files.read(path) {
            Ok(bytes) => Some(bytes),
            Err(FsError::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let mut similar = Vec::new();
        if stood.is_none() && is_tool(path) {
            similar = self.similar(files, path, content, terms, care).await;
            self.on_duplicate.admit(path, &similar, terms.actor, terms.override_similar)?;
        }
        Ok(AdmittedWrite { stood, similar, errors })
    }

    /// Gives a file of the tool root a new content, and commits it.
    pub async fn write(
        &self,
        files: &Arc<dyn FileSystem>,
        path: &RelativePath,
        content: String,
        terms: WriteOptions<'_>,
    ) -> Result<(ToolWriteResult, FileEffect), ToolError> {
        let AdmittedWrite { stood, similar, errors } =
            self.admit(files, path, &content, &terms, MetaSync::Mend).await?;
        let (meant, agreement, point) = (path.clone(), terms.agreement, terms.point);
        let edit: ToolEdit = Box::new(move |before| {
            agreement.map_or(Ok(()), |agreement| agreement.check(Root::Tools, &meant, before))?;
            // The writer has seen what was there when it asked, and no other version.
            if before != stood.as_deref() {
                return Err(changed_meanwhile(&meant));
            }
            point.commit()?;
            Ok(content.into_bytes())
        });
        let (written, effect) = self.edit(path, edit, &similar).await?;
        Ok((ToolWriteResult { errors, ..written }, effect))
    }

    /// Changes the content of a file of the tool root, whatever wrote it last, and commits it.
    pub async fn patch(
        &self,
        files: &Arc<dyn FileSystem>,
        path: &RelativePath,
        patch: impl Fn(&str) -> Result<String, ToolError> + Send + Sync + 'static,
        agreement: Option<Arc<ApprovedSnapshot>>,
        point: PointOfNoReturn,
    ) -> Result<(ToolWriteResult, FileEffect), ToolError> {
        // A file that does not exist or is not text gets the file system's own error.
        let text = files.read_text(path)?;
        if let Some(agreement) = &agreement {
            agreement.check(Root::Tools, path, Some(text.as_bytes()))?;
        }
        let patch = Arc::new(patch);
        let mut wanted = patch(&text)?;
        for _ in 0..MAX_PATCH_ATTEMPTS {
            let errors = self.check_content(path, &wanted).await?;
            // What another process wrote meanwhile is patched too, but not without a look at the outcome.
            let other = Arc::new(std::sync::Mutex::new(None));
            let edit: ToolEdit = Box::new({
                let (meant, agreement, point) = (path.clone(), agreement.clone(), point.clone());
                let (patch, other) = (Arc::clone(&patch), Arc::clone(&other));
                move |before| {
                    agreement.map_or(Ok(()), |agreement| agreement.check(Root::Tools, &meant, before))?;
                    let text = before.and_then(|bytes| std::str::from_utf8(bytes).ok());
                    let text = text.ok_or_else(|| FsError::NotFound(meant.clone()))?;
                    let patched = patch(text)?;
                    refuse_large(&meant, patched.len())?;
                    if patched != wanted {
                        *other.lock().unwrap_or_else(PoisonError::into_inner) = Some(patched);
                        return Err(changed_meanwhile(&meant));
                    }
                    point.commit()?;
                    Ok(patched.into_bytes())
                }
            });
            let edited = self.edit(path, edit, &[]).await;
            let unchecked = other.lock().unwrap_or_else(PoisonError::into_inner).take();
            match unchecked {
                Some(patched) => wanted = patched,
                None => {
                    return edited.map(|(written, effect)| (ToolWriteResult { errors, ..written }, effect));
                }
            }
        }
        Err(changed_meanwhile(path))
    }

    /// Whatever fails, the file is as it was before, except where the remote's version has taken its place.
    async fn edit(
        &self,
        path: &RelativePath,
        edit: ToolEdit,
        similar: &[Hit],
    ) -> Result<(ToolWriteResult, FileEffect), ToolError> {
        let edited = match &self.store {
            ToolStore::Repository(git) => git.edit(path, edit).await.map(FileEdit::from),
            ToolStore::Unusable(error) | ToolStore::ReadOnly(_, error) => Err(error.clone()),
            ToolStore::Host(store) => store.edit(path, edit).await,
        };
        let edited = match edited {
            Ok(edited) => edited,
            Err(error) => {
                self.forget().await;
                return Err(error);
            }
        };
        let effect = FileEffect::new(
            Root::Tools,
            path.clone(),
            edited.before.as_deref().map(canonical::sha256_hex),
            Some(canonical::sha256_hex(&edited.after)),
        );
        let persisted = edited.persisted;
        let (commit, branch) = persisted.as_ref().map(|at| (at.commit.clone(), at.branch.clone())).unzip();
        let result = ToolWriteResult {
            path: path.clone(),
            bytes: edited.after.len(),
            created: edited.before.is_none(),
            commit,
            branch,
            pushed: persisted.as_ref().is_some_and(|at| at.pushed),
            // Without a remote there is nothing to explain.
            why: persisted.as_ref().and_then(|at| at.why.clone()).filter(|_| self.has_remote),
            request: persisted.and_then(|at| at.request),
            similar: similar.iter().map(similar_tool).collect(),
            errors: Vec::new(),
        };
        self.learn(path, edited.after, WRITE_PATIENCE).await;
        Ok((result, effect))
    }

    pub async fn sync(&self, visible: &Visibility) -> Result<SyncResult, ToolError> {
        if let Some(error) = self.refusal() {
            return Err(error.clone());
        }
        let mut synced = self.git()?.sync().await?;
        let is_shown = |path: &RelativePath| visible.shows(Root::Tools, path);
        synced.committed.retain(is_shown);
        synced.removed.retain(is_shown);
        synced.conflicts.retain(|conflict| is_shown(&conflict.path));
        let status = self.git()?.status().await?;
        self.forget().await;
        Ok(SyncResult {
            committed: synced.committed,
            removed: synced.removed,
            pulled: synced.pulled,
            pushed: synced.pushed,
            conflicts: synced.conflicts,
            requests: synced.requests,
            head: status.head,
            branch: status.branch,
            remote: status.remote,
            warnings: synced.warnings,
            why: synced.why.filter(|_| self.has_remote),
        })
    }

    pub async fn log(
        &self,
        path: Option<&RelativePath>,
        limit: usize,
        visible: &Visibility,
    ) -> Result<ToolLog, ToolError> {
        if path.is_some_and(|path| !visible.shows(Root::Tools, path)) {
            return Ok(ToolLog { versions: Vec::new(), complete: true });
        }
        let git = self.git()?;
        let mut history = git.history(path, limit).await?;
        if !history.versions.iter().flat_map(|version| &version.paths).all(|path| shows(visible, path)) {
            // What is left out must not make the answer shorter.
            history = git.history(path, MAX_LOOKED_THROUGH).await?;
            history.versions.retain(|version| {
                let is_own = |path: &&String| path.as_str() != META_FILE;
                let mut own = version.paths.iter().filter(is_own).peekable();
                own.peek().is_none() || own.any(|path| shows(visible, path))
            });
            history.complete &= history.versions.len() <= limit;
            history.versions.truncate(limit);
        }
        let versions = history
            .versions
            .into_iter()
            .map(|mut version| {
                let (shown, hidden): (Vec<String>, Vec<String>) =
                    version.paths.into_iter().partition(|path| shows(visible, path));
                // The kernel's own subjects name the first file of a version.
                if hidden.iter().any(|path| version.subject.contains(path.as_str())) {
                    let verb = version.subject.split_once(": ").map_or("Change", |(verb, _)| verb);
                    let first = shown.iter().find(|path| path.as_str() != META_FILE);
                    version.subject = format!("{verb}: {}", first.map_or("", String::as_str));
                }
                ToolVersion {
                    commit: version.commit,
                    author: version.author,
                    email: version.email,
                    time: moment(version.time_ms),
                    subject: version.subject,
                    paths: shown,
                    pushed: version.pushed,
                }
            })
            .collect();
        Ok(ToolLog { versions, complete: history.complete })
    }
}

fn shows(visible: &Visibility, path: &str) -> bool {
    RelativePath::new(path).is_ok_and(|path| visible.shows(Root::Tools, &path))
}

/// The index without the tools that may not be seen. An index that is not an index names nothing, and is not shown.
pub fn shown_index(text: String, visible: &Visibility) -> Result<String, ToolError> {
    let index = Index::parse(text.as_bytes())?;
    if index.tools().all(|tool| visible.shows(Root::Tools, &tool.path)) {
        return Ok(text);
    }
    let shown = index.tools().filter(|tool| visible.shows(Root::Tools, &tool.path)).cloned();
    Ok(String::from_utf8_lossy(&Index::from_tools(shown).to_bytes()).into_owned())
}

/// The repository, up to date with its remote.
async fn hydrated(options: ToolRepoOptions, opening: &mut StartupNotices) -> Result<ToolRepo, ToolError> {
    let git = ToolRepo::open(options).await?;
    let hydrated = git.hydrate().await?;
    opening.notices = hydrated.repaired;
    match hydrated.outcome {
        HydrateOutcome::Offline { why } => opening.offline = Some(why),
        HydrateOutcome::Refused { why } => opening.notices.push(why),
        HydrateOutcome::Cloned { .. }
        | HydrateOutcome::Unchanged
        | HydrateOutcome::Updated { .. }
        | HydrateOutcome::Local => {}
    }
    opening.notices.extend(hydrated.conflicts.iter().map(conflict_notice));
    Ok(git)
}

fn changed_meanwhile(path: &RelativePath) -> ToolError {
    ToolError::new(Code::Conflict, format!("`{path}` was changed by another process meanwhile"))
        .detail("path", path.as_str())
        .help("read the file again and write what it should be now")
}

/// `meta.json` is made from the tools, so nothing else writes it.
pub fn refuse_derived(path: &RelativePath) -> Result<(), ToolError> {
    if path.as_str().eq_ignore_ascii_case(META_FILE) {
        return Err(ToolError::new(Code::Permission, format!("`{path}` is made from the tools"))
            .help("write the tools; the index follows by itself"));
    }
    Ok(())
}

/// A larger file is data, and belongs beside the tools and not into their history.
fn refuse_large(path: &RelativePath, bytes: usize) -> Result<(), ToolError> {
    if bytes <= MAX_FILE_BYTES {
        return Ok(());
    }
    let message = format!("`{path}` would have {bytes} bytes, more than the {MAX_FILE_BYTES} of a tool");
    Err(ToolError::new(Code::Validation, message).help("split it, or keep the data in the database"))
}

/// ISO 8601, in UTC and to the second, as git keeps it.
fn moment(milliseconds: i64) -> Option<String> {
    tgp_text::rfc3339_seconds(milliseconds.div_euclid(1000))
}

fn conflict_notice(conflict: &Conflict) -> String {
    format!(
        "`{}` was changed here and at the remote; the remote's version stands, ours is kept on branch `{}`",
        conflict.path, conflict.branch
    )
}
