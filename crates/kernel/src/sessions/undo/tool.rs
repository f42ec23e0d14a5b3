//! `undo_session`: files that the calls of a session have changed, put back as they were.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{
    Access, Change, Code, Consent, Effect, ExecutionPath, FileEffect, FsError, RelativePath, Root, Target,
    ToolError, Visibility, background, canonical,
};
use tgp_router::files::{ProjectFiles, difference};
use tgp_router::{
    ApprovedSnapshot, DynTool, FileDiff, Invocation, Preview, Tool, ToolOutcome, ToolSpec, typed,
};

use super::images::ImageLog;
use super::other_effects::{OtherEffect, other_effects};
use super::plan::{RestoredState, UndoPlan, UndoStep};
use crate::sessions::{SessionState, Sessions};

/// Paths that one call names.
const MAX_PATHS: usize = 1_000;
/// Files that an error names.
const MAX_NAMED: usize = 20;
/// Bytes of differences in one preview; the files beyond are named.
const MAX_SHOWN_BYTES: usize = 1 << 20;

/// The tool, for the sessions of one kernel.
///
/// # Errors
/// Never in practice: its name is a constant.
pub(crate) fn undo_tool(sessions: Sessions) -> Result<Arc<dyn DynTool>, ToolError> {
    typed(UndoSession { sessions })
}

struct UndoSession {
    sessions: Sessions,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UndoArgs {
    /// Its id, the beginning of it, or `last`.
    #[schemars(length(min = 1))]
    session: String,
    /// Files and directories; default: all that the session changed.
    #[serde(default)]
    #[schemars(length(max = MAX_PATHS))]
    paths: Vec<String>,
}

/// What was undone, or would be in a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoResult {
    pub session: String,
    pub changes: Vec<UndoneFile>,
    /// Files that the session changed and that cannot be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unkept: Vec<UnkeptFile>,
    /// True when the session made more changes than are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// What the session also did, which is not undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_undone: Vec<OtherEffect>,
    /// True when nothing was changed.
    #[serde(rename = "dry_run", default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A file that was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoneFile {
    pub path: RelativePath,
    /// What undoing does: `created`, `changed` or `deleted`.
    pub change: String,
    /// Another program changed the file between two changes of the session; it is put back to what that program left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_other_change: bool,
    /// In a dry run: a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// True when the diff is longer than what is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff_truncated: bool,
}

/// A file that cannot be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnkeptFile {
    pub path: RelativePath,
    pub reason: String,
}

#[async_trait]
impl Tool for UndoSession {
    type Args = UndoArgs;
    type Output = UndoResult;

    const INFO: ToolSpec = ToolSpec {
        name: "undo_session",
        aliases: &["session.undo"],
        description: "Put back the project files that the calls of a session changed. Databases, commits and requests are not undone.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &UndoArgs) -> Result<Vec<Target>, ToolError> {
        let target = |path| Target::File { root: Root::Project, path, access: Access::Write };
        Ok(named(args)?.into_iter().map(target).collect())
    }

    /// Each file that would be put back.
    async fn found_targets(&self, args: &UndoArgs, invocation: Invocation<'_>) -> Vec<Target> {
        let Ok(paths) = named(args) else { return Vec::new() };
        let (sessions, wanted) = (self.sessions.clone(), args.session.clone());
        let (files, visible) = (invocation.workspace.project_files(), invocation.visibility().await);
        let (only, place) = (paths.clone(), invocation.workspace.project_place().to_owned());
        let work = background::run(move || Undo::find(&sessions, &place, &wanted, &only, &files, &visible));
        let Ok(undo) = work.await else { return Vec::new() };
        let target = |step: &UndoStep| {
            let is_removed = matches!(step.restore, RestoredState::Absent { .. });
            let access = if is_removed { Access::Delete } else { Access::Write };
            Target::File { root: Root::Project, path: step.path.clone(), access }
        };
        undo.plan.steps.iter().map(target).collect()
    }

