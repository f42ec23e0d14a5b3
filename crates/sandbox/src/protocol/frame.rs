//! Length-prefixed frames: four bytes of little-endian length, then that many bytes of postcard.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest frame either side sends or takes. A longer one is a fault or an attack.
const MAX_FRAME_BYTES: usize = 32 * 1024 * 1024;

const PREFIX_BYTES: usize = 4;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the other side closed the connection")]
    Closed,
    #[error("a frame of {0} bytes is over the limit of {MAX_FRAME_BYTES}")]
    TooLarge(usize),
    #[error("a frame does not decode: {0}")]
    Malformed(#[from] postcard::Error),
    #[error("the connection failed: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                Self::Closed
            }
            _ => Self::Io(error),
        }
    }
}

/// A whole frame, prefix included.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut frame = postcard::to_extend(message, vec![0; PREFIX_BYTES])?;
    let length = frame.len() - PREFIX_BYTES;
    if length > MAX_FRAME_BYTES {
        return Err(FrameError::TooLarge(length));
    }
    let prefix = u32::try_from(length).map_err(|_| FrameError::TooLarge(length))?.to_le_bytes();
    for (slot, byte) in frame.iter_mut().zip(prefix) {
        *slot = byte;
    }
    Ok(frame)
}

/// The message in a frame's body.
fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    let (message, rest) = postcard::take_from_bytes(body)?;
    if rest.is_empty() {
        Ok(message)
    } else {
        Err(FrameError::Malformed(postcard::Error::DeserializeUnexpectedEnd))
    }
}

fn checked_length(prefix: [u8; PREFIX_BYTES]) -> Result<usize, FrameError> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MAX_FRAME_BYTES { Err(FrameError::TooLarge(length)) } else { Ok(length) }
}

pub(crate) fn write_blocking<T: Serialize>(stream: &mut impl Write, message: &T) -> Result<(), FrameError> {
    stream.write_all(&encode(message)?)?;
    Ok(())
}

pub(crate) fn read_blocking<T: DeserializeOwned>(stream: &mut impl Read) -> Result<T, FrameError> {
    let mut prefix = [0; PREFIX_BYTES];
    stream.read_exact(&mut prefix)?;
    let mut body = vec![0; checked_length(prefix)?];
    stream.read_exact(&mut body)?;
    decode(&body)
}

/// Reads one frame on the asynchronous side.
pub(crate) async fn read<T: DeserializeOwned>(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
) -> Result<T, FrameError> {
    use tokio::io::AsyncReadExt;
    let mut prefix = [0; PREFIX_BYTES];
    stream.read_exact(&mut prefix).await?;
    let mut body = vec![0; checked_length(prefix)?];
    stream.read_exact(&mut body).await?;
    decode(&body)
}
