//! Lines of a bounded length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use super::MAX_LINE;

/// What came instead of a line.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("a line of more than {MAX_LINE} bytes")]
    TooLong,
    #[error("a line that was not finished: `{0}`")]
    Unfinished(String),
    #[error("a line that is not UTF-8")]
    NotText,
    #[error("an error while reading: {0}")]
    Io(#[from] std::io::Error),
}

/// Characters of a broken line that are shown.
const SHOWN: usize = 200;

/// The next line without its end; none at the end of the input.
pub(super) async fn next(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<String>, LineError> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    input.take(most).read_until(b'\n', &mut bytes).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.last() != Some(&b'\n') {
        if bytes.len() >= MAX_LINE {
            return Err(LineError::TooLong);
        }
        return Err(LineError::Unfinished(shown(&String::from_utf8_lossy(&bytes))));
    }
    bytes.pop();
    String::from_utf8(bytes).map(Some).map_err(|_| LineError::NotText)
}

/// The beginning of a line, for an error.
pub(super) fn shown(line: &str) -> String {
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}
