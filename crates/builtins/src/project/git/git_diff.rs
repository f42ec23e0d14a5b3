//! `git_diff`: the difference between two versions of the project.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Code, Effect, ExecutionPath, RelativePath, Target, ToolError};
use tgp_git::VersionPair;
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

use super::super::project_file;
use super::shown::difference_of;
use super::{BlockingPool, read_repository};

/// Bytes of differences on one page: what a model can still read.
const MAX_PAGE_BYTES: usize = 64 * 1024;
/// Files on one page.
const MAX_PAGE_FILES: usize = 200;

pub(super) struct GitDiff(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GitDiffArgs {
    /// File or directory; default: all.
    #[serde(default)]
    path: String,
    /// Index against HEAD.
    #[serde(default)]
    staged: bool,
    /// Commit to compare from.
    from: Option<String>,
    /// Commit to compare with; default: the disk.
    to: Option<String>,
    /// Files to skip.
    #[serde(default)]
    offset: usize,
}

impl GitDiffArgs {
    fn comparison(&self) -> Result<VersionPair, ToolError> {
        match (self.staged, &self.from, &self.to) {
            (true, None, None) => Ok(VersionPair::Staged),
            (false, None, None) => Ok(VersionPair::Unstaged),
            (false, Some(from), None) => Ok(VersionPair::WithDisk { from: from.clone() }),
            (false, Some(from), Some(to)) => Ok(VersionPair::Commits { from: from.clone(), to: to.clone() }),
            (false, None, Some(_)) => Err(ToolError::new(Code::Validation, "`to` needs `from`")
                .detail("field", "from")
                .help("name the commit to compare with in `from`")),
            (true, ..) => Err(ToolError::new(Code::Validation, "`staged` excludes `from` and `to`")
                .detail("field", "staged")
                .help("leave out `staged`, or `from` and `to`")),
        }
    }
}

/// The differences of some files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffPage {
    /// Files that differ, in all.
    pub total: usize,
    /// False when not every file could be compared in time.
    pub complete: bool,
    /// True when there are more files than this page has.
    pub truncated: bool,
    /// The offset of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    pub files: Vec<DiffFile>,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffFile {
    pub path: RelativePath,
    /// `created`, `changed`, `deleted`, `link` or `submodule`.
    pub change: String,
    /// A unified diff.
    pub diff: String,
    /// True when the diff is longer than what is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff_truncated: bool,
}

#[async_trait]
impl Tool for GitDiff {
    type Args = GitDiffArgs;
    type Output = DiffPage;

    const INFO: ToolSpec = ToolSpec {
        name: "git_diff",
        aliases: &["git.diff"],
        description: "Show changes of tracked files: unstaged ones, staged ones, or since a commit.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &GitDiffArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: GitDiffArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<DiffPage>, ToolError> {
        let what = args.comparison()?;
        let (scope, offset) = (super::paths_of(&[args.path])?, args.offset);
        let page = read_repository(&self.0, invocation, move |repo, files| {
            let (deltas, complete) = repo.compare(&what, &scope, files)?;
            let mut page = DiffPage {
                total: deltas.len(),
                complete,
                truncated: false,
                next_offset: None,
                files: Vec::new(),
            };
            let mut left = MAX_PAGE_BYTES;
            for (number, delta) in deltas.iter().enumerate().skip(offset) {
                let shown = difference_of(repo, delta, files)?;
                // At least one file is on a page, or no caller would get past it.
                let fits = shown.text.len() <= left && page.files.len() < MAX_PAGE_FILES;
                if !fits && !page.files.is_empty() {
                    page.next_offset = Some(number);
                    page.truncated = true;
                    break;
                }
                let text = tgp_text::head(&shown.text, left);
                page.files.push(DiffFile {
                    path: delta.path.clone(),
                    change: delta.change().to_owned(),
                    diff_truncated: !shown.complete || text.len() < shown.text.len(),
                    diff: text.to_owned(),
                });
                left -= text.len();
            }
            Ok(page)
        });
        Ok(page.await?.into())
    }
}
