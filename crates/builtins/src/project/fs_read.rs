//! `fs_read`: the text of a file, page by page.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Code, Effect, ExecutionPath, RelativePath, Target, ToolError, canonical};

use super::{BlockingPool, MAX_PAGE_BYTES, project_file};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

/// Lines of one page.
const MAX_LINES: usize = 2_000;
/// A zero byte in this much of the beginning makes a file binary, as git sees it.
const SNIFFED_BYTES: usize = 8 * 1024;

/// How well-known kinds of binary files begin.
const SIGNATURES: [(&[u8], &str); 14] = [
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF container"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "an ELF binary"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"wOF", "a web font"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
];

pub(super) struct FsRead(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FsReadArgs {
    /// Such as `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// The first line, counted from 1.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    offset: usize,
    /// Lines at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LINES))]
    limit: usize,
}

fn first_line() -> usize {
    1
}

fn default_limit() -> usize {
    MAX_LINES
}

/// Some lines of a text file of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilePage {
    pub content: String,
    pub path: RelativePath,
    /// The number of the first line, counted from 1.
    pub first_line: usize,
    /// Lines of this page.
    pub lines: usize,
    /// Lines of the whole file.
    pub total_lines: usize,
    /// Of the whole file.
    pub bytes: usize,
    /// True when there is more than this page has.
    pub truncated: bool,
    /// Of the whole file.
    pub sha256: String,
    /// The first line of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// The line that is shown in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutLine>,
}

/// A line that is too long for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CutLine {
    pub line: usize,
    /// Of the whole line.
    pub bytes: usize,
}

#[async_trait]
impl Tool for FsRead {
    type Args = FsReadArgs;
    type Output = FilePage;

    const INFO: ToolSpec = ToolSpec {
        name: "fs_read",
        aliases: &["fs.read", "Read"],
        description: "Read a text file of the project. A page has at most 2,000 lines and 256 KiB; if `truncated` is true, continue at `nextOffset`.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &FsReadArgs) -> Result<Vec<Target>, ToolError> {
        project_file(&args.path, Access::Read)
    }

    async fn run(
        &self,
        args: FsReadArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<FilePage>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        let files = invocation.filtered_workspace().await.project_files();
        let read = move || {
            let bytes = files.read(&path)?;
            let text = text(&path, &bytes)?;
            let page = page(text, args.offset, args.limit).ok_or_else(|| {
                let lines = text.split_inclusive('\n').count();
                let message = format!("line {} is beyond the end of `{path}`: it has {lines}", args.offset);
                ToolError::new(Code::Validation, message)
                    .detail("totalLines", lines)
                    .help("read from a line that is there; the first is 1")
            })?;
            Ok(FilePage {
                content: page.content.to_owned(),
                first_line: args.offset,
                lines: page.lines,
                total_lines: page.total,
                bytes: bytes.len(),
                truncated: page.next.is_some() || page.cut.is_some(),
                sha256: canonical::sha256_hex(&bytes),
                next_offset: page.next,
                cut: page.cut,
                path,
            })
        };
        Ok(self.0.work(read).await?.into())
    }
}

/// The bytes as text, or what they are instead.
fn text<'b>(path: &RelativePath, bytes: &'b [u8]) -> Result<&'b str, ToolError> {
    let head = bytes.get(..SNIFFED_BYTES).unwrap_or(bytes);
    let known = SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature)).map(|(_, kind)| *kind);
    let refused = |kind: &str| {
        ToolError::new(Code::Validation, format!("`{path}` is not text but {kind} of {} bytes", bytes.len()))
            .detail("kind", kind)
            .detail("bytes", bytes.len())
            .help("only UTF-8 text can be read; look at it with a program that knows its format")
    };
    if head.contains(&0) {
        return Err(refused(known.unwrap_or("binary data")));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        refused(known.unwrap_or("data in another encoding than UTF-8")).detail("offset", error.valid_up_to())
    })
}

struct Page<'t> {
    content: &'t str,
    lines: usize,
    total: usize,
    next: Option<usize>,
    /// The line that is shown in part.
    cut: Option<CutLine>,
}

/// The lines from `first` on, or nothing when there are not so many.
fn page(text: &str, first: usize, limit: usize) -> Option<Page<'_>> {
    let (mut start, mut end, mut lines, mut total) = (0, 0, 0, 0);
    let (mut at, mut cut, mut full) = (0, None, false);
    for line in text.split_inclusive('\n') {
        total += 1;
        if total == first {
            (start, end) = (at, at);
        }
        at += line.len();
        if total < first || full {
            continue;
        }
        if lines == limit || (lines > 0 && at - start > MAX_PAGE_BYTES) {
            full = true;
            continue;
        }
        lines += 1;
        end = at;
        if at - start > MAX_PAGE_BYTES {
            end = text.floor_char_boundary(start + MAX_PAGE_BYTES);
            cut = Some(CutLine { line: total, bytes: line.len() });
            full = true;
        }
    }
    if first > total.max(1) {
        return None;
    }
    let next = Some(first + lines).filter(|next| *next <= total);
    Some(Page { content: text.get(start..end).unwrap_or_default(), lines, total, next, cut })
}
