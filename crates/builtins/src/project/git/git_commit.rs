//! `git_commit`: a commit of files of the project, on the current branch or on one of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tgp_contract::{Code, Effect, ExecutionPath, RelativePath, Root, Target, ToolError, background};
use tgp_git::{CommitPlan, CommitRequest, PlannedFile, ProjectRepo, VersionContent, WorkFiles};
use tgp_router::{
    ApprovedSnapshot, FileSnapshot, Invocation, Preview, Tool, ToolOutcome, ToolSpec, Workspace,
};

use super::shown::{between, version};
use super::work_files::VisibleWorkFiles;
use super::{BlockingPool, paths_of, read_repository, reads};

/// Bytes of differences in one preview; the files beyond are named, and bound by their hashes all the same.
const MAX_SHOWN_BYTES: usize = 512 * 1024;
/// Paths that one call names.
const MAX_PATHS: usize = 500;

pub(super) struct GitCommit(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitCommitArgs {
    #[schemars(length(min = 1))]
    message: String,
    /// Default: all changes.
    #[serde(default)]
    #[schemars(length(max = MAX_PATHS))]
    paths: Vec<String>,
    /// Default: the current one. A new one starts at HEAD.
    branch: Option<String>,
    /// Refuse with ECONFLICT unless the dry run has shown this tree.
    #[schemars(regex(pattern = "^[0-9a-f]{40}$"))]
    expected_tree: Option<String>,
}

impl GitCommitArgs {
    fn request(&self) -> Result<CommitRequest, ToolError> {
        Ok(CommitRequest {
            message: self.message.clone(),
            branch: self.branch.clone(),
            paths: paths_of(&self.paths)?,
        })
    }
}

/// A commit that was made, or would be made in a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitResult {
    /// The new commit; none in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub branch: String,
    /// Whether the branch is new.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub creates_branch: bool,
    /// The commit before it; none for the first one.
    pub parent: Option<String>,
    /// The hash of all files after it.
    pub tree: String,
    pub author: String,
    pub message: String,
    pub changes: Vec<CommitFile>,
    /// Changed files that are not part of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutFile>,
    /// What git would do around a commit and this tool does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// True when nothing was committed.
    #[serde(rename = "dry_run", default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitFile {
    pub path: RelativePath,
    /// `created`, `changed` or `deleted`.
    pub change: String,
    /// In a dry run: a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// True when the diff is longer than what is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff_truncated: bool,
}

/// A changed file that is not part of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutFile {
    pub path: RelativePath,
    pub reason: String,
}

#[async_trait]
impl Tool for GitCommit {
    type Args = GitCommitArgs;
    type Output = CommitResult;

    const INFO: ToolSpec = ToolSpec {
        name: "git_commit",
        aliases: &["git.commit"],
        description: "Commit files of the project as they are on the disk. Hooks and filters do not run, and nothing is pushed.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &GitCommitArgs) -> Result<Vec<Target>, ToolError> {
        let branch = args.branch.iter().map(|name| Target::Branch { name: name.clone() });
        Ok(branch.chain(reads(paths_of(&args.paths)?)).collect())
    }

    /// The current branch is a target like one that is named.
    async fn targets_in(
        &self,
        args: &GitCommitArgs,
        workspace: &Workspace,
    ) -> Result<Vec<Target>, ToolError> {
        let (place, access) = (workspace.project_place().to_owned(), workspace.repository().clone());
        let wanted = args.branch.clone();
        let branch =
            background::run(move || ProjectRepo::open(&place, &access)?.target_branch(wanted.as_deref()))
                .await?;
        let mut targets = vec![Target::Branch { name: branch }];
        targets.extend(reads(paths_of(&args.paths)?));
        Ok(targets)
    }

    /// Each file that would be committed.
    async fn found_targets(&self, args: &GitCommitArgs, invocation: Invocation<'_>) -> Vec<Target> {
        let Ok(paths) = paths_of(&args.paths) else { return Vec::new() };
        let named: BTreeSet<RelativePath> = paths.iter().cloned().collect();
        let changed =
            read_repository(&self.0, invocation, move |repo, files| repo.changed_files(&paths, files));
        let changed = changed.await.unwrap_or_default();
        reads(changed.into_iter().filter(|path| !named.contains(path)))
    }

    async fn preview(&self, args: GitCommitArgs, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let (result, found) = self.commit(args, invocation).await?;
        Ok(Preview { data: Some(json!(result)), found, missing: None })
    }