    async fn run(
        &self,
        args: UndoArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<UndoResult>, ToolError> {
        let paths = named(&args)?;
        let dry_run = invocation.context.dry_run;
        let judged: BTreeSet<RelativePath> =
            invocation.targets.iter().filter_map(Target::file).map(|(_, path, _)| path.clone()).collect();
        let (files, visible) = (invocation.workspace.project_files(), invocation.visibility().await);
        let (agreement, point) = (invocation.agreement(), invocation.point_of_no_return());
        let (workspace, context) = (invocation.workspace.clone(), invocation.context.clone());
        let (sessions, state) = (self.sessions.clone(), self.sessions.state().clone());
        let found = {
            let files = files.clone();
            let place = workspace.project_place().to_owned();
            background::run(move || {
                let undo = Undo::find(&sessions, &place, &args.session, &paths, &files, &visible)?;
                let prepared = undo.prepare(&files, &judged)?;
                Ok((undo, prepared))
            })
        };
        let (undo, prepared) = found.await?;
        // A person who is asked sees a preview first, and what a preview tries does not count for sequences of calls.
        let agreement = match dry_run && context.consent == Consent::Ask {
            true => agreement,
            false => judge(invocation, &prepared).await?.or(agreement),
        };
        background::run_bounded(move || {
            let mut result = UndoResult {
                session: undo.session.clone(),
                changes: prepared.iter().map(|file| file.shown(dry_run)).collect(),
                unkept: undo.unkept(),
                truncated: undo.plan.is_cut,
                not_undone: other_effects(&state, &undo.session)?,
                dry_run,
            };
            let effects = prepared.iter().map(PreparedFile::effect).collect();
            let batch: Vec<Change> = prepared.iter().map(|file| file.change.clone()).collect();
            if dry_run {
                cut_diffs(&mut result.changes);
                return Ok(ToolOutcome { files: effects, proposed: batch, ..result.into() });
            }
            if batch.is_empty() {
                point.pass_unseen()?;
                return Ok(result.into());
            }
            let mut growth = None;
            files.apply_all(&batch, || {
                for file in &prepared {
                    let now = content(&files, file.change.path())?;
                    let hash = now.as_deref().map(canonical::sha256_hex);
                    if hash != file.before_hash() {
                        return Err(changed_since(&[file.change.path()], &[]));
                    }
                    if let Some(agreement) = &agreement {
                        agreement.check_hash(Root::Project, file.change.path(), hash.as_deref())?;
                    }
                }
                let is_new = |file: &&PreparedFile| file.before.is_none();
                let added = files.new_entries(prepared.iter().filter(is_new).map(|file| file.change.path()));
                let removed = prepared.iter().filter(|file| file.change.content().is_none()).count();
                growth = Some(workspace.grow(&context, added, removed as u64)?);
                point.commit()
            })?;
            if let Some(growth) = growth {
                growth.keep();
            }
            prepared.iter().for_each(|file| file.finish(&files));
            // The files are back in any case; without the note the next undo finds them changed and refuses.
            let paths = prepared.iter().map(|file| file.change.path().clone()).collect();
            if let Err(error) = undo.log.undone(paths) {
                tracing::warn!(target: "kernel", "an undo was not noted: {error}");
            }
            Ok(ToolOutcome { files: effects, ..result.into() })
        })
        .await
    }
}

/// Has each file judged as if a file tool wrote or deleted it: a rule about those means it however it is changed.
async fn judge(
    invocation: Invocation<'_>,
    prepared: &[PreparedFile],
) -> Result<Option<Arc<ApprovedSnapshot>>, ToolError> {
    let target = |file: &PreparedFile| {
        let access = if file.change.content().is_some() { Access::Write } else { Access::Delete };
        Target::File { root: Root::Project, path: file.change.path().clone(), access }
    };
    let targets: Vec<Target> = prepared.iter().map(target).collect();
    let propose = || prepared.iter().map(|file| file.change.clone()).collect();
    let show = || {
        let diffs: Vec<FileDiff> = prepared.iter().map(PreparedFile::difference).collect();
        background::run(move || Preview::of_changes(diffs.into_iter().map(Ok)))
    };
    // Those that run later are among the targets of the call, and were asked about with it.
    invocation.router.judge_changes(invocation, &targets, &[], propose, show).await
}

fn named(args: &UndoArgs) -> Result<Vec<RelativePath>, ToolError> {
    let paths: Result<Vec<RelativePath>, _> = args.paths.iter().map(|path| RelativePath::new(path)).collect();
    let mut paths = paths?;
    if paths.iter().any(RelativePath::is_root) {
        paths.clear();
    }
    Ok(paths)
}

/// What is to be undone of a session.
struct Undo {
    session: String,
    plan: UndoPlan,
    log: ImageLog,
}

impl Undo {
    fn find(
        sessions: &Sessions,
        project: &Path,
        wanted: &str,
        paths: &[RelativePath],
        files: &ProjectFiles,
        visible: &Visibility,
    ) -> Result<Self, ToolError> {
        let session = sessions.find(wanted)?;
        if sessions.info(&session)?.state == SessionState::Running {
            return Err(ToolError::new(Code::Conflict, format!("session `{session}` is still running"))
                .help("wait until it has ended, or stop it with Ctrl-C there"));
        }
        let log = ImageLog::of(sessions, &session, project);
        let current = |path: &RelativePath| {
            content(files, path).ok().flatten().map(|bytes| canonical::sha256_hex(&bytes))
        };
        let mut plan = UndoPlan::of(&log.lines()?, &current);
        let is_meant = |path: &RelativePath| {
            let is_named = paths.is_empty() || paths.iter().any(|one| path.is_inside(one));
            is_named && visible.shows(Root::Project, path)
        };
        plan.steps.retain(|step| is_meant(&step.path));
        plan.unkept.retain(|(path, _)| is_meant(path));
        for path in paths {
            let is_known = |other: &RelativePath| other.is_inside(path);
            let is_found = plan.steps.iter().any(|step| is_known(&step.path))
                || plan.unkept.iter().any(|(other, _)| is_known(other));
            if !is_found {
                let message = format!("session `{session}` has no change of `{path}` to undo");
                return Err(ToolError::new(Code::NotFound, message)
                    .detail("path", path.as_str())
                    .help("`tgp undo SESSION --dry-run` lists what can be undone"));
            }
        }
        Ok(Self { session, plan, log })
    }

