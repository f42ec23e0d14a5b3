//! What a command changed: read from its layer, judged like any write, and applied all or nothing.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{
    Access, CallContext, Change, Code, FileEffect, FsError, MAX_CHRONICLE_LINE_BYTES, RelativePath, Root,
    Target, ToolError, background, canonical, has_chronicle_name, is_chronicle_content,
};
use tgp_jail::{LayerChange, LayerChangeKind, OverlayLayer};

use super::command_runner::CommandRunner;
use super::installed::Installed;
use super::protected_paths::CHRONICLE_RULE;
use tgp_router::Workspace;
use tgp_router::files::{Difference, Growth, MAX_HOST_FILE_BYTES, ProjectFiles, difference_with_mode};
use tgp_router::{ApprovedSnapshot, FileDiff, FileSnapshot, Invocation, Preview};

/// Changes of one command. One that touches more has written build output, which belongs into `jail.direct`.
const MAX_CHANGES: usize = 10_000;

/// Bytes that the changed files have, before and after together: all of them are in memory until they are applied.
const MAX_CHANGE_BYTES: u64 = 128 << 20;

/// What a command wants to change.
pub(super) struct Changes {
    pub(super) files: Vec<FileChange>,
    made: Vec<RelativePath>,
    removed: Vec<RelativePath>,
    /// Chronicles that the command has touched; they stay as they are.
    left_out: Vec<RelativePath>,
    /// Packages, which are put in place by themselves.
    installed: Option<Installed>,
}

/// One changed file. Copies share the contents.
#[derive(Clone)]
pub(super) struct FileChange {
    change: Change,
    before: Option<Arc<[u8]>>,
    /// Whether it can be executed afterwards, where that changes.
    executable: Option<bool>,
    /// Whether it changes what runs later.
    runs_later: bool,
}

impl Changes {
    /// Reads the layer. What cannot be applied as a plain file is refused here, before anything is judged.
    pub(super) fn read(
        layer: &OverlayLayer,
        yard: &CommandRunner,
        files: &ProjectFiles,
    ) -> Result<Self, ToolError> {
        let found = layer.changes(MAX_CHANGES).map_err(|error| {
            ToolError::new(Code::Runtime, format!("the command's changes cannot be read: {error}"))
                .help("write build output to a directory of jail.direct in the configuration")
        })?;
        Self::of(found, yard, files)
    }

    /// The same of changes that were read before.
    pub(super) fn of(
        found: Vec<LayerChange>,
        yard: &CommandRunner,
        files: &ProjectFiles,
    ) -> Result<Self, ToolError> {
        let mut changes = Self {
            files: Vec::new(),
            made: Vec::new(),
            removed: Vec::new(),
            left_out: Vec::new(),
            installed: None,
        };
        let mut bytes = 0;
        for change in found {
            bytes = changes.add(change, bytes, yard, files)?;
        }
        Ok(changes)
    }

    /// Has a person see what is installed together with the changes.
    pub(super) fn install(&mut self, installed: Installed) {
        self.installed = Some(installed);
    }

    pub(super) fn is_empty(&self) -> bool {
        let is_unchanged = self.files.is_empty() && self.made.is_empty() && self.removed.is_empty();
        is_unchanged && self.installed.is_none()
    }

