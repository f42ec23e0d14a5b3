//! `search_grep`: lines of the project's files that fit a pattern.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Effect, Entry, EntryKind, ExecutionPath, FsError, RelativePath, Target, ToolDefinition, ToolError,
};

use super::glob::Glob;
use super::grep::{Early, Grep, Hit, Pattern};
use super::{Desk, MAX_PAGE_BYTES, Stop, project_file};
use crate::builtin::Definition;
use crate::files::{Flow, Ignored, ProjectFiles, Walk};
use crate::router::{Invocation, Outcome, Tool};

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

pub(super) struct SearchGrep {
    definition: ToolDefinition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    path: String,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    multiline: bool,
    #[serde(default)]
    context: usize,
    #[serde(default = "limit")]
    limit: usize,
    #[serde(default)]
    offset: usize,
}

fn limit() -> usize {
    DEFAULT_LIMIT
}

impl SearchGrep {
    pub(super) fn new(desk: Arc<Desk>) -> Result<Self, ToolError> {
        let flag =
            |description: &str| json!({ "type": "boolean", "default": false, "description": description });
        let definition = Definition {
            name: "search_grep",
            aliases: &["search.grep", "Grep"],
            description: "Search the text files of the project for a regular expression, line by line. Sorted by path; without what .gitignore and .ignore name, binary files and links. Answers {matches: [{path, line, column, text, before, after}], files, searched, skipped, complete, truncated, nextOffset?}; `files` counts those with a match on this page.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "minLength": 1, "maxLength": MAX_PATTERN_CHARACTERS, "description": "Regular expression (Rust's regex syntax)." },
                    "path": { "type": "string", "description": "File or directory below the project; the project itself when it is left out." },
                    "glob": Glob::schema("Only files whose path below `path` fits, such as `*.rs` or `src/**/*.ts`."),
                    "ignore_case": flag("Match letters of both cases."),
                    "literal": flag("Take the pattern as plain text."),
                    "multiline": flag("Let a match go over several lines."),
                    "context": { "type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "default": 0, "description": "Lines to show before and after." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT },
                    "offset": { "type": "integer", "minimum": 0, "default": 0, "description": "Matches to skip." }
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
            effect: Effect::Read,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, desk })
    }
}

#[async_trait]
impl Tool for SearchGrep {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        project_file(arguments, Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let start = RelativePath::new(&arguments.path)?;
        let files = invocation.filtered_workspace().await.project_files();
        let search = move |stop: &Stop| {
            let glob = arguments.glob.as_deref().map(Glob::new).transpose()?;
            let pattern = Pattern {
                text: arguments.pattern,
                ignore_case: arguments.ignore_case,
                literal: arguments.literal,
                multiline: arguments.multiline,
                context: arguments.context,
            };
            let mut search = Search {
                grep: Grep::new(&pattern)?,
                max_bytes: if pattern.multiline { MAX_MULTILINE_FILE_BYTES } else { MAX_FILE_BYTES },
                found: Found { left_out: arguments.offset, room: arguments.limit, ..Found::default() },
                files: &files,
                stop,
            };
            let complete = search.everywhere(&start, glob.as_ref())?;
            Ok(search.found.answer(arguments.offset, complete))
        };
        Ok(self.desk.search(PATIENCE, search).await?.into())
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
    matches: Vec<Value>,
    bytes: usize,
    files: usize,
    searched: usize,
    skipped: Skipped,
    /// Matches of earlier pages that are still to come.
    left_out: usize,
    room: usize,
    /// There are more matches than this page has.
    more: bool,
}

#[derive(Default)]
struct Skipped {
    binary: usize,
    large: usize,
    unreadable: usize,
}

impl Search<'_> {
    /// Answers whether everything was looked at that should be.
    fn everywhere(&mut self, start: &RelativePath, glob: Option<&Glob>) -> Result<bool, ToolError> {
        let entry = self.files.entry(start)?.ok_or_else(|| FsError::NotFound(start.clone()))?;
        if entry.kind != EntryKind::Directory {
            // Whoever names a file wants to know why it cannot be searched.
            let content = self.files.read(start)?;
            return Ok(self.file(&entry, &content) == Flow::On || self.found.more);
        }
        let (files, stop) = (self.files, self.stop);
        let walk = Walk { files, ignored: Ignored::Skipped, depth: usize::MAX, is_due: &|| stop.is_due() };
        let complete = walk.each(start, &mut |entry: &Entry| {
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
        // A full page ends the walk as well, and is no fault of it.
        Ok(complete.is_whole() || self.found.more)
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
            Err(Early::Enough | Early::Due) => Flow::Stop,
        }
    }
}

impl Found {
    /// Answers whether there is room for more.
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
        self.matches.push(json!({
            "path": path,
            "line": hit.line,
            "column": hit.column,
            "text": hit.text,
            "before": hit.before,
            "after": hit.after,
        }));
        true
    }

    fn answer(self, offset: usize, complete: bool) -> Value {
        let next = offset + self.matches.len();
        let mut data = json!({
            "matches": self.matches,
            "files": self.files,
            "searched": self.searched,
            "skipped": {
                "binary": self.skipped.binary,
                "large": self.skipped.large,
                "unreadable": self.skipped.unreadable,
            },
            "complete": complete,
            "truncated": self.more || !complete,
        });
        if self.more
            && let Some(fields) = data.as_object_mut()
        {
            fields.insert("nextOffset".to_owned(), json!(next));
        }
        data
    }
}
