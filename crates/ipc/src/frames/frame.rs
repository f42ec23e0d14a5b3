//! Frames: a length, and that many bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The largest frame in either direction. The sandbox caps a result at 4 MiB by default; this leaves room for one that
/// a configuration has made larger.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// What is taken from the wire at a time, so that a length that is only claimed costs no memory.
const STEP: usize = 64 * 1024;

/// Why a frame was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It is longer than allowed.
    #[error("the frame has {0} bytes, more than {1}")]
    TooLarge(usize, usize),
    /// The other side ended within it.
    #[error("the connection ended in the middle of a frame")]
    Torn,
    /// It took too long.
    #[error("nothing came, or went, for {} s", .0.as_secs())]
    Late(std::time::Duration),
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads the length of the next frame; nothing when the other side has ended between two frames.
pub(crate) async fn read_length(
    reader: &mut (impl AsyncRead + Unpin),
    most: usize,
) -> Result<Option<usize>, FrameError> {
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
    if length > most { Err(FrameError::TooLarge(length, most)) } else { Ok(Some(length)) }
}

/// Reads a frame whose length was read.
pub(crate) async fn read_rest(
    reader: &mut (impl AsyncRead + Unpin),
    length: usize,
) -> Result<Vec<u8>, FrameError> {
    let mut frame = Vec::new();
    while frame.len() < length {
        let (start, wanted) = (frame.len(), (length - frame.len()).min(STEP));
        // It doubles, so that a long frame is not copied with each step, and never takes more than the frame has.
        if frame.capacity() < start + wanted {
            frame.reserve_exact(start.max(wanted).min(length - start));
        }
        frame.resize(start + wanted, 0);
        match reader.read_exact(frame.get_mut(start..).unwrap_or_default()).await {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(FrameError::Torn),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(frame)
}

/// Reads bytes that are not wanted, and keeps none.
pub(crate) async fn skip(reader: &mut (impl AsyncRead + Unpin), bytes: usize) -> Result<(), FrameError> {
    let mut left = bytes;
    let mut buffer = vec![0_u8; STEP.min(left)];
    while left > 0 {
        let wanted = left.min(buffer.len());
        match reader.read(buffer.get_mut(..wanted).unwrap_or_default()).await? {
            0 => return Err(FrameError::Torn),
            count => left -= count,
        }
    }
    Ok(())
}

/// Reads one frame of at most `most` bytes; nothing when the other side has ended between two frames.
pub(crate) async fn read_frame_within(
    reader: &mut (impl AsyncRead + Unpin),
    most: usize,
) -> Result<Option<Vec<u8>>, FrameError> {
    let Some(length) = read_length(reader, most).await? else { return Ok(None) };
    read_rest(reader, length).await.map(Some)
}

/// Reads one frame; nothing when the other side has ended between two frames.
///
/// # Errors
/// When the frame is too large or torn, or the connection breaks.
pub async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> Result<Option<Vec<u8>>, FrameError> {
    read_frame_within(reader, MAX_FRAME_BYTES).await
}

/// Writes one frame.
///
/// # Errors
/// When it is too large, or the connection breaks.
pub async fn write_frame(writer: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> Result<(), FrameError> {
    let length = u32::try_from(frame.len()).ok().filter(|_| frame.len() <= MAX_FRAME_BYTES);
    let Some(length) = length else { return Err(FrameError::TooLarge(frame.len(), MAX_FRAME_BYTES)) };
    let length = length.to_be_bytes();
    if frame.len() <= STEP {
        // One write, so that the reader wakes up once.
        writer.write_all(&[&length[..], frame].concat()).await?;
    } else {
        writer.write_all(&length).await?;
        writer.write_all(frame).await?;
    }
    writer.flush().await?;
    Ok(())
}
