//! `fs_read`: the text of a file, page by page.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Code, Effect, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError, canonical,
};

use super::{Desk, MAX_PAGE_BYTES, project_file};
use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

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

pub(super) struct FsRead {
    definition: ToolDefinition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    #[serde(default = "first")]
    offset: usize,
    #[serde(default = "most")]
    limit: usize,
}

fn first() -> usize {
    1
}

fn most() -> usize {
    MAX_LINES
}

impl FsRead {
    pub(super) fn new(desk: Arc<Desk>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "fs_read",
            aliases: &["fs.read", "Read"],
            description: "Read a text file of the project. A page has at most 2,000 lines and 256 KiB; when there is more, `truncated` is true and `nextOffset` is the line to go on from. Answers {content, path, firstLine, lines, totalLines, bytes, truncated, nextOffset?, cut?, sha256}; bytes and sha256 are those of the whole file.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File below the project, such as `src/main.rs`." },
                    "offset": { "type": "integer", "minimum": 1, "default": 1, "description": "The first line, counted from 1." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LINES, "default": MAX_LINES, "description": "Lines at most." }
                },
                "required": ["path"],
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
impl Tool for FsRead {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        project_file(arguments, Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        let files = invocation.filtered_workspace().await.project_files();
        let read = move || {
            let bytes = files.read(&path)?;
            let text = text(&path, &bytes)?;
            let page = page(text, arguments.offset, arguments.limit).ok_or_else(|| {
                let lines = text.split_inclusive('\n').count();
                let message =
                    format!("line {} is beyond the end of `{path}`: it has {lines}", arguments.offset);
                ToolError::new(Code::Validation, message)
                    .detail("totalLines", lines)
                    .help("read from a line that is there; the first is 1")
            })?;
            let mut data = json!({
                "content": page.content,
                "path": path,
                "firstLine": arguments.offset,
                "lines": page.lines,
                "totalLines": page.total,
                "bytes": bytes.len(),
                "truncated": page.next.is_some() || page.cut.is_some(),
                "sha256": canonical::sha256_hex(&bytes),
            });
            if let Some(fields) = data.as_object_mut() {
                if let Some(next) = page.next {
                    fields.insert("nextOffset".to_owned(), json!(next));
                }
                if let Some((line, bytes)) = page.cut {
                    fields.insert("cut".to_owned(), json!({ "line": line, "bytes": bytes }));
                }
            }
            Ok(data)
        };
        Ok(self.desk.work(read).await?.into())
    }
}

/// The bytes as text, or what they are instead.
fn text<'b>(path: &RelativePath, bytes: &'b [u8]) -> Result<&'b str, ToolError> {
    let head = bytes.get(..SNIFFED_BYTES).unwrap_or(bytes);
    let known = SIGNATURES.iter().find(|(signature, _)| bytes.starts_with(signature)).map(|(_, kind)| *kind);
    let refused = |kind: &str| {
        ToolError::new(Code::Validation, format!("`{path}` is no text but {kind} of {} bytes", bytes.len()))
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
    /// The line that is shown in part, and how many bytes it has.
    cut: Option<(usize, usize)>,
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
            cut = Some((total, line.len()));
            full = true;
        }
    }
    if first > total.max(1) {
        return None;
    }
    let next = Some(first + lines).filter(|next| *next <= total);
    Some(Page { content: text.get(start..end).unwrap_or_default(), lines, total, next, cut })
}
