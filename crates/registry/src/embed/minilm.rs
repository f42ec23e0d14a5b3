//! The embedded model as an [`Embedder`].

use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::{Code, ToolError, background};
use tokio::sync::Semaphore;

use super::Embedder;
use crate::EMBEDDED_FINGERPRINT;
use crate::model::{self, Model};

/// Embedding is pure computation: more than this at once would only take cores from running tools.
const CONCURRENT_EMBEDDINGS: usize = 2;
/// Threads that share a batch. More would take all cores of a large machine for minutes when a registry is new.
const MAX_THREADS: usize = 4;

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
        background::run_bounded(move || {
            let _permit = permit;
            let model = Model::get().ok_or_else(damaged)?;
            shared(model, &texts).ok_or_else(stopped)
        })
        .await
    }
}

/// One vector for each text, in their order. A text's vector does not depend on which thread makes it.
fn shared(model: &Model, texts: &[String]) -> Option<Vec<Vec<f32>>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = texts.len().div_ceil(cores.min(MAX_THREADS)).max(1);
    let embed = |texts: &[String]| texts.iter().map(|text| model.embed(text)).collect::<Vec<_>>();
    let mut shares = texts.chunks(share);
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|texts| scope.spawn(move || embed(texts))).collect();
        let mut vectors = embed(own);
        for other in others {
            vectors.extend(other.join().ok()?);
        }
        Some(vectors)
    })
}

fn damaged() -> ToolError {
    ToolError::new(Code::Internal, "the embedding model inside the binary cannot be read")
        .help("the binary is damaged: install it again")
}
