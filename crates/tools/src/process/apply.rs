//! What a command changed: read from its layer, judged like any write, and applied all or nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use tgp_contract::{
    Access, Change, Code, FileEffect, FsError, RelativePath, Root, Target, ToolError, canonical,
};
use tgp_jail::{ChangeKind, Layer, LayerChange};

use super::protected_paths::CHRONICLE_RULE;
use super::yard::Yard;
use crate::files::{ProjectFiles, difference};
use crate::router::{Agreement, Invocation, Preview, ShownChange};

/// Changes of one command. One that touches more has written build output, which belongs into `jail.direct`.
const MAX_CHANGES: usize = 10_000;

/// What a command wants to change.
pub(super) struct Changes {
    pub(super) files: Vec<FileChange>,
    made: Vec<RelativePath>,
    removed: Vec<RelativePath>,
    /// Chronicles that the command has touched; they stay as they are.
    left_out: Vec<RelativePath>,
}

#[derive(Clone)]
pub(super) struct FileChange {
    change: Change,
    before: Option<Vec<u8>>,
    executable: bool,
}

impl Changes {
    /// Reads the layer. What cannot be applied as a plain file is refused here, before anything is judged.
    pub(super) fn read(layer: &Layer, yard: &Yard, files: &ProjectFiles) -> Result<Self, ToolError> {
        let found = layer.changes(MAX_CHANGES).map_err(|error| {
            ToolError::new(Code::Runtime, format!("the command's changes cannot be read: {error}"))
                .help("write build output to a directory of jail.direct in the configuration")
        })?;
        let mut changes =
            Self { files: Vec::new(), made: Vec::new(), removed: Vec::new(), left_out: Vec::new() };
        for change in found {
            changes.add(change, yard, files)?;
        }
        Ok(changes)
    }

    fn add(&mut self, change: LayerChange, yard: &Yard, files: &ProjectFiles) -> Result<(), ToolError> {
        let path = name(&change.path)?;
        // Chronicles only grow, by events: copies, moves and removals of them do not count.
        let is_chronicle = path.name().is_some_and(|name| name.ends_with(".sage"))
            && yard
                .options
                .protections
                .of(Root::Project, &path)
                .is_some_and(|found| found.rule == CHRONICLE_RULE);
        if is_chronicle {
            self.left_out.push(path);
            return Ok(());
        }
        match change.kind {
            ChangeKind::MakeDirectory => {
                if let Some(protection) = yard.options.protections.of(Root::Project, &path) {
                    let message =
                        format!("rule `{}` protects `{path}`: {}", protection.rule, protection.reason);
                    return Err(ToolError::new(Code::Policy, message)
                        .detail("rule", protection.rule)
                        .help("nothing was applied; leave that path alone"));
                }
                self.made.push(path);
            }
            ChangeKind::RemoveDirectory => self.removed.push(path),
            ChangeKind::Remove => {
                let before = before(files, &path)?;
                let change = Change::Remove { path };
                self.files.push(FileChange { change, before, executable: false });
            }
            ChangeKind::Write { content, executable, .. } => {
                let content = std::fs::read(&content).map_err(|error| {
                    ToolError::new(Code::Internal, format!("`{path}` of the layer cannot be read: {error}"))
                })?;
                let before = before(files, &path)?;
                let change = Change::Write { path, content };
                self.files.push(FileChange { change, before, executable });
            }
            ChangeKind::Link { .. } | ChangeKind::Special => {
                let message =
                    format!("the command left a link or a special file at `{path}`, which is not applied");
                return Err(ToolError::new(Code::Security, message).detail("path", path.as_str()).help(
                    "nothing was applied; make plain files, or write below a directory of jail.direct",
                ));
            }
        }
        Ok(())
    }

    fn targets(&self) -> Vec<Target> {
        let target = |file: &FileChange| {
            let access = match &file.change {
                Change::Write { .. } => Access::Write,
                Change::Remove { .. } => Access::Delete,
            };
            Target::File { root: Root::Project, path: file.change.path().clone(), access }
        };
        self.files.iter().map(target).collect()
    }

