//! The events of chronicles that the audit names: which of its entries each one is from.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use tgp_audit::{AuditReader, is_whole};
use tgp_builtins::chronicle_path;
use tgp_contract::{ChronicleEvent, Code, RelativePath, ToolError, chronicle_of};

/// Events that are compared at once: each takes about a hundred bytes.
const MAX_EVENTS: usize = 1 << 20;
/// The tool whose arguments hold the event that it appends.
const APPEND: &str = "chronicle_append";

/// Half of an id: finding two events that share it is infeasible.
pub(super) type ShortId = u128;

/// The call that an event is from.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuditedEvent {
    /// Where its entry is among all of them.
    pub(super) sequence: u64,
    /// The number of the session of its call.
    pub(super) session: u32,
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    /// The number of the file's own chronicle. The event is in it or in the project's.
    pub(super) chronicle: u32,
    /// Whether the audit says that the event was appended, and not only that it may have been.
    pub(super) is_certain: bool,
}

/// What the audit says about events.
#[derive(Default)]
pub(super) struct AuditedEvents {
    pub(super) events: HashMap<ShortId, AuditedEvent>,
    /// Further chronicles that a call was told to append an event to.
    also: HashSet<(ShortId, u32)>,
    /// The time of the first entry. Of what was before it the audit knows nothing.
    pub(super) first_ms: Option<u64>,
    chronicles: Vec<RelativePath>,
    numbers: HashMap<RelativePath, u32>,
    sessions: HashMap<String, u32>,
    /// Calls whose entry does not name all of their events, by session and time.
    partial: HashSet<(u32, u64)>,
    /// Appended events whose text the audit has not kept, by the number of their chronicle.
    unnamed: HashMap<u32, u64>,
}

pub(super) fn short_id(id: &str) -> Option<ShortId> {
    u128::from_str_radix(id.get(..32)?, 16).ok()
}

impl AuditedEvents {
    /// Reads what the audit says about the events of all chronicles, or of `only` one.
    pub(super) fn read(reader: &AuditReader, only: Option<&RelativePath>) -> Result<Self, ToolError> {
        let mut known = Self::default();
        let mut is_too_large = false;
        reader.each_entry(&mut |entry| {
            is_too_large = is_too_large || known.events.len() > MAX_EVENTS;
            if !is_too_large {
                known.add(entry.sequence, &entry.body, only);
            }
        })?;
        if is_too_large {
            let message =
                format!("the audit names more than {MAX_EVENTS} events, too many to compare at once");
            return Err(ToolError::new(Code::Budget, message)
                .help("compare one chronicle at a time: `tgp chronicle verify PATH`"));
        }
        Ok(known)
    }

    fn add(&mut self, sequence: u64, body: &Value, only: Option<&RelativePath>) {
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let start_ms = body.get("time").and_then(Value::as_u64).unwrap_or_default();
        self.first_ms.get_or_insert(start_ms);
        if text("kind") != Some("call") {
            return;
        }
        let next = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        let session = *self.sessions.entry(text("session").unwrap_or_default().to_owned()).or_insert(next);
        let duration_us = body.pointer("/outcome/durationUs").and_then(Value::as_u64).unwrap_or_default();
        let end_ms = start_ms.saturating_add(duration_us / 1000);
        let call = AuditedEvent { sequence, session, start_ms, end_ms, chronicle: 0, is_certain: true };
        if body.pointer("/outcome/filesOmitted").is_some() {
            self.partial.insert((session, start_ms));
        }
        for file in body.pointer("/outcome/files").and_then(Value::as_array).into_iter().flatten() {
            let field = |name: &str| file.get(name).and_then(Value::as_str);
            let own = field("path").and_then(|path| chronicle_of(&RelativePath::new(path).ok()?).ok());
            if let (Some(own), Some(event)) = (own, field("event").and_then(short_id))
                && only.is_none_or(|only| *only == own)
            {
                self.insert(event, &own, call);
            }
        }
        if text("tool") == Some(APPEND) && body.get("dryRun") != Some(&Value::Bool(true)) {
            self.add_appended(body, call, only);
        }
    }

    /// The event in the arguments of a call of [`APPEND`].
    fn add_appended(&mut self, body: &Value, call: AuditedEvent, only: Option<&RelativePath>) {
        let Some(own) = body.pointer("/arguments/path").and_then(Value::as_str) else { return };
        let Ok(own) = chronicle_path(own) else { return };
        if only.is_some_and(|only| *only != own) {
            return;
        }
        let event = body.pointer("/arguments/event").filter(|event| is_whole(event));
        let event = event.and_then(|event| serde_json::from_value::<ChronicleEvent>(event.clone()).ok());
        let id = event.and_then(|event| short_id(&event.compute_id().ok()?));
        match id {
            Some(id) => {
                let is_certain = body.pointer("/outcome/ok") == Some(&Value::Bool(true));
                self.insert(id, &own, AuditedEvent { is_certain, ..call });
            }
            None => {
                let number = self.number(&own);
                *self.unnamed.entry(number).or_default() += 1;
            }
        }
    }

    /// The first entry that certainly names an event is the one that it is from: later ones were given it again.
    fn insert(&mut self, event: ShortId, own: &RelativePath, call: AuditedEvent) {
        let chronicle = self.number(own);
        let known = self.events.entry(event).or_insert(AuditedEvent { chronicle, ..call });
        if known.chronicle != chronicle {
            self.also.insert((event, chronicle));
        }
        if call.is_certain && !known.is_certain {
            *known = AuditedEvent { chronicle, ..call };
        }
    }

    fn number(&mut self, chronicle: &RelativePath) -> u32 {
        if let Some(number) = self.numbers.get(chronicle) {
            return *number;
        }
        let number = u32::try_from(self.chronicles.len()).unwrap_or(u32::MAX);
        self.chronicles.push(chronicle.clone());
        self.numbers.insert(chronicle.clone(), number);
        number
    }

    /// Whether the audit says that an event was appended to this chronicle.
    pub(super) fn is_in(&self, event: ShortId, chronicle: &RelativePath) -> bool {
        let (Some(known), Some(number)) = (self.events.get(&event), self.numbers.get(chronicle)) else {
            return false;
        };
        known.chronicle == *number || self.also.contains(&(event, *number))
    }

    /// The chronicle of a number.
    pub(super) fn chronicle(&self, number: u32) -> Option<&RelativePath> {
        self.chronicles.get(usize::try_from(number).ok()?)
    }

    /// Every chronicle that the audit names an event of.
    pub(super) fn chronicles(&self) -> &[RelativePath] {
        &self.chronicles
    }

    /// How many events of a chronicle the audit knows without their text.
    pub(super) fn unnamed_of(&self, chronicle: &RelativePath) -> u64 {
        self.numbers.get(chronicle).and_then(|number| self.unnamed.get(number)).copied().unwrap_or_default()
    }

    /// The number of a session, where the audit has one of its calls.
    pub(super) fn session(&self, name: &str) -> Option<u32> {
        self.sessions.get(name).copied()
    }

    /// Whether the entry of a call does not name all of its events.
    pub(super) fn is_partial(&self, session: u32, start_ms: u64) -> bool {
        self.partial.contains(&(session, start_ms))
    }
}
