//! Metadata of tools, read in the compile worker: hostile source crashes that, and not the kernel.

use serde_json::json;
use tgp_contract::{RelativePath, ToolError, ToolMetadata, canonical};
use tgp_sandbox::CompileFailure;

use super::frontend::{FrontendAnswer, FrontendRequest};
use super::{ToolRuntime, ToolRuntimeError, failure};

/// Tools of one request; a request has the time of one compilation.
const BATCH_TOOLS: usize = 32;
const BATCH_BYTES: usize = 256 * 1024;

impl ToolRuntime {
    /// Metadata of each source, in their order. One that crashes the worker is described as such.
    ///
    /// # Errors
    /// When no worker can be had.
    pub async fn describe(
        &self,
        tools: Vec<(RelativePath, Vec<u8>)>,
    ) -> Result<Vec<ToolMetadata>, ToolError> {
        let mut described = Vec::with_capacity(tools.len());
        let mut batch = Vec::new();
        let mut bytes = 0;
        for (path, content) in tools {
            if batch.len() >= BATCH_TOOLS || bytes + content.len() > BATCH_BYTES {
                described.extend(self.describe_batch(std::mem::take(&mut batch)).await?);
                bytes = 0;
            }
            bytes += content.len();
            batch.push((path, content));
        }
        described.extend(self.describe_batch(batch).await?);
        Ok(described)
    }

    async fn describe_batch(
        &self,
        batch: Vec<(RelativePath, Vec<u8>)>,
    ) -> Result<Vec<ToolMetadata>, ToolError> {
        let mut described: Vec<Option<ToolMetadata>> = Vec::with_capacity(batch.len());
        let mut texts = Vec::new();
        for (path, content) in &batch {
            match std::str::from_utf8(content) {
                Ok(text) => {
                    texts.push((path.clone(), text.to_owned()));
                    described.push(None);
                }
                Err(_) => described.push(Some(unreadable(path, content, "it is not UTF-8 text"))),
            }
        }
        let mut answers = match self.ask_for_metadata(&texts).await? {
            Ok(answers) => answers,
            Err(_) if texts.len() > 1 => {
                // One of them is at fault; alone it is found.
                let mut answers = Vec::with_capacity(texts.len());
                for text in &texts {
                    answers.push(self.describe_alone(text).await?);
                }
                answers
            }
            Err(reason) => {
                texts.iter().map(|(path, text)| unreadable(path, text.as_bytes(), &reason)).collect()
            }
        }
        .into_iter();
        Ok(described.into_iter().filter_map(|known| known.or_else(|| answers.next())).collect())
    }

    async fn describe_alone(&self, tool: &(RelativePath, String)) -> Result<ToolMetadata, ToolError> {
        Ok(match self.ask_for_metadata(std::slice::from_ref(tool)).await? {
            Ok(answers) => answers.into_iter().next(),
            Err(reason) => Some(unreadable(&tool.0, tool.1.as_bytes(), &reason)),
        }
        .unwrap_or_else(|| unreadable(&tool.0, tool.1.as_bytes(), "the compile worker gave no answer")))
    }

    /// The inner error says why these sources cannot be described.
    async fn ask_for_metadata(
        &self,
        tools: &[(RelativePath, String)],
    ) -> Result<Result<Vec<ToolMetadata>, String>, ToolError> {
        if tools.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let request = serde_json::to_vec(&FrontendRequest::Describe { tools: tools.to_vec() })
            .map_err(|_| ToolError::from(ToolRuntimeError::Protocol))?;
        let compiled = self.sandbox.compile(request).await;
        // Several whose worker has crashed are asked for again one by one, which finds the one at fault.
        if let (Err(error), [(path, _), others @ ..]) = (&compiled, tools)
            && (others.is_empty() || matches!(error, CompileFailure::Sandbox(_)))
        {
            failure::log_worker(path.as_str(), error);
        }
        match compiled {
            Ok(done) => match serde_json::from_slice(&done.answer) {
                Ok(FrontendAnswer::Described(metadata)) if metadata.len() == tools.len() => Ok(Ok(metadata)),
                _ => Err(ToolRuntimeError::Protocol.into()),
            },
            Err(CompileFailure::Sandbox(error)) => Err(ToolRuntimeError::from(error).into()),
            Err(failure) => Ok(Err(failure.to_string())),
        }
    }
}

/// What is known of a source that cannot be read.
fn unreadable(path: &RelativePath, content: &[u8], reason: &str) -> ToolMetadata {
    let name = path.name().unwrap_or_default();
    ToolMetadata {
        path: path.clone(),
        name: name.split_once('.').map_or(name, |(stem, _)| stem).to_owned(),
        description: String::new(),
        signature: String::new(),
        parameters: json!(true),
        result: json!(true),
        declared: None,
        imports: Vec::new(),
        exports: Vec::new(),
        identifiers: Vec::new(),
        hash: canonical::sha256_hex(content),
        problem: Some(reason.to_owned()),
    }
}
