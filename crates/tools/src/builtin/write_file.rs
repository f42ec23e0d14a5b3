//! `write_file`: a new file, or a new content for an old one.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{Effect, ExecutionPath, RelativePath, Root, Target, ToolDefinition, ToolError};

use super::{Definition, preview, written_file};
use crate::Library;
use crate::memory::{WriteTerms, refuse_derived};
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct WriteFile {
    definition: ToolDefinition,
    library: Arc<Library>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    despite: Vec<String>,
}

/// Tools that a write may name as such that do not do the job. More are never told at once.
const MAX_DESPITE: usize = 50;

impl WriteFile {
    pub(super) fn new(library: Arc<Library>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "write_file",
            aliases: &[],
            description: "Create a file of the tool repository or replace its content. Missing directories are made; the write is atomic, committed and pushed. Answers {path, created, commit, pushed}, and for a new tool `similar`: tools that may do the same. A new tool whose job others do is refused with EPOLICY and their signatures in `similar`: use one of them, or name them all in `despite`.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File below the root, such as `tools/math/fib.ts`." },
                    "content": { "type": "string", "description": "The whole new content." },
                    "despite": {
                        "type": "array",
                        "items": { "type": "string", "minLength": 1 },
                        "maxItems": MAX_DESPITE,
                        "description": "Tools that seem to do the same and do not do, as a refusal has named them."
                    }
                },
                "required": ["path", "content"],
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
impl Tool for WriteFile {
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
        let despite: Vec<RelativePath> =
            arguments.despite.iter().map(|path| RelativePath::new(path)).collect::<Result<_, _>>()?;
        let terms = WriteTerms {
            actor: &invocation.context.actor,
            despite: &despite,
            agreement: invocation.agreement(),
            point: invocation.point_of_no_return(),
            visible: invocation.visibility().await,
        };
        if invocation.context.dry_run {
            self.library.check_write(files, &path, &arguments.content, &terms).await?;
            let seen = invocation.visible_tools().await;
            return preview(seen.as_ref(), &path, &arguments.content, self.library.remote());
        }
        let is_seen = terms.visible.shows(Root::Tools, &path);
        let mut outcome = self.library.write(files, &path, arguments.content, terms).await?;
        // A tool that the caller may only write is as if it had not been there.
        if !is_seen && let Some(created) = outcome.data.get_mut("created") {
            *created = true.into();
        }
        Ok(outcome)
    }
}