    /// Reads what is written, and refuses as a whole when a file is not what the session left.
    fn prepare(
        &self,
        files: &ProjectFiles,
        judged: &BTreeSet<RelativePath>,
    ) -> Result<Vec<PreparedFile>, ToolError> {
        let (mut prepared, mut changed) = (Vec::new(), Vec::new());
        for step in &self.plan.steps {
            let before = content(files, &step.path)?;
            let now = before.as_deref().map(canonical::sha256_hex);
            if now != step.left {
                // Already what it would be put back to.
                if now.as_deref() != step.restore.sha256() {
                    changed.push(&step.path);
                }
                continue;
            }
            if !judged.contains(&step.path) {
                let message = format!("`{}` was not among the files that the rules judged", step.path);
                return Err(
                    ToolError::new(Code::Conflict, message).help("nothing was changed; repeat the call")
                );
            }
            let path = step.path.clone();
            let (change, mode, missing_parents) = match &step.restore {
                RestoredState::Absent { missing_parents } => {
                    (Change::Remove { path }, None, *missing_parents)
                }
                RestoredState::File { sha256, mode } => {
                    let content = self.log.content(sha256)?.into();
                    (Change::Write { path, content }, Some(*mode), 0)
                }
            };
            let keeps_other_change = step.keeps_other_change;
            prepared.push(PreparedFile { change, before, mode, missing_parents, keeps_other_change });
        }
        if changed.is_empty() {
            return Ok(prepared);
        }
        let others: Vec<&RelativePath> = prepared.iter().map(|file| file.change.path()).collect();
        Err(changed_since(&changed, &others))
    }

