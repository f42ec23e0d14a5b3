//! One answer on its way in: bytes become server-sent events, and these become what the model says.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use sse_stream::SseByteStream;
use tgp_contract::{EventStream, StopReason, StreamEvent};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::failure::{Failure, Reporter};
use crate::limits::{MAX_BEGINNING_BYTES, MAX_EVENT_BYTES, MAX_TURN_BYTES, PATIENCE_AFTER_FINISH};
use crate::options::ProviderTimeouts;
use crate::transport::broken_off;
use crate::wire::{Decoder, Progress};

/// The answer to one request.
pub(crate) struct Turn {
    events: SseByteStream<CountingBody>,
    decoder: Box<dyn Decoder>,
    ready: VecDeque<StreamEvent>,
    gauge: Arc<StreamLimits>,
    /// Set when everything was said, with the reason.
    finish: Option<Option<StopReason>>,
    is_over: bool,
    patience: ProviderTimeouts,
}

impl Turn {
    pub(crate) fn new(
        response: reqwest::Response,
        decoder: Box<dyn Decoder>,
        patience: ProviderTimeouts,
        deadline: Instant,
    ) -> Self {
        let gauge = Arc::new(StreamLimits::default());
        let bytes = CountingBody {
            inner: Box::pin(response.bytes_stream()),
            gauge: Arc::clone(&gauge),
            total: 0,
            idle: patience.idle,
            deadline,
            alarm: Box::pin(sleep_until(deadline)),
            is_waiting: false,
        };
        Self {
            events: SseByteStream::new(bytes),
            decoder,
            ready: VecDeque::new(),
            gauge,
            finish: None,
            is_over: false,
            patience,
        }
    }

    /// Waits until the model has said something; usage alone does not count.
    pub(crate) async fn begin(&mut self) -> Result<(), Failure> {
        while self.ready.iter().all(|event| matches!(event, StreamEvent::Usage(_))) {
            self.advance().await?;
        }
        Ok(())
    }

    /// Reads one server-sent event, or the end of all.
    async fn advance(&mut self) -> Result<(), Failure> {
        let progress = match self.events.next().await {
            Some(Ok(event)) => {
                self.gauge.has_events.store(true, Ordering::Relaxed);
                self.gauge.since_event.store(0, Ordering::Relaxed);
                let mut said = Vec::new();
                let (name, data) = (event.event.unwrap_or_default(), event.data.unwrap_or_default());
                let progress = self.decoder.read(&name, &data, &mut said)?;
                self.ready.extend(said);
                progress
            }
            // Everything was said before: how the connection ended does not matter.
            Some(Err(_)) | None if self.finish.is_some() => Progress::Over(self.finish.flatten()),
            Some(Err(error)) => return Err(self.failure(error)),
            None => return Err(self.gauge.unexpected_end()),
        };
        match progress {
            Progress::GoOn => {}
            Progress::Finished(reason) => {
                self.finish = Some(reason);
                self.gauge.is_finished.store(true, Ordering::Relaxed);
            }
            Progress::Over(reason) => {
                self.ready.push_back(StreamEvent::End { reason });
                self.is_over = true;
            }
        }
        Ok(())
    }

    fn failure(&self, error: sse_stream::Error) -> Failure {
        let interrupted = match error {
            sse_stream::Error::Body(cause) => match cause.downcast::<Interrupted>() {
                Ok(interrupted) => *interrupted,
                Err(cause) => return Failure::Dropped(cause.to_string()),
            },
            other => return Failure::Unreadable(other.to_string()),
        };
        match interrupted {
            Interrupted::Transport(error) => broken_off(&error),
            Interrupted::Silent => Failure::Silent(self.patience.idle),
            Interrupted::TooLong => Failure::TooLong(self.patience.total),
            Interrupted::EventTooLarge => {
                Failure::TooLarge { what: "an event (in bytes)", limit: MAX_EVENT_BYTES as u64 }
            }
            Interrupted::TurnTooLarge => {
                Failure::TooLarge { what: "the turn (in bytes)", limit: MAX_TURN_BYTES }
            }
        }
    }

    async fn next(&mut self, reporter: &Reporter, attempts: u32) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            if let Err(failure) = self.advance().await {
                self.is_over = true;
                return Some(StreamEvent::Error { error: reporter.interruption(&failure, attempts) });
            }
        }
    }

    /// The events, up to the last one. Dropping the stream closes the connection.
    pub(crate) fn into_stream(self, reporter: Arc<Reporter>, attempts: u32) -> EventStream {
        Box::pin(stream::unfold((self, reporter), move |(mut turn, reporter)| async move {
            let event = turn.next(&reporter, attempts).await?;
            Some((event, (turn, reporter)))
        }))
    }
}

