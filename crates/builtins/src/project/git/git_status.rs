//! `git_status`: what is not committed.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Effect, ExecutionPath, RelativePath, Target, ToolError};
use tgp_git::FileDelta;
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

use super::super::project_file;
use super::{BlockingPool, read_repository};

/// Files of one list of an answer.
const MAX_LISTED: usize = 500;

pub(super) struct GitStatus(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitStatusArgs {
    /// File or directory; default: all.
    #[serde(default)]
    path: String,
}

/// The state of the project's repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryState {
    /// The current branch; none when `HEAD` is detached.
    pub branch: Option<String>,
    /// The commit of `HEAD`; none before the first one.
    pub commit: Option<String>,
    /// What git is in the middle of, such as `merge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// What the index has and `HEAD` does not.
    pub staged: Vec<ChangedFile>,
    /// What the disk has and the index does not.
    pub unstaged: Vec<ChangedFile>,
    /// New files that no ignore file names.
    pub untracked: Vec<RelativePath>,
    /// Files with a merge conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicted: Vec<RelativePath>,
    /// True when a list is cut, or not every file could be compared in time.
    pub truncated: bool,
}

/// A file that is not as it was committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    pub path: RelativePath,
    /// `created`, `changed`, `deleted`, `link` or `submodule`.
    pub change: String,
}

#[async_trait]
impl Tool for GitStatus {
    type Args = GitStatusArgs;
    type Output = RepositoryState;

    const INFO: ToolSpec = ToolSpec {
        name: "git_status",
        aliases: &["git.status"],
        description: "Show the branch and uncommitted files of the project's git repository.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &GitStatusArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: GitStatusArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<RepositoryState>, ToolError> {
        let scope = super::paths_of(&[args.path])?;
        let state = read_repository(&self.0, invocation, move |repo, files| {
            let head = repo.head()?;
            let scan = repo.status(&scope, files)?;
            let lists = [scan.staged.len(), scan.unstaged.len(), scan.untracked.len(), scan.conflicted.len()];
            Ok(RepositoryState {
                branch: head.branch,
                commit: head.commit,
                operation: repo.operation().map(str::to_owned),
                staged: listed(&scan.staged),
                unstaged: listed(&scan.unstaged),
                untracked: scan.untracked.into_iter().take(MAX_LISTED).collect(),
                conflicted: scan.conflicted.into_iter().take(MAX_LISTED).collect(),
                truncated: !scan.complete || lists.into_iter().any(|length| length > MAX_LISTED),
            })
        });
        Ok(state.await?.into())
    }
}

fn listed(deltas: &[FileDelta]) -> Vec<ChangedFile> {
    let file =
        |delta: &FileDelta| ChangedFile { path: delta.path.clone(), change: delta.change().to_owned() };
    deltas.iter().take(MAX_LISTED).map(file).collect()
}
