//! The actions of a persona, and the interface that carries them out.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tgp_contract::{Cancellation, FileEffect, RelativePath, ToolError};

use crate::event::TriggerCause;
use crate::{FileChangeKind, ValveEvent};

/// What a persona does when it is triggered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The event is all.
    #[default]
    Record,
    /// Runs a forged tool.
    Tool { path: String, args: Map<String, Value> },
    /// Runs a query of a file; the only one in it where no name is given.
    Query { file: String, name: Option<String>, inputs: Map<String, Value> },
    /// Asks an agent.
    Agent(AgentAction),
}

/// The agent that a persona starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentAction {
    pub prompt: String,
    pub model: Option<String>,
    /// Nothing where the file says nothing; an empty list is an agent without tools.
    pub tools: Option<Vec<String>>,
    pub max_steps: Option<u64>,
}

/// Why an action is begun: the event that is in the chronicle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    pub event_id: String,
    pub sequence: u64,
    pub persona: String,
    pub file_path: RelativePath,
    pub change: FileChangeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RelativePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    pub trigger: TriggerCause,
    /// How many actions lie between a change from outside and this one.
    pub depth: u32,
    pub timestamp: String,
}

/// What an action has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActionReport {
    /// One line for people.
    pub summary: String,
    /// Every file of the project that it changed: without them a persona would be triggered by itself.
    pub files: Vec<FileEffect>,
}

/// An action that did not come to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionFailure {
    /// Why.
    pub error: Box<ToolError>,
    /// Files that it has changed before, as in [`ActionReport::files`].
    pub files: Vec<FileEffect>,
    /// The time it had, where it took longer.
    pub timeout_ms: Option<u64>,
}

impl From<ToolError> for ActionFailure {
    /// Of an action that has changed nothing.
    fn from(error: ToolError) -> Self {
        Self { error: Box::new(error), files: Vec::new(), timeout_ms: None }
    }
}

/// Carries out actions. The kernel's implementation runs them through the router.
#[async_trait]
pub trait Actions: Send + Sync {
    /// Carries out one action. It is called at most once for a trigger, and never for [`Action::Record`].
    ///
    /// # Errors
    /// Whatever the action fails with. It becomes the outcome in the chronicle and stops nothing else.
    async fn act(
        &self,
        action: &Action,
        trigger: &Trigger,
        cancelled: Cancellation<'_>,
    ) -> Result<ActionReport, ActionFailure>;
}

impl From<&Trigger> for ValveEvent {
    fn from(trigger: &Trigger) -> Self {
        Self::ActionBegun {
            persona: trigger.persona.clone(),
            file_path: trigger.file_path.clone(),
            trigger: trigger.event_id.clone(),
        }
    }
}
