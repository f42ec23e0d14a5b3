//! `search_grep`: lines of the project's files that fit a pattern.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{
    Access, Effect, Entry, EntryKind, ExecutionPath, FsError, RelativePath, Target, ToolError,
};

use super::glob::{Glob, MAX_GLOB_CHARACTERS};
use super::grep::{Grep, Hit, Pattern, StopReason};
use super::page::is_none_left_out;
use super::{BlockingPool, MAX_PAGE_BYTES, Stop, project_file};
use tgp_router::files::{Flow, IgnorePolicy, ProjectFiles, Walk};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

const DEFAULT_LIMIT: usize = 200;
/// Matches of one page.
const MAX_LIMIT: usize = 2_000;
/// Lines around a match.
const MAX_CONTEXT: usize = 10;
const MAX_PATTERN_CHARACTERS: usize = 4_096;
/// A larger file is data; it is counted as skipped.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The same where matches may go over lines: then the whole text is searched in one step, which nothing interrupts.
const MAX_MULTILINE_FILE_BYTES: u64 = 4 << 20;
/// A search that takes longer shows what it has found, and says so.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct SearchGrep(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchGrepArgs {
    /// Regular expression (Rust's regex syntax).
    #[schemars(length(min = 1, max = MAX_PATTERN_CHARACTERS))]
    pattern: String,
    /// File or directory; default: the whole project.
    #[serde(default)]
    path: String,
    /// Only files that match, such as `*.rs` or `src/**/*.ts`.
    #[schemars(length(min = 1, max = MAX_GLOB_CHARACTERS))]
    glob: Option<String>,
    /// Match letters of both cases.
    #[serde(default)]
    ignore_case: bool,
    /// Take the pattern as plain text.
    #[serde(default)]
    literal: bool,
    /// Let a match go over several lines.
    #[serde(default)]
    multiline: bool,
    /// Lines to show before and after.
    #[serde(default)]
    #[schemars(range(max = MAX_CONTEXT))]
    context: usize,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: usize,
    /// Matches to skip.
    #[serde(default)]
    offset: usize,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

/// The matches of a pattern, sorted by path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepResult {
    pub matches: Vec<GrepMatch>,
    /// Files with a match on this page.
    pub files: usize,
    /// Files that were searched for this page.
    pub searched: usize,
    pub skipped: SkippedFiles,
    /// False when not everything could be read in time, or names were left out.
    pub complete: bool,
    /// True when there is more than this page has.
    pub truncated: bool,
    /// The offset of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

/// One match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrepMatch {
    pub path: RelativePath,
    /// Counted from 1.
    pub line: u64,
    /// Counted from 1, in characters.
    pub column: usize,
    pub text: String,
    /// Lines before it.
    pub before: Vec<String>,
    /// Lines after it.
    pub after: Vec<String>,
}

/// Files that were not searched, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedFiles {
    pub binary: usize,
    pub large: usize,
    pub unreadable: usize,
    /// Names that are not UTF-8.
    #[serde(default, skip_serializing_if = "is_none_left_out")]
    pub unnamed: u64,
}

#[async_trait]
impl Tool for SearchGrep {
    type Args = SearchGrepArgs;
    type Output = GrepResult;

    const INFO: ToolSpec = ToolSpec {
        name: "search_grep",
        aliases: &["search.grep", "Grep"],
        description: "Search the text files of the project for a regular expression, line by line. Ignored files, binary files and links are left out.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &SearchGrepArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: SearchGrepArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<GrepResult>, ToolError> {
        let start = RelativePath::new(&args.path)?;
        let files = invocation.filtered_workspace().await.project_files();
        let search = move |stop: &Stop| {
            let glob = args.glob.as_deref().map(Glob::new).transpose()?;
            let pattern = Pattern {
                text: args.pattern,
                ignore_case: args.ignore_case,
                literal: args.literal,
                multiline: args.multiline,
                context: args.context,
            };
            let mut search = Search {
                grep: Grep::new(&pattern)?,
                max_bytes: if pattern.multiline { MAX_MULTILINE_FILE_BYTES } else { MAX_FILE_BYTES },
                found: Found { left_out: args.offset, room: args.limit, ..Found::default() },
                files: &files,
                stop,
            };
            let complete = search.everywhere(&start, glob.as_ref())?;
            Ok(search.found.answer(args.offset, complete))
        };
        Ok(self.0.search(PATIENCE, search).await?.into())
    }
}

