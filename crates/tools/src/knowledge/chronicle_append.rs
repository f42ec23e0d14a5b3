//! `chronicle_append`: an event that stays.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Actor, Chronicle, ChronicleEvent, Code, Effect, ExecutionPath, Target, ToolDefinition, ToolError,
};

use super::{chronicle_file, chronicle_path, refuse_hidden};
use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct ChronicleAppend {
    definition: ToolDefinition,
    chronicle: Arc<dyn Chronicle>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    event: Value,
}

impl ChronicleAppend {
    pub(super) fn new(chronicle: Arc<dyn Chronicle>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "chronicle_append",
            aliases: &["chronicle.append"],
            description: "Add an event to a chronicle of the project: why something was decided, what was learnt. Events are never changed or removed; the same event twice is kept once. Answers {eventId, appended, path}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "The file it is about, such as src/a.ts, or a chronicle of the project, such as .sage/decisions.sage." },
                    "event": {
                        "type": "object",
                        "properties": {
                            "type": { "type": "string", "minLength": 1, "description": "Such as DECISION." },
                            "timestamp": { "type": "string", "description": "RFC 3339, such as 2026-11-15T12:00:00Z." },
                            "actor": {
                                "type": "object",
                                "properties": { "agent": { "type": "string" }, "id": { "type": "string" } },
                                "required": ["agent", "id"]
                            },
                            "filePath": { "type": "string" }
                        },
                        "required": ["type", "timestamp", "actor"]
                    }
                },
                "required": ["path", "event"],
                "additionalProperties": false
            }),
            effect: Effect::Write,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, chronicle })
    }
}

#[async_trait]
impl Tool for ChronicleAppend {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        chronicle_file(arguments, Access::Append)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = chronicle_path(&arguments.path)?;
        let event: ChronicleEvent = serde_json::from_value(arguments.event)
            .map_err(|error| ToolError::new(Code::Validation, format!("the event: {error}")))?;
        refuse_impostors(&event, &invocation.context.actor)?;
        refuse_hidden(&invocation.visibility().await, &path)?;
        if invocation.context.dry_run {
            let id = event
                .compute_id()
                .map_err(|error| ToolError::new(Code::Validation, format!("the event: {error}")))?;
            return Ok(json!({ "dry_run": true, "path": path, "eventId": id, "event": event }).into());
        }
        invocation.point_of_no_return().pass()?;
        let appended = self.chronicle.append(&path, event).await?;
        Ok(json!({ "path": path, "eventId": appended.event_id, "appended": appended.appended }).into())
    }
}

/// Events that only the kernel and the Guardian write, because others are decided by them.
const RESERVED_TYPES: [&str; 8] = [
    "EDIT",
    "EDITS",
    "HALT",
    "HALT_LIFTED",
    "RECONCILIATION",
    "RECONCILING",
    "VALVE_PERSONA_TRIGGER",
    "VALVE_ACTION",
];
/// Who an agent is not.
const RESERVED_AGENTS: [&str; 5] = ["person", "kernel", "guardian", "valve", "tool"];

/// What a person tells is their word; a program does not speak for others.
fn refuse_impostors(event: &ChronicleEvent, actor: &Actor) -> Result<(), ToolError> {
    if matches!(actor, Actor::Person(_)) {
        return Ok(());
    }
    // A letter that cannot be seen, or that looks like another one, would make a word that a reader takes for a reserved one.
    for (field, word) in [("event.type", &event.kind), ("event.actor.agent", &event.actor.agent)] {
        if !word.chars().all(|letter| letter.is_ascii_graphic() || letter == ' ') {
            let message = format!("`{field}` of a program's event has letters other than those of ASCII");
            return Err(ToolError::new(Code::Validation, message)
                .detail("field", field)
                .help("write it with the letters A to Z, digits and `_`; other fields may hold any text"));
        }
    }
    let is =
        |list: &[&str], word: &str| list.iter().any(|reserved| reserved.eq_ignore_ascii_case(word.trim()));
    if is(&RESERVED_TYPES, &event.kind) {
        let message = format!("events of type `{}` are written by the kernel alone", event.kind);
        return Err(ToolError::new(Code::Permission, message)
            .detail("field", "event.type")
            .help("tell it under a type of its own, such as DECISION or NOTE"));
    }
    if is(&RESERVED_AGENTS, &event.actor.agent) {
        let message = format!("an agent does not write as `{}`", event.actor.agent);
        return Err(ToolError::new(Code::Permission, message)
            .detail("field", "event.actor.agent")
            .help("write as {\"agent\": \"agent\", \"id\": your name}"));
    }
    Ok(())
}
