//! What turns text into vectors: the model inside the binary, or a service.

#[cfg(feature = "embedded-model")]
mod minilm;
mod openai;

use async_trait::async_trait;
use tgp_contract::ToolError;

#[cfg(feature = "embedded-model")]
pub use minilm::MiniLm;
pub use openai::OpenAiCompatible;

/// Largest vector an embedder may make: the largest of the known services has 4096, and a scan must fit an i32.
pub const MAX_DIMENSIONS: usize = 4096;

/// Turns texts into vectors whose angle says how near their meanings are.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Names the maker of the vectors. Vectors and coefficients of one fingerprint are never used with another.
    fn fingerprint(&self) -> &str;

    /// Length of every vector, or nothing while it is not known yet (a service says it with its first answer).
    fn dimensions(&self) -> Option<usize>;

    /// One vector for each text, in their order.
    ///
    /// # Errors
    /// `EPROVIDER` when a service refuses or fails, `EINTERNAL` when the embedded model does.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError>;
}
