//! `patch_file`: one piece of text for another, literally.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Access, Code, Effect, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError};

use super::{Definition, preview, tool_file};
use crate::Library;
use crate::memory::refuse_derived;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct PatchFile {
    definition: ToolDefinition,
    library: Arc<Library>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    search: String,
    replace: String,
}

impl PatchFile {
    pub(super) fn new(library: Arc<Library>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "patch_file",
            aliases: &[],
            description: "Replace one piece of text in a file of the tool repository. The search text is literal and must occur exactly once. The change is committed and pushed.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File below the root." },
                    "search": { "type": "string", "minLength": 1, "description": "Text that occurs exactly once; add lines around it to make it so." },
                    "replace": { "type": "string", "description": "What stands there instead." }
                },
                "required": ["path", "search", "replace"],
                "additionalProperties": false
            }),
            effect: Effect::Write,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, library })
    }
}

#[async_trait]
impl Tool for PatchFile {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        tool_file(arguments, "path", Access::Write)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        refuse_derived(&path)?;
        let files = &invocation.workspace.tools;
        let Arguments { search, replace, .. } = arguments;
        if invocation.context.dry_run {
            let patched = patch(&path, &files.read_text(&path)?, &search, &replace)?;
            return preview(files.as_ref(), &path, &patched);
        }
        let meant = path.clone();
        self.library.patch(files, &path, move |text| patch(&meant, text, &search, &replace)).await
    }
}

fn patch(path: &RelativePath, text: &str, search: &str, replace: &str) -> Result<String, ToolError> {
    let places = occurrences(text, search);
    match places.as_slice() {
        [start] => {
            let (before, rest) = text.split_at(*start);
            let after = rest.get(search.len()..).unwrap_or_default();
            Ok([before, replace, after].concat())
        }
        [] => Err(ToolError::new(
            Code::Validation,
            format!("the search text does not occur in `{path}` (0 matches)"),
        )
        .detail("matches", 0)
        .help("read the file again and copy the text exactly, with its white space")),
        many => {
            let lines: Vec<usize> = many
                .iter()
                .map(|&start| text.get(..start).unwrap_or_default().matches('\n').count() + 1)
                .collect();
            Err(ToolError::new(
                Code::Validation,
                format!("the search text is ambiguous in `{path}`: {} matches", many.len()),
            )
            .detail("matches", many.len())
            .detail("lines", lines)
            .help("add the lines around the one you mean, so that the text occurs once"))
        }
    }
}

/// Where `search` begins, overlapping occurrences included: two readings of one place are ambiguous too.
fn occurrences(text: &str, search: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(search)) {
        let start = from + at;
        found.push(start);
        let step = text.get(start..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        from = start + step;
    }
    found
}
