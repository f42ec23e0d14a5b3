//! What all changes of a project file have in common: the read, the preview, the write and the answer.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{
    Change, Code, EntryKind, FileEffect, FsError, RelativePath, Root, ToolError, Visibility, canonical,
};

use super::BlockingPool;
use tgp_router::files::{Changed, ProjectFiles, difference};
use tgp_router::{Invocation, ToolOutcome};

/// The content that a caller has seen, by its hash.
pub(super) struct ExpectedContent {
    path: RelativePath,
    hash: Option<String>,
}

impl ExpectedContent {
    pub(super) fn new(path: &RelativePath, hash: Option<String>) -> Self {
        Self { path: path.clone(), hash }
    }

    pub(super) fn check(&self, before: Option<&[u8]>) -> Result<(), ToolError> {
        let Some(hash) = &self.hash else { return Ok(()) };
        let found = before.map(canonical::sha256_hex);
        if found.as_ref() == Some(hash) {
            return Ok(());
        }
        let what = if before.is_some() { "was changed" } else { "does not exist any more" };
        Err(ToolError::new(Code::Conflict, format!("`{}` {what} since it was read", self.path))
            .detail("path", self.path.as_str())
            .detail("sha256", found)
            .help("read the file again and decide on what it is now"))
    }
}

/// A change, and whether its caller may see what was there before.
pub(super) struct Made {
    changed: Changed,
    shown: bool,
}

impl Made {
    /// What was there, as far as the caller may see it: a file that it may only write is as if it were not there.
    pub(super) fn before(&self) -> Option<&[u8]> {
        self.changed.before.as_deref().filter(|_| self.shown)
    }
}

/// Changes a file as `decide` says, or finds out what would change in a dry run. `decide` is shown what the caller may
/// see.
pub(super) async fn change(
    desk: &BlockingPool,
    invocation: Invocation<'_>,
    path: &RelativePath,
    decide: impl FnOnce(Option<&[u8]>) -> Result<Option<Vec<u8>>, ToolError> + Send + 'static,
) -> Result<Made, ToolError> {
    let visible = invocation.visibility().await;
    let shown = visible.shows(Root::Project, path);
    // What is always out of reach is refused in its own words.
    refuse_hidden_way(&visible.varying_part(), path)?;
    let files = invocation.workspace.project_files();
    let (path, dry_run) = (path.clone(), invocation.context.dry_run);
    let (meant, agreement) = (path.clone(), invocation.agreement());
    let point = invocation.point_of_no_return();
    let (workspace, context) = (invocation.workspace.clone(), invocation.context.clone());
    let work = move || {
        // A directory that the caller may not see is not a file that it could change, like one that is not there.
        if !shown && is_directory(&files, &path)? {
            decide(None)?;
            return Err(FsError::IsDirectory(path).into());
        }
        let mut growth = None;
        let decide = |before: Option<&[u8]>| -> Result<Option<Vec<u8>>, ToolError> {
            // Here no other call of this kernel writes, so what was approved is what is changed.
            agreement.map_or(Ok(()), |agreement| agreement.check(Root::Project, &meant, before))?;
            let after = decide(before.filter(|_| shown))?;
            if !dry_run {
                let added = if before.is_none() && after.is_some() { files.new_entries([&meant]) } else { 0 };
                growth = Some(workspace.grow(&context, added, u64::from(after.is_none()))?);
                point.commit()?;
            }
            Ok(after)
        };
        let changed = if dry_run { files.decided(&path, decide) } else { files.change(&path, decide) }?;
        if let Some(growth) = growth {
            growth.keep();
        }
        Ok(changed)
    };
    Ok(Made { changed: desk.work(work).await?, shown })
}

/// Refuses a path that leads through what the caller may not see, below a directory that it may not see: the write
/// would reveal whether there is a file on the way.
fn refuse_hidden_way(visible: &Visibility, path: &RelativePath) -> Result<(), ToolError> {
    let parents = std::iter::successors(Some(path.parent()), |path| Some(path.parent()));
    let hidden = parents
        .take_while(|path| !path.is_root())
        .filter(|parent| !visible.shows(Root::Project, parent))
        .take(2)
        .count();
    if hidden < 2 {
        return Ok(());
    }
    let message = format!("a directory above `{path}` may not be seen");
    Err(ToolError::new(Code::Policy, message)
        .detail("path", path.as_str())
        .help("write directly into the directory that a rule hides, or ask a person to change the rule"))
}

fn is_directory(files: &ProjectFiles, path: &RelativePath) -> Result<bool, ToolError> {
    match files.entry(path) {
        Ok(entry) => Ok(entry.is_some_and(|entry| entry.kind == EntryKind::Directory)),
        Err(FsError::NotFound(_) | FsError::NotDirectory(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What a change of a file of the project did, or would do in a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeResult {
    /// Of a write: whether there was no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
    /// Of an edit: how many pieces of text were replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacements: Option<usize>,
    /// Of a deletion: what was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    pub path: RelativePath,
    /// Of the whole new content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// Of the whole new content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// True when nothing was changed.
    #[serde(rename = "dry_run", default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// In a dry run: a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// True when the diff is longer than what is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff_truncated: bool,
}

impl FileChangeResult {
    /// The result of a change about which nothing else is known yet.
    pub(super) fn of(path: &RelativePath) -> Self {
        Self {
            created: None,
            replacements: None,
            kind: None,
            path: path.clone(),
            bytes: None,
            sha256: None,
            dry_run: false,
            diff: None,
            diff_truncated: false,
        }
    }
}

/// What a change answers: the same in a dry run, which adds the difference and changes no file.
pub(super) fn answer(
    invocation: Invocation<'_>,
    made: &Made,
    mut result: FileChangeResult,
) -> ToolOutcome<FileChangeResult> {
    let (changed, path) = (&made.changed, result.path.clone());
    let hash = |content: Option<&[u8]>| content.map(canonical::sha256_hex);
    let (before, after) = (hash(changed.before.as_deref()), hash(changed.after.as_deref()));
    result.bytes = changed.after.as_ref().map(|content| content.len());
    result.sha256.clone_from(&after);
    let mut effect = FileEffect::new(Root::Project, path.clone(), before, after);
    let mut proposed = Vec::new();
    let shown = difference(path.as_str(), made.before(), changed.after.as_deref());
    effect.diff = Some(canonical::sha256_hex(shown.text.as_bytes()));
    if invocation.context.dry_run {
        result.dry_run = true;
        result.diff_truncated = !shown.complete;
        result.diff = Some(shown.text);
        proposed.push(match &changed.after {
            Some(content) => Change::Write { path, content: Arc::clone(content) },
            None => Change::Remove { path },
        });
    }
    ToolOutcome { files: vec![effect], proposed, ..result.into() }
}
