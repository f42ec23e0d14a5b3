//! The files of a tool repository that the host keeps.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tgp_contract::{Change, Code, HostFiles, MAX_KEPT_BYTES, MAX_KEPT_FILES, RelativePath, ToolError};

use super::PATIENCE;
use crate::rpc::peer::{HostFailure, Peer};
use crate::rpc::protocol::{
    Done, FileApplyParams, FileChange, FileListResult, FilePathParams, FileReadResult, callback,
};

/// Files behind the connection.
#[derive(Debug)]
pub(super) struct KeptFiles(Peer);

impl KeptFiles {
    pub(super) fn shared(peer: &Peer) -> Arc<dyn HostFiles> {
        Arc::new(Self(peer.clone()))
    }

    /// The content of a file; nothing when it is gone.
    async fn read(&self, path: &str) -> Result<Option<Vec<u8>>, ToolError> {
        let params = FilePathParams { path: path.to_owned() };
        let FileReadResult { content } =
            self.0.request(callback::FILE_READ, &params, PATIENCE, Code::Capability).await?;
        let Some(content) = content else { return Ok(None) };
        let bytes = STANDARD.decode(content).map_err(|error| {
            ToolError::new(Code::Validation, format!("the host's content of `{path}` is not base64: {error}"))
        })?;
        Ok(Some(bytes))
    }
}

fn too_large(what: &str) -> ToolError {
    ToolError::new(Code::Budget, format!("the host keeps {what}"))
        .help("a tool repository holds sources only")
}

#[async_trait]
impl HostFiles for KeptFiles {
    async fn load(&self) -> Result<Vec<(RelativePath, Vec<u8>)>, ToolError> {
        let params = FilePathParams { path: String::new() };
        let FileListResult { entries } =
            self.0.request(callback::FILE_LIST, &params, PATIENCE, Code::Capability).await?;
        let count = entries.iter().filter(|entry| !entry.directory).count();
        if count > MAX_KEPT_FILES {
            return Err(too_large(&format!("{count} files, more than {MAX_KEPT_FILES}")));
        }
        let mut bytes = 0_usize;
        let mut files = Vec::new();
        for entry in entries.into_iter().filter(|entry| !entry.directory) {
            let path = RelativePath::new(&entry.path).map_err(|error| {
                ToolError::new(
                    Code::Validation,
                    format!("the host lists a file that cannot be there: {error}"),
                )
            })?;
            // Removed meanwhile.
            let Some(content) = self.read(&entry.path).await? else { continue };
            bytes = bytes.saturating_add(content.len());
            if bytes > MAX_KEPT_BYTES {
                return Err(too_large(&format!("more than {} MiB of files", MAX_KEPT_BYTES >> 20)));
            }
            files.push((path, content));
        }
        Ok(files)
    }

    async fn apply(&self, changes: &[Change]) -> Result<(), ToolError> {
        let encoded = |change: &Change| FileChange {
            path: change.path().as_str().to_owned(),
            content: change.content().map(|content| STANDARD.encode(content)),
        };
        let params = FileApplyParams { changes: changes.iter().map(encoded).collect() };
        let answer = self.0.request::<Done>(callback::FILE_APPLY, &params, PATIENCE, Code::Capability).await;
        match answer {
            Ok(Done {}) => Ok(()),
            Err(HostFailure::Answered(error)) => Err(error),
            // It may have written everything but answered nothing.
            Err(HostFailure::Silent(error)) => Err(error.of_unknown_outcome()),
        }
    }
}