/// All that is said in an answer that came at once, put to the decoder as if it had come in events.
pub(crate) fn whole(mut decoder: Box<dyn Decoder>, events: &[Value]) -> Result<Vec<StreamEvent>, Failure> {
    let mut said = Vec::new();
    let mut end = None;
    for event in events {
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        match decoder.read("", &data, &mut said)? {
            Progress::GoOn => {}
            Progress::Finished(finished) | Progress::Over(finished) => end = Some(finished),
        }
    }
    let reason = end.ok_or_else(|| Failure::Unreadable("it is not a finished answer".to_owned()))?;
    said.push(StreamEvent::End { reason });
    Ok(said)
}

/// What both ends of the event parser know: the parser itself has no bounds.
#[derive(Debug, Default)]
struct StreamLimits {
    since_event: AtomicUsize,
    has_events: AtomicBool,
    is_finished: AtomicBool,
    beginning: Mutex<Vec<u8>>,
}

impl StreamLimits {
    fn keep(&self, bytes: &Bytes) {
        let mut beginning = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_BEGINNING_BYTES.saturating_sub(beginning.len());
        beginning.extend(bytes.iter().take(room));
    }

    /// What an end means that was not announced: a server that never spoke in events will not do so the next time.
    fn unexpected_end(&self) -> Failure {
        let beginning = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_events.load(Ordering::Relaxed) || is_stream(&beginning) {
            return Failure::unexpected_end();
        }
        let words = String::from_utf8_lossy(&beginning);
        Failure::Unreadable(format!("it is not a stream of events: {words}"))
    }
}

/// True when the first line is one of a stream of events, or can become one where it was cut off.
fn is_stream(beginning: &[u8]) -> bool {
    const FIELDS: [&[u8]; 5] = [b"", b"data", b"event", b"id", b"retry"];
    let beginning = beginning.strip_prefix("\u{feff}".as_bytes()).unwrap_or(beginning);
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let end = beginning.iter().position(is_end);
    let line = beginning.get(..end.unwrap_or(beginning.len())).unwrap_or_default();
    let field = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_cut = end.is_none() && field.len() == line.len();
    FIELDS.iter().any(|known| if is_cut { known.starts_with(field) } else { *known == field })
}

#[derive(Debug, thiserror::Error)]
enum Interrupted {
    #[error("{0}")]
    Transport(reqwest::Error),
    #[error("no byte came")]
    Silent,
    #[error("the time is over")]
    TooLong,
    #[error("an event is too large")]
    EventTooLarge,
    #[error("the turn is too large")]
    TurnTooLarge,
}

/// The bytes of the body, counted and timed. An event may pass its cap by what one read brings.
struct CountingBody {
    inner: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    gauge: Arc<StreamLimits>,
    total: u64,
    idle: Duration,
    deadline: Instant,
    alarm: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl CountingBody {
    fn weigh(&mut self, bytes: &Bytes) -> Result<(), Interrupted> {
        self.gauge.keep(bytes);
        self.total = self.total.saturating_add(bytes.len() as u64);
        let since_event = self.gauge.since_event.fetch_add(bytes.len(), Ordering::Relaxed);
        if since_event.saturating_add(bytes.len()) > MAX_EVENT_BYTES {
            return Err(Interrupted::EventTooLarge);
        }
        if self.total > MAX_TURN_BYTES { Err(Interrupted::TurnTooLarge) } else { Ok(()) }
    }

    /// The clock runs only while a caller waits: a slow listener is not the server's silence.
    fn arm(&mut self) {
        let is_finished = self.gauge.is_finished.load(Ordering::Relaxed);
        let idle = if is_finished { self.idle.min(PATIENCE_AFTER_FINISH) } else { self.idle };
        self.alarm.as_mut().reset((Instant::now() + idle).min(self.deadline));
        self.is_waiting = true;
    }
}

impl Stream for CountingBody {
    type Item = Result<Bytes, Interrupted>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if Instant::now() >= self.deadline {
            return Poll::Ready(Some(Err(Interrupted::TooLong)));
        }
        match self.inner.as_mut().poll_next(context) {
            Poll::Ready(Some(Ok(bytes))) => {
                self.is_waiting = false;
                Poll::Ready(Some(self.weigh(&bytes).map(|()| bytes)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(Interrupted::Transport(error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                if !self.is_waiting {
                    self.arm();
                }
                match self.alarm.as_mut().poll(context) {
                    Poll::Ready(()) if Instant::now() >= self.deadline => {
                        Poll::Ready(Some(Err(Interrupted::TooLong)))
                    }
                    Poll::Ready(()) => Poll::Ready(Some(Err(Interrupted::Silent))),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}