struct Search<'a> {
    grep: Grep,
    max_bytes: u64,
    found: Found,
    files: &'a ProjectFiles,
    stop: &'a Stop,
}

/// What a search has come to.
#[derive(Default)]
struct Found {
    matches: Vec<GrepMatch>,
    bytes: usize,
    files: usize,
    searched: usize,
    skipped: SkippedFiles,
    /// Matches of earlier pages that are still to come.
    left_out: usize,
    room: usize,
    /// There are more matches than this page has.
    more: bool,
}

impl Search<'_> {
    /// Reports whether everything was read that should be.
    fn everywhere(&mut self, start: &RelativePath, glob: Option<&Glob>) -> Result<bool, ToolError> {
        let entry = self.files.entry(start)?.ok_or_else(|| FsError::NotFound(start.clone()))?;
        if entry.kind != EntryKind::Directory {
            // A caller that names a file wants to know why it cannot be searched.
            let content = self.files.read(start)?;
            return Ok(self.file(&entry, &content) == Flow::On || self.found.more);
        }
        let (files, stop) = (self.files, self.stop);
        let walk =
            Walk { files, ignored: IgnorePolicy::Skipped, depth: usize::MAX, is_due: &|| stop.is_due() };
        let walked = walk.each(start, &mut |entry: &Entry| {
            if entry.kind != EntryKind::File || glob.is_some_and(|glob| !glob.fits(start, &entry.path)) {
                return Flow::On;
            }
            if stop.is_due() {
                return Flow::Stop;
            }
            if entry.size > self.max_bytes {
                self.found.skipped.large += 1;
                return Flow::On;
            }
            match files.read(&entry.path) {
                Ok(content) => self.file(entry, &content),
                Err(_) => {
                    self.found.skipped.unreadable += 1;
                    Flow::On
                }
            }
        })?;
        // A full page ends the walk as well, and is not a fault of it.
        self.found.skipped.unnamed = walked.unnamed;
        Ok(walked.is_whole() || self.found.more)
    }

    fn file(&mut self, entry: &Entry, content: &[u8]) -> Flow {
        if content.len() as u64 > self.max_bytes {
            self.found.skipped.large += 1;
            return Flow::On;
        }
        if content.contains(&0) {
            self.found.skipped.binary += 1;
            return Flow::On;
        }
        self.found.searched += 1;
        let (found, stop) = (&mut self.found, self.stop);
        let before = found.matches.len();
        let searched = self.grep.search(content, &|| stop.is_due(), &mut |hit| found.take(&entry.path, &hit));
        found.files += usize::from(found.matches.len() > before);
        match searched {
            Ok(()) => Flow::On,
            Err(StopReason::Enough | StopReason::Due) => Flow::Stop,
        }
    }
}

impl Found {
    /// Reports whether there is room for more.
    fn take(&mut self, path: &RelativePath, hit: &Hit) -> bool {
        if self.left_out > 0 {
            self.left_out -= 1;
            return true;
        }
        let around = hit.before.iter().chain(&hit.after).map(String::len).sum::<usize>();
        let bytes = self.bytes + path.as_str().len() + hit.text.len() + around;
        if self.matches.len() >= self.room || (bytes > MAX_PAGE_BYTES && !self.matches.is_empty()) {
            self.more = true;
            return false;
        }
        self.bytes = bytes;
        self.matches.push(GrepMatch {
            path: path.clone(),
            line: hit.line,
            column: hit.column,
            text: hit.text.clone(),
            before: hit.before.clone(),
            after: hit.after.clone(),
        });
        true
    }

    fn answer(self, offset: usize, complete: bool) -> GrepResult {
        let next_offset = self.more.then_some(offset + self.matches.len());
        GrepResult {
            matches: self.matches,
            files: self.files,
            searched: self.searched,
            skipped: self.skipped,
            complete,
            truncated: self.more || !complete,
            next_offset,
        }
    }
}