    /// Takes up one change after those that have `bytes`; answers how many they have together.
    fn add(
        &mut self,
        change: LayerChange,
        bytes: u64,
        yard: &CommandRunner,
        files: &ProjectFiles,
    ) -> Result<u64, ToolError> {
        let path = name(&change.path)?;
        if is_chronicle(&path, &change.kind, yard)? {
            self.left_out.push(path);
            return Ok(bytes);
        }
        let mut sum = bytes;
        if !matches!(change.kind, LayerChangeKind::Remove | LayerChangeKind::RemoveDirectory) {
            // Directories too: one that is too deep would spoil every later look through the project.
            files.check_depth(&path).map_err(|error| {
                ToolError::from(error).detail("path", path.as_str()).help(
                    "nothing was applied; use fewer directories, or write below a directory of jail.direct",
                )
            })?;
        }
        match change.kind {
            LayerChangeKind::MakeDirectory => {
                if let Some(protection) = yard.options.protections.of(Root::Project, &path) {
                    let message =
                        format!("rule `{}` protects `{path}`: {}", protection.rule, protection.reason);
                    return Err(ToolError::new(Code::Policy, message)
                        .detail("rule", protection.rule)
                        .help("nothing was applied; leave that path alone"));
                }
                self.made.push(path);
            }
            LayerChangeKind::RemoveDirectory => self.removed.push(path),
            LayerChangeKind::Remove => {
                sum = fits(sum, length(files, &path)?, &path)?;
                let before = before(files, &path)?;
                self.push(Change::Remove { path }, before, None);
            }
            LayerChangeKind::Write { content, bytes: new, executable } => {
                // By what the system says of the files, before any of them is read: a file with holes takes no room on
                // the disk, and all of its length in memory.
                sum = fits(sum, new, &path)?;
                sum = fits(sum, length(files, &path)?, &path)?;
                let content = read_within(&content, new).map_err(|error| unreadable(&path, &error))?;
                let before = before(files, &path)?;
                let was = before.is_some() && is_executable(&yard.options.project, &path);
                let executable = (executable != was).then_some(executable);
                self.push(Change::Write { path, content: content.into() }, before, executable);
            }
            LayerChangeKind::Link { .. } | LayerChangeKind::Special => {
                let message =
                    format!("the command left a link or a special file at `{path}`, which is not applied");
                return Err(ToolError::new(Code::Security, message).detail("path", path.as_str()).help(
                    "nothing was applied; make plain files, or write below a directory of jail.direct",
                ));
            }
        }
        Ok(sum)
    }

    fn push(&mut self, change: Change, before: Option<Vec<u8>>, executable: Option<bool>) {
        let runs_later = tgp_policy::runs_later(change.path(), before.as_deref(), change.content());
        self.files.push(FileChange { change, before: before.map(Arc::from), executable, runs_later });
    }

    fn targets(&self, wanted: impl Fn(&FileChange) -> bool) -> Vec<Target> {
        let target = |file: &FileChange| {
            let access = match &file.change {
                Change::Write { .. } => Access::Write,
                Change::Remove { .. } => Access::Delete,
            };
            Target::File { root: Root::Project, path: file.change.path().clone(), access }
        };
        self.files.iter().filter(|file| wanted(file)).map(target).collect()
    }

    /// The directories that are removed, and those that are made for no file. A directory that a new file needs comes with
    /// the file, as it does with `fs_write`.
    fn directories(&self) -> Vec<Target> {
        let mut needed = BTreeSet::new();
        for file in self.files.iter().filter(|file| file.after().is_some()) {
            let mut path = file.change.path().parent();
            while !path.is_root() && needed.insert(path.clone()) {
                path = path.parent();
            }
        }
        let target = |path: &RelativePath, access: Access| Target::File {
            root: Root::Project,
            path: path.clone(),
            access,
        };
        let made = self.made.iter().filter(|path| !needed.contains(*path));
        let made = made.map(|path| target(path, Access::Write));
        made.chain(self.removed.iter().map(|path| target(path, Access::Delete))).collect()
    }

    /// Has every change judged. The approver sees what the command made of the files it saw.
    pub(super) async fn judge(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<Option<Arc<ApprovedSnapshot>>, ToolError> {
        let show = || {
            // What runs later comes first: of the others there may be more than a preview has room for.
            let (mut files, rest): (Vec<FileChange>, Vec<FileChange>) =
                self.files.iter().cloned().partition(|file| file.runs_later);
            files.extend(rest);
            let installed = self.installed.as_ref().map(Installed::shown);
            background::run(move || {
                let shown = files.iter().map(|file| Ok(file.shown()));
                Preview::of_changes(shown.chain(installed.map(Ok)))
            })
        };
        let propose = || self.files.iter().map(|file| file.change.clone()).collect();
        let (mut all, mut later) = (self.targets(|_| true), self.targets(|file| file.runs_later));
        if let Some(installed) = &self.installed {
            all.push(Installed::target(&installed.list));
            later.push(Installed::target(&installed.manifest));
        }
        invocation.router.judge_directories(invocation, &self.directories()).await?;
        let agreed = invocation.router.judge_changes(invocation, &all, &later, propose, show).await?;
        Ok(agreed.or_else(|| ApprovedSnapshot::on_judged(self.manifests())))
    }

    /// The files that were judged by what was there before: of a manifest only some fields run later.
    fn manifests(&self) -> impl Iterator<Item = FileSnapshot> + '_ {
        let manifests = self.files.iter().filter(|file| tgp_policy::may_run_later(file.change.path()));
        manifests.map(|file| FileSnapshot {
            root: Root::Project,
            path: file.change.path().clone(),
            sha256: file.before.as_deref().map(canonical::sha256_hex),
        })
    }

