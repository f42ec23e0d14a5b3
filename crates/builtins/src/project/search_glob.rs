//! `search_glob`: files of the project by the shape of their paths.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Effect, Entry, EntryKind, ExecutionPath, RelativePath, Target, ToolError};

use super::glob::{Glob, MAX_GLOB_CHARACTERS};
use super::page::{DEFAULT_LIMIT, MAX_LIMIT, Page, is_none_left_out};
use super::{BlockingPool, project_file};
use tgp_router::files::{Flow, IgnorePolicy, Walk};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

/// A search that takes longer shows what it has found, and says so.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct SearchGlob(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchGlobArgs {
    /// Glob for the paths below `path`.
    #[schemars(length(min = 1, max = MAX_GLOB_CHARACTERS))]
    pattern: String,
    /// Directory; default: the whole project.
    #[serde(default)]
    path: String,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: usize,
    /// Paths to skip.
    #[serde(default)]
    offset: usize,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

/// The files whose paths fit a glob, sorted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlobResult {
    /// Files in all.
    pub total: usize,
    /// False when not everything could be read in time, or names were left out.
    pub complete: bool,
    /// Names that are not UTF-8, which are left out.
    #[serde(default, skip_serializing_if = "is_none_left_out")]
    pub unnamed: u64,
    /// True when there is more than this page has.
    pub truncated: bool,
    /// The offset of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    pub paths: Vec<RelativePath>,
}

#[async_trait]
impl Tool for SearchGlob {
    type Args = SearchGlobArgs;
    type Output = GlobResult;

    const INFO: ToolSpec = ToolSpec {
        name: "search_glob",
        aliases: &["search.glob", "Glob"],
        description: "Find files of the project by a glob, such as `src/**/*.rs` or `*.{ts,tsx}`. A pattern without a slash matches names at any depth. Ignored files are left out.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &SearchGlobArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: SearchGlobArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<GlobResult>, ToolError> {
        let start = RelativePath::new(&args.path)?;
        let glob = Glob::new(&args.pattern)?;
        let files = invocation.filtered_workspace().await.project_files();
        let search = move |stop: &super::Stop| {
            let walk = Walk {
                files: &files,
                ignored: IgnorePolicy::Skipped,
                depth: usize::MAX,
                is_due: &|| stop.is_due(),
            };
            let mut found = Vec::new();
            let walked = walk.each(&start, &mut |entry: &Entry| {
                if entry.kind == EntryKind::File && glob.fits(&start, &entry.path) {
                    found.push(entry.path.clone());
                }
                Flow::On
            })?;
            let (complete, unnamed) = (walked.is_whole(), walked.unnamed);
            let total = found.len();
            let rows = found.into_iter().map(|path| {
                let bytes = path.as_str().len();
                (path, bytes)
            });
            let Page { rows, next } = Page::of(rows, args.offset, args.limit);
            let truncated = next.is_some() || !complete;
            Ok(GlobResult { total, complete, unnamed, truncated, next_offset: next, paths: rows })
        };
        Ok(self.0.search(PATIENCE, search).await?.into())
    }
}