    fn unkept(&self) -> Vec<UnkeptFile> {
        let file = |(path, reason): &(RelativePath, String)| UnkeptFile {
            path: path.clone(),
            reason: reason.clone(),
        };
        self.plan.unkept.iter().map(file).collect()
    }
}

/// A file that is about to be put back.
struct PreparedFile {
    change: Change,
    before: Option<Vec<u8>>,
    mode: Option<u32>,
    missing_parents: usize,
    keeps_other_change: bool,
}

impl PreparedFile {
    fn before_hash(&self) -> Option<String> {
        self.before.as_deref().map(canonical::sha256_hex)
    }

    fn shown(&self, with_diff: bool) -> UndoneFile {
        let (before, after) = (self.before.as_deref(), self.change.content());
        let change = match (before, after) {
            (_, None) => "deleted",
            (None, Some(_)) => "created",
            (Some(_), Some(_)) => "changed",
        };
        let path = self.change.path();
        let shown = with_diff.then(|| difference(path.as_str(), before, after));
        UndoneFile {
            path: path.clone(),
            change: change.to_owned(),
            keeps_other_change: self.keeps_other_change,
            diff_truncated: shown.as_ref().is_some_and(|shown| !shown.complete),
            diff: shown.map(|shown| shown.text),
        }
    }

    fn difference(&self) -> FileDiff {
        FileDiff {
            root: Root::Project,
            path: self.change.path().clone(),
            before: self.before.as_deref().map(Arc::from),
            after: self.change.content().map(Arc::from),
            executable: None,
        }
    }

    fn effect(&self) -> FileEffect {
        let (before, after) = (self.before.as_deref(), self.change.content());
        let path = self.change.path();
        let hash = |content: Option<&[u8]>| content.map(canonical::sha256_hex);
        let mut effect = FileEffect::new(Root::Project, path.clone(), hash(before), hash(after));
        let shown = difference(path.as_str(), before, after);
        effect.diff = Some(canonical::sha256_hex(shown.text.as_bytes()));
        effect
    }

    /// Permissions, and directories that were made for the file. What fails here loses nothing of the files.
    fn finish(&self, files: &ProjectFiles) {
        let path = self.change.path();
        match self.mode {
            Some(mode) if self.before.is_some() => {
                let _ = files.restore_mode(path, mode);
            }
            Some(mode) => {
                let _ = files.set_mode(path, mode);
            }
            None => {}
        }
        let mut directory = path.parent();
        for _ in 0..self.missing_parents {
            if directory.is_root() || !matches!(files.remove_empty_directory(&directory), Ok(true)) {
                break;
            }
            directory = directory.parent();
        }
    }
}

/// Keeps the first differences, as many as there is room for.
fn cut_diffs(files: &mut [UndoneFile]) {
    let mut left = MAX_SHOWN_BYTES;
    for file in files {
        let bytes = file.diff.as_ref().map_or(0, String::len);
        if bytes > left {
            (file.diff, file.diff_truncated) = (None, true);
        }
        left = left.saturating_sub(bytes);
    }
}

fn content(files: &ProjectFiles, path: &RelativePath) -> Result<Option<Vec<u8>>, ToolError> {
    match files.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FsError::NotFound(_) | FsError::NotDirectory(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Files that are not what the session left.
fn changed_since(changed: &[&RelativePath], others: &[&RelativePath]) -> ToolError {
    let names = |paths: &[&RelativePath]| -> Vec<String> {
        paths.iter().take(MAX_NAMED).map(ToString::to_string).collect()
    };
    let shown: Vec<String> = names(changed).iter().map(|path| format!("`{path}`")).collect();
    let more = changed.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("changed since the session's last change: {}{more}", shown.join(", "));
    let help = match others.is_empty() {
        true => "nothing was undone; compare the files by hand".to_owned(),
        false => format!(
            "nothing was undone; name only the other files to undo those: {}",
            names(others).join(" ")
        ),
    };
    ToolError::new(Code::Conflict, message)
        .detail("changed", names(changed))
        .detail("undoable", names(others))
        .help(help)
}
