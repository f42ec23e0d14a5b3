//! `git_log`: commits, newest first.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Effect, ExecutionPath, Target, ToolError};
use tgp_git::{LogRequest, LoggedCommit};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

use super::super::project_file;
use super::{BlockingPool, read_repository};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 200;

pub(super) struct GitLog(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitLogArgs {
    /// Only commits that changed it.
    #[serde(default)]
    path: String,
    /// Commit or branch; default: HEAD.
    from: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: usize,
    /// Commits to skip.
    #[serde(default)]
    offset: usize,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

/// Some commits of a branch, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitList {
    pub commits: Vec<CommitInfo>,
    /// False when a bound was reached before the end of the history.
    pub complete: bool,
    /// The offset of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitInfo {
    pub commit: String,
    pub parents: Vec<String>,
    pub author: String,
    pub email: String,
    /// When it was committed.
    pub time: String,
    pub message: String,
    /// True when the message is longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl From<LoggedCommit> for CommitInfo {
    fn from(commit: LoggedCommit) -> Self {
        Self {
            commit: commit.id,
            parents: commit.parents,
            author: commit.author,
            email: commit.email,
            time: tgp_text::rfc3339(commit.committed_ms),
            message: commit.message,
            truncated: commit.is_cut,
        }
    }
}

#[async_trait]
impl Tool for GitLog {
    type Args = GitLogArgs;
    type Output = CommitList;

    const INFO: ToolSpec = ToolSpec {
        name: "git_log",
        aliases: &["git.log"],
        description: "List commits, newest first.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &GitLogArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: GitLogArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<CommitList>, ToolError> {
        let path = super::paths_of(&[args.path])?.pop();
        let request = LogRequest { revision: args.from, path, skip: args.offset, limit: args.limit };
        let next = args.offset.saturating_add(args.limit);
        let list = read_repository(&self.0, invocation, move |repo, files| {
            let page = repo.log(&request, files)?;
            Ok(CommitList {
                commits: page.commits.into_iter().map(CommitInfo::from).collect(),
                complete: page.complete,
                next_offset: page.has_more.then_some(next),
            })
        });
        Ok(list.await?.into())
    }
}
