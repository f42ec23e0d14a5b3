//! The files a run has changed: judged, shown to whoever is asked, and looked at once more before they count.

use std::sync::Arc;

use tgp_contract::{
    Access, Change, Code, FileSystem, FsError, RelativePath, Root, Target, ToolError, canonical,
};

use super::run_end::LastLook;
use crate::Workspace;
use crate::files::difference;
use crate::router::{Agreement, Invocation, Preview, ShownChange};

/// A file that a run has changed, with what stood there before.
pub(crate) struct RunChange {
    pub(crate) change: Change,
    /// SHA-256 of what stood there.
    pub(crate) before: Option<String>,
    /// SHA-256 of the difference.
    pub(crate) diff: String,
}

/// What a run wrote is judged as if its caller had written it.
pub(super) async fn judge(
    invocation: Invocation<'_>,
    changes: &[RunChange],
) -> Result<Option<Arc<Agreement>>, ToolError> {
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
    let show = || {
        let changes: Vec<Change> = changes.iter().map(|found| found.change.clone()).collect();
        let workspace = invocation.workspace.clone();
        async move {
            tokio::task::spawn_blocking(move || shown(&changes, &workspace)).await.unwrap_or_else(|_| {
                Err(ToolError::new(Code::Internal, "the comparison of the files was broken off"))
            })
        }
    };
    let propose = || {
        let named = changes
            .iter()
            .map(|RunChange { change, .. }| (invocation.workspace.name_of(change.path()), change));
        let proposed = named.filter(|((root, _), _)| *root == Root::Project);
        proposed
            .map(|((_, path), change)| match change {
                Change::Write { content, .. } => Change::Write { path, content: content.clone() },
                Change::Remove { .. } => Change::Remove { path },
            })
            .collect()
    };
    invocation.router.judge_changes(invocation, &targets, propose, show).await
}

/// The differences that a run would make now.
fn shown(changes: &[Change], workspace: &Workspace) -> Result<Preview, ToolError> {
    let mut standing = Vec::with_capacity(changes.len());
    for change in changes {
        standing.push((workspace.name_of(change.path()), content(workspace.host.as_ref(), change.path())?));
    }
    Ok(Preview::of_changes(changes.iter().zip(&standing).map(|(change, ((root, path), before))| {
        let after = match change {
            Change::Write { content, .. } => Some(content.as_slice()),
            Change::Remove { .. } => None,
        };
        ShownChange { root: *root, path, before: before.as_deref(), after }
    })))
}

/// Looks, where nobody else writes, whether the files are as they were when somebody agreed to change them.
pub(super) fn last_look(
    agreement: Arc<Agreement>,
    invocation: Invocation<'_>,
    changes: &[RunChange],
) -> LastLook {
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

/// Looks at what each change would replace.
pub(super) fn with_past(changes: Vec<Change>, workspace: &Workspace) -> Result<Vec<RunChange>, ToolError> {
    changes
        .into_iter()
        .map(|change| {
            let before = content(workspace.host.as_ref(), change.path())?;
            let after = match &change {
                Change::Write { content, .. } => Some(content.as_slice()),
                Change::Remove { .. } => None,
            };
            let (_, name) = workspace.name_of(change.path());
            let shown = difference(name.as_str(), before.as_deref(), after);
            let diff = canonical::sha256_hex(shown.text.as_bytes());
            Ok(RunChange { before: before.as_deref().map(canonical::sha256_hex), diff, change })
        })
        .collect()
}
