//! The files a run has changed: judged, shown to the approver, and checked once more before they count.

use std::sync::Arc;

use tgp_contract::{
    Access, Change, FileSystem, FsError, RelativePath, Root, Target, ToolError, background, canonical,
};

use super::run_commit::PreCommitCheck;
use super::sources::as_targets;
use tgp_router::Workspace;
use tgp_router::files::{Growth, difference};
use tgp_router::{ApprovedSnapshot, FileDiff, FileSnapshot, Invocation, Preview};

/// A file that a run has changed, with what was there before.
pub struct RunChange {
    pub change: Change,
    /// SHA-256 of what was there.
    pub before: Option<String>,
    /// SHA-256 of the difference.
    pub diff: String,
    /// Whether it changes what runs later.
    pub runs_later: bool,
}

/// What a run wrote is judged as if its caller had written it.
pub(super) async fn judge(
    invocation: Invocation<'_>,
    changes: &[RunChange],
) -> Result<Option<Arc<ApprovedSnapshot>>, ToolError> {
    let targets: Vec<Target> = changes
        .iter()
        .map(|RunChange { change, .. }| {
            let (root, path) = invocation.workspace.name_of(change.path());
            let access = match change {
                Change::Write { .. } => Access::Write,
                Change::Remove { .. } => Access::Delete,
            };
            Target::File { root, path, access }
        })
        .collect();
    let later: Vec<Target> = targets
        .iter()
        .zip(changes)
        .filter(|(_, found)| found.runs_later)
        .map(|(target, _)| target.clone())
        .collect();
    let show = || {
        // What runs later comes first: of the others there may be more than a preview has room for.
        let (first, rest): (Vec<&RunChange>, Vec<&RunChange>) =
            changes.iter().partition(|found| found.runs_later);
        let changes: Vec<Change> = first.iter().chain(&rest).map(|found| found.change.clone()).collect();
        let workspace = invocation.workspace.clone();
        background::run(move || shown(&changes, &workspace))
    };
    let propose = || {
        let named = changes
            .iter()
            .map(|RunChange { change, .. }| (invocation.workspace.name_of(change.path()), change));
        let proposed = named.filter(|((root, _), _)| *root == Root::Project);
        proposed
            .map(|((_, path), change)| match change {
                Change::Write { content, .. } => Change::Write { path, content: Arc::clone(content) },
                Change::Remove { .. } => Change::Remove { path },
            })
            .collect()
    };
    let agreed = invocation.router.judge_changes(invocation, &targets, &later, propose, show).await?;
    // Of a manifest only some fields run later, so it was judged by what was there before.
    let manifests = changes.iter().filter_map(|RunChange { change, before, .. }| {
        let (root, path) = invocation.workspace.name_of(change.path());
        tgp_policy::may_run_later(&path).then(|| FileSnapshot { root, path, sha256: before.clone() })
    });
    Ok(agreed.or_else(|| ApprovedSnapshot::on_judged(manifests)))
}

/// Whether what a run did may take effect: also a run that changed rows alone, and also one that only an outer run commits.
pub(super) async fn may_take_effect(
    invocation: Invocation<'_>,
    run: &Workspace,
    sources: &[(RelativePath, String)],
) -> Result<(), ToolError> {
    // Those of the runs inside it too: what they have done takes effect with it.
    let sources = as_targets(run.run_sources(sources.iter().map(|(path, _)| path.clone())));
    invocation.router.judge_commit(invocation, &sources).await
}

/// Counts the files that a run adds and removes for its session.
pub(super) fn grow(invocation: Invocation<'_>, changes: &[RunChange]) -> Result<Growth, ToolError> {
    let workspace = invocation.workspace;
    let is_new = |found: &&RunChange| found.before.is_none() && found.change.content().is_some();
    let is_gone = |found: &&RunChange| found.before.is_some() && found.change.content().is_none();
    let new: Vec<RelativePath> =
        changes.iter().filter(is_new).map(|found| workspace.name_of(found.change.path()).1).collect();
    let added = workspace.project_files().new_entries(&new);
    workspace.grow(invocation.context, added, changes.iter().filter(is_gone).count() as u64)
}

/// The differences that a run would make now.
fn shown(changes: &[Change], workspace: &Workspace) -> Result<Preview, ToolError> {
    Preview::of_changes(changes.iter().map(|change| {
        let (root, path) = workspace.name_of(change.path());
        let before = content(workspace.host.as_ref(), change.path())?.map(Arc::from);
        let after = match change {
            Change::Write { content, .. } => Some(Arc::clone(content)),
            Change::Remove { .. } => None,
        };
        Ok(FileDiff { root, path, before, after, executable: None })
    }))
}

/// Checks, where no other call writes, whether the files are as they were when the change was approved.
pub(super) fn pre_commit_check(
    agreement: Arc<ApprovedSnapshot>,
    invocation: Invocation<'_>,
    changes: &[RunChange],
) -> PreCommitCheck {
    let host = Arc::clone(&invocation.workspace.host);
    let named = |RunChange { change, .. }: &RunChange| {
        (change.path().clone(), invocation.workspace.name_of(change.path()))
    };
    let files: Vec<(RelativePath, (Root, RelativePath))> = changes.iter().map(named).collect();
    Box::new(move || {
        files.iter().try_for_each(|(path, (root, name))| {
            agreement.check(*root, name, content(host.as_ref(), path)?.as_deref())
        })
    })
}

fn content(files: &dyn FileSystem, path: &RelativePath) -> Result<Option<Vec<u8>>, ToolError> {
    match files.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FsError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads what each change would replace.
pub(super) async fn with_past(
    changes: Vec<Change>,
    workspace: &Workspace,
) -> Result<Vec<RunChange>, ToolError> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let workspace = workspace.clone();
    background::run(move || compared(changes, &workspace)).await
}

fn compared(changes: Vec<Change>, workspace: &Workspace) -> Result<Vec<RunChange>, ToolError> {
    changes
        .into_iter()
        .map(|change| {
            let before = content(workspace.host.as_ref(), change.path())?;
            let after = change.content();
            let (_, name) = workspace.name_of(change.path());
            let runs_later = tgp_policy::runs_later(&name, before.as_deref(), after);
            let shown = difference(name.as_str(), before.as_deref(), after);
            let diff = canonical::sha256_hex(shown.text.as_bytes());
            Ok(RunChange { before: before.as_deref().map(canonical::sha256_hex), diff, runs_later, change })
        })
        .collect()
}
