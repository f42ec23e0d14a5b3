//! Frames: a length, and that many bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The largest frame in either direction. The sandbox caps a result at 4 MiB by default; this leaves room for one that
/// a configuration has made larger.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// What is taken from the wire at a time, so that a length that is only claimed costs no memory.
const STEP: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("the frame has {0} bytes, more than {MAX_FRAME_BYTES}")]
    TooLarge(usize),
    #[error("the connection ended in the middle of a frame")]
    Torn,
    #[error("nothing came, or went, for {} s", .0.as_secs())]
    Late(std::time::Duration),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads one frame; nothing when the other side has ended between two frames.
///
/// # Errors
/// When the frame is too large or torn, or the connection breaks.
pub async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> Result<Option<Vec<u8>>, FrameError> {
    let mut length = [0_u8; 4];
    let mut filled = 0;
    while filled < length.len() {
        let rest = length.get_mut(filled..).unwrap_or_default();
        match reader.read(rest).await? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(FrameError::Torn),
            count => filled += count,
        }
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_FRAME_BYTES {
        return Err(FrameError::TooLarge(length));
    }
    let mut frame = Vec::with_capacity(length.min(STEP));
    while frame.len() < length {
        let wanted = (length - frame.len()).min(STEP) as u64;
        if (&mut *reader).take(wanted).read_to_end(&mut frame).await? == 0 {
            return Err(FrameError::Torn);
        }
    }
    Ok(Some(frame))
}

/// Writes one frame.
///
/// # Errors
/// When it is too large, or the connection breaks.
pub async fn write_frame(writer: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> Result<(), FrameError> {
    let length = u32::try_from(frame.len()).ok().filter(|_| frame.len() <= MAX_FRAME_BYTES);
    let Some(length) = length else { return Err(FrameError::TooLarge(frame.len())) };
    writer.write_all(&length.to_be_bytes()).await?;
    writer.write_all(frame).await?;
    writer.flush().await?;
    Ok(())
}