    /// Counts what the changes add to the project and take from it.
    fn grow(
        &self,
        workspace: &Workspace,
        context: &CallContext,
        files: &ProjectFiles,
    ) -> Result<Growth, ToolError> {
        let is_new = |file: &&FileChange| file.before.is_none() && file.after().is_some();
        let is_gone = |file: &&FileChange| file.before.is_some() && file.after().is_none();
        let new = self.files.iter().filter(is_new).map(|file| file.change.path());
        let added = files.new_entries(new.chain(&self.made));
        let removed = self.files.iter().filter(is_gone).count() + self.removed.len();
        workspace.grow(context, added, removed as u64)
    }

    /// Has every change judged, and applies them together. `last_look` can refuse that when everything is judged, right before
    /// the first file is written.
    pub(super) async fn apply(
        self,
        invocation: Invocation<'_>,
        yard: &CommandRunner,
        started: SystemTime,
        last_look: impl FnOnce() -> Result<(), ToolError> + Send + 'static,
    ) -> Result<Vec<FileEffect>, ToolError> {
        let agreement = self.judge(invocation).await?;
        let files = invocation.workspace.project_files();
        let project = yard.options.project.clone();
        let point = invocation.point_of_no_return();
        let (workspace, context) = (invocation.workspace.clone(), invocation.context.clone());
        // It waits for the commit lock, so it takes no place of the work that ends by itself; commands are few at a time.
        background::run_bounded(move || {
            let mut growth = None;
            let batch: Vec<Change> = self.files.iter().map(|file| file.change.clone()).collect();
            files.apply_all(&batch, || {
                batch.iter().try_for_each(|change| refuse_conflict(&project, change.path(), started))?;
                if let Some(agreement) = &agreement {
                    batch.iter().try_for_each(|change| {
                        let found = before(&files, change.path())?;
                        agreement.check(Root::Project, change.path(), found.as_deref())
                    })?;
                }
                growth = Some(self.grow(&workspace, &context, &files)?);
                last_look()?;
                point.commit()
            })?;
            if let Some(growth) = growth {
                growth.keep();
            }
            self.finish(&files);
            Ok(self.files.iter().map(FileChange::effect).collect())
        })
        .await
    }

    /// Modes and empty directories, which no batch carries. They come after the files, and what fails here loses
    /// nothing of them.
    fn finish(&self, files: &ProjectFiles) {
        for file in &self.files {
            if let Some(executable) = file.executable {
                let _ = files.set_executable(file.change.path(), executable);
            }
        }
        for path in &self.made {
            let _ = files.make_directory(path);
        }
        for path in self.removed.iter().rev() {
            let _ = files.remove_empty_directory(path);
        }
    }

    /// What an answer says of them.
    pub(super) fn summary(&self) -> Vec<CommandChange> {
        let word = |file: &FileChange| match (&file.change, &file.before) {
            (Change::Remove { .. }, _) => "deleted",
            (Change::Write { .. }, None) => "created",
            (Change::Write { .. }, Some(_)) => "changed",
        };
        let change = |path: &RelativePath, change: &str, executable| CommandChange {
            path: path.clone(),
            change: Some(change.to_owned()),
            executable,
            ..CommandChange::default()
        };
        let files = self.files.iter().map(|file| change(file.change.path(), word(file), file.executable));
        let made = self.made.iter().map(|path| (path, "directory made"));
        let removed = self.removed.iter().map(|path| (path, "directory removed"));
        let left_out = self.left_out.iter().map(|path| (path, "left as it is: a chronicle"));
        let others = made.chain(removed).chain(left_out);
        files.chain(others.map(|(path, word)| change(path, word, None))).collect()
    }

    /// The exact differences.
    pub(super) fn previews(&self) -> Vec<CommandChange> {
        let preview = |file: &FileChange| {
            let shown = file.difference();
            CommandChange {
                path: file.change.path().clone(),
                diff: Some(shown.text),
                truncated: Some(!shown.complete),
                ..CommandChange::default()
            }
        };
        self.files.iter().map(preview).chain(self.installed.iter().map(Installed::preview)).collect()
    }
}

