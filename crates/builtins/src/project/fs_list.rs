//! `fs_list`: the entries of a directory of the project.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Effect, Entry, EntryKind, ExecutionPath, RelativePath, Target, ToolError};

use super::page::{DEFAULT_LIMIT, MAX_LIMIT, Page, is_none_left_out};
use super::{BlockingPool, project_file};
use tgp_router::files::{Flow, IgnorePolicy, Walk};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

const MAX_DEPTH: usize = 64;
/// A listing that takes longer shows what it has seen, and says so.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct FsList(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FsListArgs {
    /// Default: the whole project.
    #[serde(default)]
    path: String,
    /// Levels to show.
    #[serde(default = "own_entries")]
    #[schemars(range(min = 1, max = MAX_DEPTH))]
    depth: usize,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: usize,
    /// Entries to skip.
    #[serde(default)]
    offset: usize,
    /// Also show ignored files.
    #[serde(default)]
    ignored: bool,
}

fn own_entries() -> usize {
    1
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

/// The entries of a directory, sorted by path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileList {
    pub path: RelativePath,
    /// Entries in all.
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
    pub entries: Vec<ListedFile>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedFile {
    pub path: RelativePath,
    pub kind: EntryKind,
    /// Bytes of a file, 0 otherwise.
    pub size: u64,
}

#[async_trait]
impl Tool for FsList {
    type Args = FsListArgs;
    type Output = FileList;

    const INFO: ToolSpec = ToolSpec {
        name: "fs_list",
        aliases: &["fs.list"],
        description: "List a directory of the project, sorted by path, with hidden files and without ignored ones. Kind `other` is a link or a special file.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &FsListArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: FsListArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<FileList>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        let files = invocation.filtered_workspace().await.project_files();
        let list = move |stop: &super::Stop| {
            let ignored = if args.ignored { IgnorePolicy::Shown } else { IgnorePolicy::Skipped };
            let walk = Walk { files: &files, ignored, depth: args.depth, is_due: &|| stop.is_due() };
            let mut entries = Vec::new();
            let walked = walk.each(&path, &mut |entry: &Entry| {
                entries.push(entry.clone());
                Flow::On
            })?;
            let (complete, unnamed) = (walked.is_whole(), walked.unnamed);
            entries.sort();
            let total = entries.len();
            let rows = entries.into_iter().map(|Entry { path, kind, size, .. }| {
                let bytes = path.as_str().len();
                (ListedFile { path, kind, size }, bytes)
            });
            let Page { rows, next } = Page::of(rows, args.offset, args.limit);
            let truncated = next.is_some() || !complete;
            Ok(FileList { path, total, complete, unnamed, truncated, next_offset: next, entries: rows })
        };
        Ok(self.0.search(PATIENCE, list).await?.into())
    }
}
