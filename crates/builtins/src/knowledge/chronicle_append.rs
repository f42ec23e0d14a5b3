//! `chronicle_append`: an event that stays.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{
    Access, Actor, AppendResult, Chronicle, ChronicleEvent, Code, Effect, ExecutionPath, RelativePath,
    Target, ToolError,
};

use super::{chronicle_file, chronicle_path, refuse_hidden};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

pub(super) struct ChronicleAppend(pub(super) Arc<dyn Chronicle>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChronicleAppendArgs {
    /// A file, such as src/a.ts, or a chronicle, such as .sage/decisions.sage.
    #[schemars(length(min = 1))]
    path: String,
    /// Further fields may be added, such as `why`.
    event: ChronicleEvent,
}

/// The result of an event that was given to a chronicle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChronicleAppendResult {
    /// True when nothing was written.
    #[serde(rename = "dry_run", default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    pub path: RelativePath,
    pub event_id: String,
    /// False when the chronicle had this very event already; nothing in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub appended: Option<bool>,
    /// In a dry run: the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<ChronicleEvent>,
}

#[async_trait]
impl Tool for ChronicleAppend {
    type Args = ChronicleAppendArgs;
    type Output = ChronicleAppendResult;

    const INFO: ToolSpec = ToolSpec {
        name: "chronicle_append",
        aliases: &["chronicle.append"],
        description: "Add an event to a chronicle of the project: why something was decided, what was learnt. Events are never changed or removed.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &ChronicleAppendArgs) -> Result<Vec<Target>, ToolError> {
        chronicle_file(&args.path, Access::Append)
    }

    async fn run(
        &self,
        args: ChronicleAppendArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<ChronicleAppendResult>, ToolError> {
        let ChronicleAppendArgs { path, event } = args;
        let path = chronicle_path(&path)?;
        refuse_impostors(&event, &invocation.context.actor)?;
        refuse_hidden(&invocation.visibility().await, &path)?;
        if invocation.context.dry_run {
            let event_id = event
                .compute_id()
                .map_err(|error| ToolError::new(Code::Validation, format!("the event: {error}")))?;
            let event = Some(event);
            return Ok(ChronicleAppendResult { dry_run: true, path, event_id, appended: None, event }.into());
        }
        invocation.point_of_no_return().commit()?;
        let AppendResult { event_id, appended } = self.0.append(&path, event).await?;
        let appended = Some(appended);
        Ok(ChronicleAppendResult { dry_run: false, path, event_id, appended, event: None }.into())
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

/// Events of a person come from that person; a program does not speak for others.
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
            .help("use another type, such as DECISION or NOTE"));
    }
    if is(&RESERVED_AGENTS, &event.actor.agent) {
        let message = format!("an agent does not write as `{}`", event.actor.agent);
        return Err(ToolError::new(Code::Permission, message)
            .detail("field", "event.actor.agent")
            .help("write as {\"agent\": \"agent\", \"id\": your name}"));
    }
    Ok(())
}
