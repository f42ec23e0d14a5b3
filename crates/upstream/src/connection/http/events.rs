//! The events of a server over HTTP, counted while they arrive.

use std::io;
use std::sync::Arc;

use futures_util::{StreamExt, TryStream};
use reqwest::Response;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::SseByteStream;
use tgp_net::root_cause;

use super::super::flow::{Flow, MAX_MESSAGE_BYTES};
use super::super::oauth::{HIDDEN_TOKEN, KnownTokens};

/// The pause before a stream that ended is opened again, whatever the server asks for.
const MIN_RETRY_MS: u64 = 1_000;
const MAX_RETRY_MS: u64 = 60_000;

/// An event as rmcp has it.
type Event = <BoxedSseResponse as TryStream>::Ok;

/// Reads events up to the limits of the flow, without the tokens that were sent.
pub(super) fn events(response: Response, flow: Arc<Flow>, tokens: KnownTokens) -> BoxedSseResponse {
    let mut size = EventSize::default();
    let counted = Arc::clone(&flow);
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| io::Error::other(root_cause(&error)))?;
        counted.count(chunk.len())?;
        match size.add(&chunk) > MAX_MESSAGE_BYTES {
            true => Err(counted.too_large()),
            false => Ok(chunk),
        }
    });
    SseByteStream::new(bytes)
        .map(move |event| match event {
            Ok(event) => {
                if let Some(data) = &event.data {
                    flow.check_message(data.as_bytes()).map_err(|error| SseError::Body(Box::new(error)))?;
                }
                cleaned(event, &tokens).ok_or_else(|| SseError::Body(Box::new(flow.end(HIDDEN_TOKEN))))
            }
            Err(sse_stream::Error::Body(error)) => Err(SseError::Body(error)),
            Err(error) => Err(SseError::Body(Box::new(error))),
        })
        .boxed()
}

/// `None` when a token is hidden in it.
fn cleaned(event: sse_stream::Sse, tokens: &KnownTokens) -> Option<Event> {
    let mut clean = Event::default();
    if let Some(data) = event.data {
        let data = tokens.clean(data.into_bytes())?;
        clean.data = Some(String::from_utf8_lossy(&data).into_owned());
    }
    (clean.event, clean.id) = (event.event, event.id);
    clean.retry = event.retry.map(|pause| pause.clamp(MIN_RETRY_MS, MAX_RETRY_MS));
    Some(clean)
}

/// Counts the bytes of an event: they are held until the empty line that ends it.
#[derive(Default)]
struct EventSize {
    event: usize,
    line: usize,
    after_return: bool,
}

impl EventSize {
    /// The most that was held at once.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut most = 0;
        for byte in chunk {
            // A line ends with `\r`, `\n` or both.
            let is_second = std::mem::replace(&mut self.after_return, *byte == b'\r') && *byte == b'\n';
            match byte {
                b'\n' if is_second => {}
                b'\r' | b'\n' if self.line == 0 => self.event = 0,
                b'\r' | b'\n' => self.line = 0,
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
            most = most.max(self.event);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::EventSize;

    fn check(chunks: &[&str], most: usize) {
        let mut size = EventSize::default();
        let found = chunks.iter().map(|chunk| size.add(chunk.as_bytes())).max();
        assert_eq!(found, Some(most), "{chunks:?}");
    }

    #[test]
    fn an_event_is_as_large_as_all_its_lines() {
        for end in ["\n", "\r", "\r\n"] {
            let lines = format!("data: 12{end}data: 34{end}{end}data: 5{end}{end}");
            check(&[&lines], 16);
            let (first, second) = lines.split_at(9);
            check(&[first, second], 16);
        }
        check(&["data: 1\r", "\ndata: 2\r", "\n\r", "\ndata: 3"], 14);
        check(&["\n\n\n", ":\n:\n:\n"], 3);
    }
}
