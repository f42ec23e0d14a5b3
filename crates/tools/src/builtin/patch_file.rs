//! `patch_file`: one piece of text for another, literally.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Effect, ExecutionPath, RelativePath, Target, ToolDefinition, ToolError};

use super::{Definition, preview, written_file};
use crate::Library;
use crate::files::{Replacement, patch};
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
        written_file(&self.library, arguments)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        refuse_derived(&path)?;
        let files = &invocation.workspace.tools;
        // Whether a text occurs in a file is a matter of who may read it.
        invocation.visible_tools().await.read(&path)?;
        let replacement = Replacement { search: arguments.search, replace: arguments.replace, all: false };
        if invocation.context.dry_run {
            let (patched, _) = patch(&path, &files.read_text(&path)?, &replacement)?;
            return preview(files.as_ref(), &path, &patched, self.library.remote());
        }
        let meant = path.clone();
        let patch = move |text: &str| patch(&meant, text, &replacement).map(|(patched, _)| patched);
        let (agreement, point) = (invocation.agreement(), invocation.point_of_no_return());
        self.library.patch(files, &path, patch, agreement, point).await
    }
}