    /// Has every change judged. Whoever is asked sees what the command made of the files it saw.
    pub(super) async fn judge(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<Option<Arc<Agreement>>, ToolError> {
        let show = || {
            let files = self.files.clone();
            async move {
                tokio::task::spawn_blocking(move || Preview::of_changes(files.iter().map(FileChange::shown)))
                    .await
                    .map_err(|_| ToolError::new(Code::Internal, "the comparison of the files was broken off"))
            }
        };
        let propose = || self.files.iter().map(|file| file.change.clone()).collect();
        invocation.router.judge_changes(invocation, &self.targets(), propose, show).await
    }

    /// Has every change judged, and applies them together.
    pub(super) async fn apply(
        self,
        invocation: Invocation<'_>,
        yard: &Yard,
        started: SystemTime,
    ) -> Result<Vec<FileEffect>, ToolError> {
        let agreement = self.judge(invocation).await?;
        let files = invocation.workspace.project_files();
        let project = yard.options.project.clone();
        let point = invocation.point_of_no_return();
        let applied = tokio::task::spawn_blocking(move || {
            let batch: Vec<Change> = self.files.iter().map(|file| file.change.clone()).collect();
            files.apply_all(&batch, || {
                batch.iter().try_for_each(|change| refuse_conflict(&project, change.path(), started))?;
                if let Some(agreement) = &agreement {
                    batch.iter().try_for_each(|change| {
                        let found = before(&files, change.path())?;
                        agreement.check(Root::Project, change.path(), found.as_deref())
                    })?;
                }
                point.pass()
            })?;
            self.finish(&files);
            Ok(self.files.iter().map(FileChange::effect).collect())
        });
        applied.await.unwrap_or_else(|_| Err(ToolError::new(Code::Internal, "applying was broken off")))
    }

    /// Modes and empty directories, which no batch carries. They come after the files, and what fails here loses
    /// nothing of them.
    fn finish(&self, files: &ProjectFiles) {
        for file in self.files.iter().filter(|file| file.executable) {
            let _ = files.make_executable(file.change.path());
        }
        for path in &self.made {
            let _ = files.make_directory(path);
        }
        for path in self.removed.iter().rev() {
            let _ = files.remove_empty_directory(path);
        }
    }

    /// What an answer says of them.
    pub(super) fn summary(&self) -> Vec<Value> {
        let word = |file: &FileChange| match (&file.change, &file.before) {
            (Change::Remove { .. }, _) => "deleted",
            (Change::Write { .. }, None) => "created",
            (Change::Write { .. }, Some(_)) => "changed",
        };
        let files = self.files.iter().map(|file| (file.change.path(), word(file)));
        let made = self.made.iter().map(|path| (path, "directory made"));
        let removed = self.removed.iter().map(|path| (path, "directory removed"));
        let left_out = self.left_out.iter().map(|path| (path, "left as it is: a chronicle"));
        files
            .chain(made)
            .chain(removed)
            .chain(left_out)
            .map(|(path, change)| json!({ "path": path, "change": change }))
            .collect()
    }

    /// The exact differences.
    pub(super) fn previews(&self) -> Vec<Value> {
        let preview = |file: &FileChange| {
            let path = file.change.path();
            let shown = difference(path.as_str(), file.before.as_deref(), file.after());
            json!({ "path": path, "diff": shown.text, "truncated": !shown.complete })
        };
        self.files.iter().map(preview).collect()
    }
}

impl FileChange {
    fn after(&self) -> Option<&[u8]> {
        match &self.change {
            Change::Write { content, .. } => Some(content),
            Change::Remove { .. } => None,
        }
    }

    fn shown(&self) -> ShownChange<'_> {
        ShownChange {
            root: Root::Project,
            path: self.change.path(),
            before: self.before.as_deref(),
            after: self.after(),
        }
    }

    fn effect(&self) -> FileEffect {
        let path = self.change.path();
        let (before, after) = (self.before.as_deref(), self.after());
        let hash = |content: Option<&[u8]>| content.map(canonical::sha256_hex);
        let mut effect = FileEffect::new(Root::Project, path.clone(), hash(before), hash(after));
        let shown = difference(path.as_str(), before, after);
        effect.diff = Some(canonical::sha256_hex(shown.text.as_bytes()));
        effect
    }
}

fn name(path: &Path) -> Result<RelativePath, ToolError> {
    let text = path.to_str().ok_or_else(|| {
        let shown = path.to_string_lossy().into_owned();
        ToolError::new(Code::Validation, format!("`{shown}` is no name in UTF-8")).help("nothing was applied")
    })?;
    Ok(RelativePath::new(text)?)
}

fn before(files: &ProjectFiles, path: &RelativePath) -> Result<Option<Vec<u8>>, ToolError> {
    match files.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FsError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A file that somebody changed while the command ran is not overwritten with what the command made of the old one.
fn refuse_conflict(project: &Path, path: &RelativePath, started: SystemTime) -> Result<(), ToolError> {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = std::fs::symlink_metadata(project.join(path.as_str())) else { return Ok(()) };
    let since = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    let start = (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()));
    if changed > start {
        return Err(ToolError::new(Code::Conflict, format!("`{path}` was changed while the command ran"))
            .detail("path", path.as_str())
            .help("nothing was applied; run the command again"));
    }
    Ok(())
}
