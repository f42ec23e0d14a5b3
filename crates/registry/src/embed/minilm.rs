//! The embedded model as an [`Embedder`].

use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::{Code, ToolError};
use tokio::sync::Semaphore;

use super::Embedder;
use crate::EMBEDDED_FINGERPRINT;
use crate::model::{self, Model};

/// Embedding is pure computation: more than this at once would only take cores from running tools.
const CONCURRENT_EMBEDDINGS: usize = 2;

/// all-MiniLM-L6-v2 inside the binary. Making one costs nothing; the weights are read by the first embedding.
#[derive(Debug)]
pub struct MiniLm {
    permits: Arc<Semaphore>,
}

impl Default for MiniLm {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(CONCURRENT_EMBEDDINGS)) }
    }
}

impl MiniLm {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Which embedder this is.
    pub const FINGERPRINT: &str = EMBEDDED_FINGERPRINT;

    /// The token ids of `text`, marks included: what the model sees of it.
    ///
    /// # Errors
    /// `EINTERNAL` when the embedded model cannot be read.
    pub fn token_ids(&self, text: &str) -> Result<Vec<usize>, ToolError> {
        Ok(Model::get().ok_or_else(damaged)?.token_ids(text))
    }
}

#[async_trait]
impl Embedder for MiniLm {
    fn fingerprint(&self) -> &str {
        Self::FINGERPRINT
    }

    fn dimensions(&self) -> Option<usize> {
        Some(model::DIMENSIONS)
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError> {
        let stopped = || ToolError::new(Code::Internal, "the embedding of a text was stopped");
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| stopped())?;
        let texts = texts.to_vec();
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let model = Model::get().ok_or_else(damaged)?;
            Ok(texts.iter().map(|text| model.embed(text)).collect())
        })
        .await
        .map_err(|_| stopped())?
    }
}

fn damaged() -> ToolError {
    ToolError::new(Code::Internal, "the embedding model inside the binary cannot be read")
        .help("the binary is damaged: install it again")
}
