//! A question as its asker sees it, kept until it is answered.

use serde_json::Value;
use tgp::contract::{Actor, ApprovalReason, ApprovalRequest, Effect, Target};

/// What is asked for, and everything that decides its effect.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalQuestion {
    pub session: String,
    pub actor: String,
    pub tool: String,
    pub effect: Effect,
    pub arguments: Value,
    pub targets: Vec<Target>,
    pub reasons: Vec<ApprovalReason>,
    pub preview: Option<Value>,
    /// Why there is no preview, where one was expected.
    pub no_preview: Option<String>,
    /// Who uses what is about to change.
    pub reach: Option<Value>,
    /// It shows what would happen, and undoes it.
    pub dry_run: bool,
}

impl ApprovalQuestion {
    pub fn new(request: &ApprovalRequest<'_>) -> Self {
        let actor = match &request.context.actor {
            Actor::Person(id) | Actor::Agent(id) => id.clone(),
            Actor::Tool(path) => path.to_string(),
        };
        Self {
            session: request.context.session.clone(),
            actor,
            tool: request.definition.name.to_string(),
            effect: request.definition.effect,
            arguments: request.call.arguments.clone(),
            targets: request.targets.to_vec(),
            reasons: request.reasons.clone(),
            preview: request.preview.clone(),
            no_preview: request.no_preview.clone(),
            reach: request.reach.clone(),
            dry_run: request.context.dry_run,
        }
    }

    /// The SHA-256 of the forged tool that would run.
    pub fn source_hash(&self) -> Option<&str> {
        self.previewed("sha256")?.as_str()
    }

    /// The command line that would run. A preview knows it where only the project's manifests decide it.
    pub fn command(&self) -> Option<&str> {
        let named = self.targets.iter().find_map(|target| match target {
            Target::Command { command } => Some(command.as_str()),
            _ => None,
        });
        let known = self.previewed("command").and_then(Value::as_str);
        named.map(|named| known.unwrap_or(named))
    }

    /// An argument that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    /// What the preview says under a name.
    pub fn previewed(&self, name: &str) -> Option<&Value> {
        self.preview.as_ref().and_then(|preview| preview.get(name)).filter(|value| !value.is_null())
    }
}
