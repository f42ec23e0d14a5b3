//! Work that one agent does for a step of something larger, and the interface to have it done.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{Cancellation, CapabilityToken, Consent, FileEffect, SharedBudget, ToolError, Usage};

/// What one agent is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTask {
    /// The session it is done in. One that exists is resumed: after a kill, or with a correction.
    pub session: String,
    /// Who the agent is, for the gates and the record.
    pub actor: String,
    /// `NAME`, `PROVIDER/NAME` or `script:FILE`; the configured one where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Said to the model before everything else, in addition to what the loop always says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    pub prompt: String,
    /// The only tools it knows of and may call.
    pub tools: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Turns of the model.
    pub max_steps: u64,
    /// Tokens in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What was wrong with the last answer of this session, for the model to correct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
    pub consent: Consent,
    /// What the agent may do at most. It is a secret, so it is in no record.
    #[serde(skip)]
    pub token: Option<CapabilityToken>,
    /// What it shares with all that works at the same time. The runner of the agent takes each call from it, begins
    /// no turn without tokens and counts those of each turn; `max_tokens` is what was left of it at the beginning.
    #[serde(skip)]
    pub allowance: Option<SharedBudget>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentResult {
    /// What the model said last.
    pub answer: String,
    /// Turns of the model in this piece of work.
    pub steps: u64,
    /// Calls it has made.
    pub calls: u64,
    /// What this piece of work has used, not the whole session.
    pub usage: Usage,
    /// Files that its calls have changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileEffect>,
}

/// Work that did not come to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFailure {
    /// Why.
    pub error: Box<ToolError>,
    /// What it has used until then.
    pub usage: Usage,
    /// Calls it has made until then.
    pub calls: u64,
    /// Files that its calls have changed.
    pub files: Vec<FileEffect>,
}

impl From<ToolError> for AgentFailure {
    /// Of work that has used and changed nothing.
    fn from(error: ToolError) -> Self {
        Self { error: Box::new(error), usage: Usage::default(), calls: 0, files: Vec::new() }
    }
}

/// Has an agent do something.
#[async_trait]
pub trait AgentRunner: Send + Sync {
    /// Works until the model is done. When `cancelled` completes the work stops; it can be resumed by another task of
    /// the same session.
    ///
    /// # Errors
    /// `EBUDGET` when a bound was reached, `EPROVIDER` and `ECONFIG` when no model answers, and the error of whatever
    /// else has ended the work, with what was used until then.
    async fn work(&self, task: AgentTask, cancelled: Cancellation<'_>) -> Result<AgentResult, AgentFailure>;
}