    async fn run(
        &self,
        args: GitCommitArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<CommitResult>, ToolError> {
        let (result, _) = self.commit(args, invocation).await?;
        Ok(result.into())
    }
}

impl GitCommit {
    /// Makes the commit, or finds out what it would be in a dry run; with the files that decide it as they are now.
    async fn commit(
        &self,
        args: GitCommitArgs,
        invocation: Invocation<'_>,
    ) -> Result<(CommitResult, Vec<FileSnapshot>), ToolError> {
        let request = args.request()?;
        let dry_run = invocation.context.dry_run;
        let judged: BTreeSet<RelativePath> = invocation
            .targets
            .iter()
            .filter_map(Target::file)
            .filter(|(root, ..)| *root == Root::Project)
            .map(|(_, path, _)| path.clone())
            .collect();
        let (agreement, point) = (invocation.agreement(), invocation.point_of_no_return());
        let commit = move |repo: &ProjectRepo, files: &VisibleWorkFiles<'_>| {
            let plan = repo.plan(&request, files)?;
            if let Some(tree) = args.expected_tree.filter(|tree| *tree != plan.tree) {
                return Err(ToolError::new(Code::Conflict, "the files have changed since the dry run")
                    .detail("expectedTree", tree)
                    .detail("tree", plan.tree.as_str())
                    .help("make another dry run and decide on what it shows; nothing was committed"));
            }
            refuse_unjudged(&plan, &judged)?;
            let found = snapshots(&plan)?;
            if dry_run {
                let changes = previews(repo, &plan, files)?;
                return Ok((result_of(&plan, None, changes), found));
            }
            check_agreement(agreement.as_deref(), &found)?;
            point.commit()?;
            let done = repo.commit(&plan)?;
            let changes = plan.files.iter().map(|file| commit_file(file, None, false)).collect();
            Ok((result_of(&plan, Some(done.commit), changes), found))
        };
        // The lock is taken last: a call that waits for it must not keep others from the place that they need to release it.
        read_repository(&self.0, invocation, |repo, files| {
            files.files.while_unchanged(|| commit(repo, files))
        })
        .await
    }
}

/// Refuses a file that the gates have not judged: it was changed after they were asked.
fn refuse_unjudged(plan: &CommitPlan, judged: &BTreeSet<RelativePath>) -> Result<(), ToolError> {
    let Some(file) = plan.files.iter().find(|file| !judged.contains(&file.path)) else { return Ok(()) };
    let message = format!("`{}` was changed since the rules judged the commit", file.path);
    Err(ToolError::new(Code::Conflict, message)
        .detail("path", file.path.as_str())
        .help("nothing was committed; repeat the call"))
}

/// The files as they are now, and the branch: an approval is for exactly these.
fn snapshots(plan: &CommitPlan) -> Result<Vec<FileSnapshot>, ToolError> {
    let file = |file: &PlannedFile| FileSnapshot {
        root: Root::Project,
        path: file.path.clone(),
        sha256: file.sha256.clone(),
    };
    let path = RelativePath::new(&format!(".git/refs/heads/{}", plan.branch))?;
    let branch = FileSnapshot { root: Root::Project, path, sha256: plan.parent.clone() };
    Ok(plan.files.iter().map(file).chain([branch]).collect())
}

fn check_agreement(agreement: Option<&ApprovedSnapshot>, found: &[FileSnapshot]) -> Result<(), ToolError> {
    let Some(agreement) = agreement else { return Ok(()) };
    found.iter().try_for_each(|file| agreement.check_hash(file.root, &file.path, file.sha256.as_deref()))
}

/// The differences, as many as there is room for.
fn previews(
    repo: &ProjectRepo,
    plan: &CommitPlan,
    files: &dyn WorkFiles,
) -> Result<Vec<CommitFile>, ToolError> {
    let mut left = MAX_SHOWN_BYTES;
    let mut shown = Vec::with_capacity(plan.files.len());
    for file in &plan.files {
        if left == 0 {
            shown.push(commit_file(file, None, true));
            continue;
        }
        let before = version(repo, &file.path, file.before, files)?;
        let after = file.content.clone().map(VersionContent::Bytes);
        let was = file.before.is_some_and(|version| version.executable);
        let executable = (file.content.is_some() && was != file.executable).then_some(file.executable);
        let difference = between(&file.path, before.as_ref(), after.as_ref(), executable);
        left = left.saturating_sub(difference.text.len());
        shown.push(commit_file(file, Some(difference.text), !difference.complete));
    }
    Ok(shown)
}

fn commit_file(file: &PlannedFile, diff: Option<String>, diff_truncated: bool) -> CommitFile {
    let change = match (&file.before, &file.content) {
        (None, _) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "changed",
    };
    CommitFile { path: file.path.clone(), change: change.to_owned(), diff, diff_truncated }
}

fn result_of(plan: &CommitPlan, commit: Option<String>, changes: Vec<CommitFile>) -> CommitResult {
    let left_out = |(path, reason): &(RelativePath, &'static str)| LeftOutFile {
        path: path.clone(),
        reason: (*reason).to_owned(),
    };
    CommitResult {
        dry_run: commit.is_none(),
        commit,
        branch: plan.branch.clone(),
        creates_branch: plan.creates_branch,
        parent: plan.parent.clone(),
        tree: plan.tree.clone(),
        author: plan.author.clone(),
        message: plan.message.clone(),
        changes,
        left_out: plan.left_out.iter().map(left_out).collect(),
        notes: plan.notes.clone(),
    }
}
