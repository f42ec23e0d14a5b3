//! Readers that give their bytes in pieces, and count them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// A stream that gives at most `step` bytes at a time.
pub(super) struct Pieces<'a> {
    rest: &'a [u8],
    step: usize,
    taken: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(bytes: &'a [u8], step: usize) -> Self {
        Self { rest: bytes, step: step.max(1), taken: 0 }
    }

    /// How many bytes were read so far.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = self.step.min(self.rest.len()).min(buffer.remaining());
        let (given, rest) = self.rest.split_at(count);
        buffer.put_slice(given);
        self.rest = rest;
        self.taken += count;
        Poll::Ready(Ok(()))
    }
}

/// Runs what never waits for anything but [`Pieces`].
pub(super) fn ready<T>(work: impl Future<Output = T>) -> Result<T, String> {
    use futures_util::FutureExt;
    work.now_or_never().ok_or_else(|| "it waits though every byte is there".to_owned())
}
