//! Bodies of responses, read up to a limit.

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

/// A body that is larger than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response body is larger than {limit} bytes")]
pub struct TooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than the limit.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// It is compressed although the request asked for a body that is not.
    #[error("the response is compressed with `{0}`, which was not asked for")]
    Compressed(String),
    /// The connection broke.
    #[error(transparent)]
    Transport(#[from] reqwest::Error),
}

/// Collects a body chunk by chunk, for callers that wait for each chunk in their own way.
#[derive(Debug)]
pub struct CappedBody {
    bytes: Vec<u8>,
    limit: usize,
}

impl CappedBody {
    /// An empty body that takes at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// Adds a chunk, or as much of it as there is room for.
    ///
    /// # Errors
    /// [`TooLarge`] when there was no room for all of it.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), TooLarge> {
        let room = self.limit.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        if chunk.len() > room { Err(TooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// What was collected; the beginning of the body when it was too large.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads a body as the server sends it. The caller limits the time.
///
/// # Errors
/// [`BodyError::TooLarge`] as soon as the server announces or sends more than `limit` bytes.
pub async fn read_body(response: &mut Response, limit: usize) -> Result<Vec<u8>, BodyError> {
    // A server that announces too much need not be read. One that announces less than it sends is caught below.
    if response
        .content_length()
        .is_some_and(|length| usize::try_from(length).is_ok_and(|length| length > limit))
    {
        return Err(TooLarge { limit }.into());
    }
    let mut body = CappedBody::new(limit);
    while let Some(chunk) = response.chunk().await? {
        body.push(&chunk)?;
    }
    Ok(body.into_bytes())
}

/// Reads a body that must not be compressed: the clients of this crate ask for that, and nothing here decompresses.
///
/// # Errors
/// As [`read_body`], and [`BodyError::Compressed`].
pub async fn read_plain_body(response: &mut Response, limit: usize) -> Result<Vec<u8>, BodyError> {
    match content_encoding(response.headers()) {
        Some(encoding) => Err(BodyError::Compressed(encoding)),
        None => read_body(response, limit).await,
    }
}

/// The encoding of a body that is compressed; `None` when it is not.
#[must_use]
pub fn content_encoding(headers: &HeaderMap) -> Option<String> {
    headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_lowercase())
        .find(|encoding| !matches!(encoding.as_str(), "" | "identity"))
}
