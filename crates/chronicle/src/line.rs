//! One event as one line, and back. What is not exactly the line that this module would write is not an event.

use tgp_contract::canonical::CanonicalError;
use tgp_contract::{ChronicleEvent, EventFormError, MAX_CHRONICLE_LINE_BYTES};
pub(crate) use tgp_contract::{LineError, decode_line as decode};

/// The longest line, its end included.
pub const MAX_LINE_BYTES: usize = MAX_CHRONICLE_LINE_BYTES;

/// Why an event cannot become a line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    #[error(transparent)]
    Form(#[from] EventFormError),
    #[error("it needs {0} bytes, at most {MAX_LINE_BYTES}")]
    TooLong(usize),
    #[error("its `eventId` is `{given}`, but its own is `{own}`")]
    WrongId { given: String, own: String },
    #[error("{0}")]
    Canonical(#[from] CanonicalError),
    #[error("it would not be read back as it is: {0}")]
    Unreadable(#[from] LineError),
}

/// An event that is ready to be written.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) id: String,
    /// The line with its end.
    pub(crate) line: Vec<u8>,
}

/// The line of `event`, checked so that [`decode`] gives the event back.
pub(crate) fn encode(event: ChronicleEvent) -> Result<Encoded, EventError> {
    event.check_form()?;
    let own = event.compute_id()?;
    if let Some(given) = event.event_id.as_ref().filter(|given| **given != own) {
        return Err(EventError::WrongId { given: given.clone(), own });
    }
    let event = ChronicleEvent { event_id: Some(own.clone()), ..event };
    let mut line = event.to_canonical()?.into_bytes();
    line.push(b'\n');
    if line.len() > MAX_LINE_BYTES {
        return Err(EventError::TooLong(line.len()));
    }
    decode(line.strip_suffix(b"\n").unwrap_or(&line))?;
    Ok(Encoded { id: own, line })
}

/// Whether `line` is JSON at all. A line that was cut off, or that the disk lost a part of, is not.
pub(crate) fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}
