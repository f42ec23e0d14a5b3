//! `chronicle_read`: the newest events of a chronicle.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Chronicle, ChronicleEvent, Effect, ExecutionPath, Root, Target, ToolDefinition, ToolError,
};

use super::{chronicle_file, chronicle_path, shows_event};
use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

/// Events in one answer where nobody says how many.
const USUAL_EVENTS: usize = 50;
/// Events in one answer; whoever wants all of a long chronicle reads the file.
const MAX_EVENTS: usize = 1_000;

pub(super) struct ChronicleRead {
    definition: ToolDefinition,
    chronicle: Arc<dyn Chronicle>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    last: Option<usize>,
}

impl ChronicleRead {
    pub(super) fn new(chronicle: Arc<dyn Chronicle>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "chronicle_read",
            aliases: &["chronicle.read"],
            description: "Read the newest events of a chronicle, oldest first: what was done to a file, by whom, and why. Answers {path, events}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "The file it is about, such as src/a.ts, or a chronicle of the project, such as .sage/decisions.sage." },
                    "last": { "type": "integer", "minimum": 1, "maximum": MAX_EVENTS, "default": USUAL_EVENTS }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
            effect: Effect::Read,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, chronicle })
    }
}

#[async_trait]
impl Tool for ChronicleRead {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        chronicle_file(arguments, Access::Read)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = chronicle_path(&arguments.path)?;
        let most = arguments.last.unwrap_or(USUAL_EVENTS).min(MAX_EVENTS);
        let visible = invocation.visibility().await;
        // The chronicle of a file that may not be seen is as if there were none.
        let mut events: Vec<ChronicleEvent> = match visible.shows(Root::Project, &path) {
            true => self.chronicle.tail(&path, MAX_EVENTS).await?,
            false => Vec::new(),
        };
        events.retain(|event| shows_event(&visible, event));
        let events = events.split_off(events.len().saturating_sub(most));
        Ok(json!({ "path": path, "events": events }).into())
    }
}
