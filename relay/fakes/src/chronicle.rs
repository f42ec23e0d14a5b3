//! A chronicle in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tgp_contract::{AppendResult, Chronicle, ChronicleEvent, Code, RelativePath, ToolError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Events of all files together; a fake that is filled further was meant to be a real one.
const MAX_EVENTS: usize = 100_000;
/// What the name of every chronicle ends in.
const ENDING: &str = ".sage";

/// Keeps each event once, in the usual scope: `.sage/*.sage` and `src/**/*.sage`.
#[derive(Default)]
pub struct MemoryChronicle {
    files: Mutex<BTreeMap<RelativePath, Vec<ChronicleEvent>>>,
}

impl MemoryChronicle {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

fn check_scope(file: &RelativePath) -> Result<(), ToolError> {
    let parts: Vec<&str> = file.parts().collect();
    let inside = match parts.as_slice() {
        [first, _] if *first == ".sage" => true,
        [first, .., _] => *first == "src" && !parts.iter().any(|part| part.eq_ignore_ascii_case(".git")),
        _ => false,
    };
    let named = file.name().is_some_and(|name| name.len() > ENDING.len() && name.ends_with(ENDING));
    if inside && named {
        return Ok(());
    }
    let message = format!("`{file}` is outside the scope of the chronicle");
    Err(ToolError::new(Code::Permission, message).help("name `.sage/NAME.sage` or `src/PATH.sage`"))
}

/// The event's own id, when the event is one that can be kept.
fn check_event(event: &ChronicleEvent) -> Result<String, ToolError> {
    let refuse = |message: String| {
        ToolError::new(Code::Validation, message).help("see relay/fixtures/README.md for what an event is")
    };
    if event.kind.is_empty() || event.actor.agent.is_empty() || event.actor.id.is_empty() {
        return Err(refuse("an event has a type and an actor with agent and id".to_owned()));
    }
    if OffsetDateTime::parse(&event.timestamp, &Rfc3339).is_err() {
        return Err(refuse(format!("`{}` is not a time of RFC 3339", event.timestamp)));
    }
    let own = event.compute_id().map_err(|error| refuse(error.to_string()))?;
    match &event.event_id {
        Some(given) if *given != own => Err(refuse(format!("the eventId is `{given}`, not its own `{own}`"))),
        _ => Ok(own),
    }
}

#[async_trait]
impl Chronicle for MemoryChronicle {
    async fn append(&self, file: &RelativePath, event: ChronicleEvent) -> Result<AppendResult, ToolError> {
        check_scope(file)?;
        let event_id = check_event(&event)?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.values().map(Vec::len).sum::<usize>() >= MAX_EVENTS {
            let message = format!("the chronicle in memory has {MAX_EVENTS} events, and takes no more");
            return Err(ToolError::new(Code::Budget, message).help("use a chronicle of files"));
        }
        let events = files.entry(file.clone()).or_default();
        let appended = !events.iter().any(|known| known.event_id.as_deref() == Some(&event_id));
        if appended {
            events.push(ChronicleEvent { event_id: Some(event_id.clone()), ..event });
        }
        Ok(AppendResult { event_id, appended })
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        check_scope(file)?;
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let events = files.get(file).map(Vec::as_slice).unwrap_or_default();
        Ok(events.iter().skip(events.len().saturating_sub(most)).cloned().collect())
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        Ok(self.files.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect())
    }
}
