//! Bodies that a server has compressed, whether or not it was asked to.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

/// Why a body could not be unpacked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// It is larger than the limit once it is unpacked.
    TooLarge,
    /// It is not what its headers say.
    Malformed(&'static str),
}

/// The encodings that can be undone here. Others are left to the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
}

/// What was done to a body, the last step first; `None` when a step is unknown. More steps than a server has reason for
/// are a bomb.
pub(super) fn codings(headers: &HeaderMap) -> Option<Vec<Coding>> {
    const MAX_CODINGS: usize = 2;
    let mut steps = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in value.to_str().ok()?.split(',') {
            match name.trim().to_ascii_lowercase().as_str() {
                "" | "identity" => {}
                "gzip" | "x-gzip" => steps.push(Coding::Gzip),
                "deflate" => steps.push(Coding::Deflate),
                _ => return None,
            }
        }
    }
    steps.reverse();
    (steps.len() <= MAX_CODINGS).then_some(steps)
}

/// The body before `codings`, which is at most `limit` bytes at every step.
pub(super) fn decode(body: Vec<u8>, codings: &[Coding], limit: usize) -> Result<Vec<u8>, DecodeError> {
    codings.iter().try_fold(body, |body, coding| match coding {
        // An answer to HEAD, or one without a body.
        _ if body.is_empty() => Ok(body),
        Coding::Gzip => read(MultiGzDecoder::new(body.as_slice()), limit, "it is not valid gzip"),
        // Servers send both forms under this name.
        Coding::Deflate => match read(ZlibDecoder::new(body.as_slice()), limit, "") {
            Err(DecodeError::Malformed(_)) => {
                read(DeflateDecoder::new(body.as_slice()), limit, "it is not valid deflate")
            }
            read => read,
        },
    })
}

fn read(decoder: impl Read, limit: usize, problem: &'static str) -> Result<Vec<u8>, DecodeError> {
    let mut decoded = Vec::new();
    let most = (limit as u64).saturating_add(1);
    decoder.take(most).read_to_end(&mut decoded).map_err(|_| DecodeError::Malformed(problem))?;
    if decoded.len() > limit { Err(DecodeError::TooLarge) } else { Ok(decoded) }
}
