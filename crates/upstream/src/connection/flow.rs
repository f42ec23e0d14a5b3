//! How much a server may send: a message is counted while it arrives, so that none is ever held that is too large.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::SetOnce;

/// Bytes of one message. Larger data belongs into a file or behind an address.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Bytes of all messages since the last call began: notifications included, that nothing waits for.
const MAX_BYTES_PER_CALL: usize = 32 << 20;

/// Lists and objects inside each other; the parser takes 128.
const MAX_DEPTH: usize = 120;
/// Values of one message: each takes many times its bytes.
const MAX_VALUES: usize = 100_000;
/// Messages since the last call began: each request of a server is a task and an answer of ours, that it need not read.
const MAX_MESSAGES_PER_CALL: usize = 10_000;

/// What was counted, and why the connection was ended.
#[derive(Debug, Default)]
pub(super) struct Flow {
    since_call: AtomicUsize,
    messages: AtomicUsize,
    why: SetOnce<&'static str>,
}

impl Flow {
    pub(super) fn begin_call(&self) {
        self.since_call.store(0, Ordering::Relaxed);
        self.messages.store(0, Ordering::Relaxed);
    }

    /// Counts messages that have arrived.
    fn count_messages(&self, number: usize) -> io::Result<()> {
        let sum = self.messages.fetch_add(number, Ordering::Relaxed).saturating_add(number);
        match sum > MAX_MESSAGES_PER_CALL {
            true => Err(self.end("it sent more than 10,000 messages for one call")),
            false => Ok(()),
        }
    }

    /// Refuses a message that would take much more memory than its bytes, or that no parser takes.
    pub(super) fn check_message(&self, message: &[u8]) -> io::Result<()> {
        self.count_messages(1)?;
        let mut shape = Shape::default();
        match message.iter().find_map(|byte| shape.step(*byte)) {
            Some(why) => Err(self.end(why)),
            None => Ok(()),
        }
    }

    /// Why the connection was ended, if it was ended here.
    pub(super) fn why(&self) -> Option<&'static str> {
        self.why.get().copied()
    }

    /// Waits until the connection is ended here.
    pub(super) async fn ended(&self) -> &'static str {
        self.why.wait().await
    }

    /// Counts what has arrived.
    pub(super) fn count(&self, bytes: usize) -> io::Result<()> {
        let sum = self.since_call.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        match sum > MAX_BYTES_PER_CALL {
            true => Err(self.end("it sent more than 32 MiB for one call")),
            false => Ok(()),
        }
    }

    /// Ends the connection because of one message.
    pub(super) fn too_large(&self) -> io::Error {
        self.end("it sent a message of more than 4 MiB")
    }

    pub(super) fn end(&self, why: &'static str) -> io::Error {
        let _ = self.why.set(why);
        io::Error::other(why)
    }
}

/// Reads what a server writes, up to the limits.
pub(super) struct FlowReader<R> {
    inner: R,
    flow: Arc<Flow>,
    /// Bytes since the last end of a line.
    line: usize,
    shape: Shape,
}

/// How deeply the lists and objects of a message are inside each other, and how many values it has. A message that no parser
/// takes would be waited for.
#[derive(Debug, Default)]
struct Shape {
    depth: usize,
    values: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Shape {
    /// What is wrong with the message after this byte.
    fn step(&mut self, byte: u8) -> Option<&'static str> {
        match byte {
            b'\n' => *self = Self::default(),
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_text => self.is_escaped = true,
            b'"' => self.in_text = !self.in_text,
            b'[' | b'{' if !self.in_text => {
                self.depth += 1;
                self.values += 1;
            }
            b',' | b':' if !self.in_text => self.values += 1,
            b']' | b'}' if !self.in_text => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth > MAX_DEPTH {
            return Some("it sent a message that is nested too deeply");
        }
        (self.values > MAX_VALUES).then_some("it sent a message of more than 100,000 values")
    }
}

impl<R> FlowReader<R> {
    pub(super) fn new(inner: R, flow: Arc<Flow>) -> Self {
        Self { inner, flow, line: 0, shape: Shape::default() }
    }

    fn count(&mut self, arrived: &[u8]) -> io::Result<()> {
        for (index, part) in arrived.split(|byte| *byte == b'\n').enumerate() {
            self.line = if index == 0 { self.line + part.len() } else { part.len() };
            if self.line > MAX_MESSAGE_BYTES {
                return Err(self.flow.too_large());
            }
        }
        if let Some(why) = arrived.iter().find_map(|byte| self.shape.step(*byte)) {
            return Err(self.flow.end(why));
        }
        self.flow.count_messages(arrived.iter().filter(|byte| **byte == b'\n').count())?;
        self.flow.count(arrived.len())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for FlowReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let counted = self.count(buffer.filled().get(before..).unwrap_or_default());
        if counted.is_err() {
            // Who reads with an error has read nothing.
            buffer.set_filled(before);
        }
        Poll::Ready(counted)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;

    use super::{Flow, FlowReader, MAX_BYTES_PER_CALL, MAX_DEPTH, MAX_MESSAGE_BYTES};

    async fn read(text: &[u8]) -> (usize, Option<&'static str>) {
        let flow = Arc::new(Flow::default());
        let mut reader = FlowReader::new(text, Arc::clone(&flow));
        let mut all = Vec::new();
        let _ = reader.read_to_end(&mut all).await;
        (all.len(), flow.why())
    }

    #[tokio::test]
    async fn a_message_and_all_messages_have_limits() {
        let line = |length: usize| [vec![b'x'; length], vec![b'\n']].concat();
        assert_eq!(read(&line(MAX_MESSAGE_BYTES)).await, (MAX_MESSAGE_BYTES + 1, None));
        let (_, why) = read(&line(MAX_MESSAGE_BYTES + 1)).await;
        assert_eq!(why, Some("it sent a message of more than 4 MiB"));
        let many = line(1 << 20).repeat(MAX_BYTES_PER_CALL >> 20);
        let (_, why) = read(&many).await;
        assert_eq!(why, Some("it sent more than 32 MiB for one call"));
        assert_eq!(read(&line(1 << 20).repeat(31)).await.1, None);
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth], vec![b'\n']].concat().repeat(2);
        assert_eq!(read(&nested(MAX_DEPTH)).await.1, None);
        assert_eq!(read(&nested(MAX_DEPTH + 1)).await.1, Some("it sent a message that is nested too deeply"));
        let wide = |values: usize| format!("[{}]\n", vec!["0"; values].join(","));
        assert_eq!(read(wide(100_000).as_bytes()).await.1, None);
        let why = read(wide(100_001).as_bytes()).await.1;
        assert_eq!(why, Some("it sent a message of more than 100,000 values"));
        let why = read("{}\n".repeat(10_001).as_bytes()).await.1;
        assert_eq!(why, Some("it sent more than 10,000 messages for one call"));
        let text = format!("\"{}\\\"{}\"\n", "[".repeat(500), "{".repeat(500));
        assert_eq!(read(text.as_bytes()).await.1, None);
    }
}