/// A file or directory that a command has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandChange {
    pub path: RelativePath,
    /// What happened to it, as one keyword.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// Whether it can be executed now, where that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// In a dry run: a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// In a dry run: whether the diff is longer than what is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

impl FileChange {
    fn after(&self) -> Option<&[u8]> {
        self.change.content()
    }

    fn difference(&self) -> Difference {
        let path = self.change.path().as_str();
        difference_with_mode(path, self.before.as_deref(), self.after(), self.executable)
    }

    fn shown(&self) -> FileDiff {
        let after = match &self.change {
            Change::Write { content, .. } => Some(Arc::clone(content)),
            Change::Remove { .. } => None,
        };
        FileDiff {
            root: Root::Project,
            path: self.change.path().clone(),
            before: self.before.clone(),
            after,
            executable: self.executable,
        }
    }

    fn effect(&self) -> FileEffect {
        let hash = |content: Option<&[u8]>| content.map(canonical::sha256_hex);
        let (before, after) = (hash(self.before.as_deref()), hash(self.after()));
        let mut effect = FileEffect::new(Root::Project, self.change.path().clone(), before, after);
        effect.diff = Some(canonical::sha256_hex(self.difference().text.as_bytes()));
        effect.executable = self.executable;
        effect
    }
}

/// Whether a change is one of a chronicle, or makes a file that would be taken for one. Chronicles only grow, by events:
/// copies, moves and removals of them do not count.
fn is_chronicle(
    path: &RelativePath,
    change: &LayerChangeKind,
    yard: &CommandRunner,
) -> Result<bool, ToolError> {
    if !has_chronicle_name(path) {
        return Ok(false);
    }
    let protection = yard.options.protections.of(Root::Project, path);
    if protection.is_some_and(|found| found.rule == CHRONICLE_RULE) {
        return Ok(true);
    }
    let LayerChangeKind::Write { content, bytes, .. } = change else { return Ok(false) };
    let beginning = read_within(content, (*bytes).min(MAX_CHRONICLE_LINE_BYTES as u64));
    Ok(is_chronicle_content(&beginning.map_err(|error| unreadable(path, &error))?))
}

fn unreadable(path: &RelativePath, error: &std::io::Error) -> ToolError {
    ToolError::new(Code::Internal, format!("`{path}` of the layer cannot be read: {error}"))
}

/// Whether a file of so many bytes still has room beside the others. Answers their sum.
fn fits(sum: u64, bytes: u64, path: &RelativePath) -> Result<u64, ToolError> {
    let help = "nothing was applied; write large files below a directory of jail.direct, or fewer at a time";
    if bytes > MAX_HOST_FILE_BYTES {
        let error = FsError::TooLarge { path: path.clone(), size: bytes, limit: MAX_HOST_FILE_BYTES };
        return Err(ToolError::from(error).help(help));
    }
    match sum.checked_add(bytes) {
        Some(sum) if sum <= MAX_CHANGE_BYTES => Ok(sum),
        _ => {
            let message = format!(
                "the files that the command changed have more than {MAX_CHANGE_BYTES} bytes, before and after together"
            );
            Err(ToolError::new(Code::Validation, message).detail("limit", MAX_CHANGE_BYTES).help(help))
        }
    }
}

/// The bytes of a file of the project; 0 where there is none.
fn length(files: &ProjectFiles, path: &RelativePath) -> Result<u64, ToolError> {
    Ok(files.entry(path)?.map_or(0, |entry| entry.size))
}

/// Reads a file of which the length is known, and no more than that.
fn read_within(path: &Path, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    std::fs::File::open(path)?.take(bytes).read_to_end(&mut content)?;
    Ok(content)
}

/// Whether the owner of a file of the project may execute it.
fn is_executable(project: &Path, path: &RelativePath) -> bool {
    let found = std::fs::symlink_metadata(project.join(path.as_str()));
    found.is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o100 != 0)
}

fn name(path: &Path) -> Result<RelativePath, ToolError> {
    let text = path.to_str().ok_or_else(|| {
        let shown = path.to_string_lossy().into_owned();
        ToolError::new(Code::Validation, format!("`{shown}` is not a name in UTF-8"))
            .help("nothing was applied")
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

/// A file that was changed from outside while the command ran is not overwritten with what the command made of the
/// old one.
fn refuse_conflict(project: &Path, path: &RelativePath, started: SystemTime) -> Result<(), ToolError> {
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
