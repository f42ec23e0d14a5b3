//! Models that say what a case wants: by a script, over the wire, or by instructions in the conversation.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tgp_contract::{Code, ModelProvider, StreamEvent, ToolError};
use tgp_llm::{HttpOptions, Script, Wire};

use super::ModelServer;

/// A source of a model that takes these turns. The task of the conversation holds the same turns, in the way that
/// `relay/README.md` describes, so a source may leave them to the model.
#[async_trait]
pub(crate) trait ModelSource: Send + Sync {
    async fn model(&self, turns: &[Vec<StreamEvent>]) -> Result<Arc<dyn ModelProvider>, ToolError>;
}

/// A model that reads its turns in the task.
pub(crate) struct OneModel(pub(crate) Arc<dyn ModelProvider>);

#[async_trait]
impl ModelSource for OneModel {
    async fn model(&self, _turns: &[Vec<StreamEvent>]) -> Result<Arc<dyn ModelProvider>, ToolError> {
        Ok(Arc::clone(&self.0))
    }
}

/// The scripted model of this product.
pub(crate) struct ScriptedModels;

#[async_trait]
impl ModelSource for ScriptedModels {
    async fn model(&self, turns: &[Vec<StreamEvent>]) -> Result<Arc<dyn ModelProvider>, ToolError> {
        Ok(Arc::new(Script::parse("relay.json", &json!(turns).to_string())?))
    }
}

/// This product's adapter for the OpenAI wire, with a server of the kit at its other end.
pub(crate) struct HttpModels {
    server: ModelServer,
}

impl HttpModels {
    pub(crate) fn new(server: ModelServer) -> Self {
        Self { server }
    }
}

#[async_trait]
impl ModelSource for HttpModels {
    async fn model(&self, _turns: &[Vec<StreamEvent>]) -> Result<Arc<dyn ModelProvider>, ToolError> {
        let mut options = HttpOptions::new(Wire::OpenAiChat);
        options.base_url = Some(self.server.base_url().to_owned());
        tgp_llm::provider("relay", options).map_err(|error| {
            ToolError::new(Code::Config, format!("the adapter does not take the kit's server: {error}"))
        })
    }
}
