//! The file of a scripted model, read strictly: a word that is not understood is reported with its place.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tgp_contract::{StopReason, StreamEvent, ToolError, Usage};

use crate::limits::LONGEST_SCRIPT_DELAY_MS;

#[derive(Debug)]
pub(super) struct File {
    pub(super) turns: Vec<Turn>,
    pub(super) clock_ms: Option<u64>,
    pub(super) seed: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Turn {
    events: Vec<Event>,
    pub(super) delay_ms: Option<u64>,
    pub(super) last_result_contains: Option<String>,
}

impl Turn {
    /// The events as a provider gives them: calls have ids, and the end is there.
    pub(super) fn play(&self, number: u64) -> Vec<StreamEvent> {
        let mut events = Vec::with_capacity(self.events.len() + 1);
        let mut calls = 0;
        for Event(event) in &self.events {
            let mut event = event.clone();
            if let StreamEvent::ToolCall { call_id, .. } = &mut event {
                calls += 1;
                if call_id.is_empty() {
                    *call_id = format!("call_{number}_{calls}");
                }
            }
            events.push(event);
        }
        if !events.last().is_some_and(is_last) {
            events.push(StreamEvent::End { reason: None });
        }
        events
    }
}

fn is_last(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::End { .. } | StreamEvent::Error { .. })
}

/// Either a list of turns, or an object around one.
impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Object {
            turns: Vec<Turn>,
            #[serde(default)]
            clock: Option<Clock>,
            #[serde(default)]
            seed: Option<u64>,
        }

        struct FileVisitor;

        impl<'de> Visitor<'de> for FileVisitor {
            type Value = File;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of turns, or an object with `turns`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<File, A::Error> {
                let turns = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(File { turns, clock_ms: None, seed: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<File, A::Error> {
                let Object { turns, clock, seed } = Object::deserialize(MapAccessDeserializer::new(map))?;
                Ok(File { turns, clock_ms: clock.map(|Clock(milliseconds)| milliseconds), seed })
            }
        }

        deserializer.deserialize_any(FileVisitor)
    }
}

/// A moment, as milliseconds since the epoch.
struct Clock(u64);

impl<'de> Deserialize<'de> for Clock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong =
            || de::Error::custom(format!("`{text}` is not a time since 1970 such as `2026-01-31T12:00:00Z`"));
        tgp_text::parse_rfc3339_ms(&text).map(Self).ok_or_else(wrong)
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Expectation {
    last_result_contains: String,
}

/// Either a list of events, or an object around one.
impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        struct Object {
            events: Vec<Event>,
            #[serde(default)]
            delay_ms: Option<u64>,
            #[serde(default)]
            expect: Option<Expectation>,
        }

        struct TurnVisitor;

        impl<'de> Visitor<'de> for TurnVisitor {
            type Value = Turn;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a turn: a list of events, or an object with `events`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Turn, A::Error> {
                let events = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(Turn { events: in_order(events)?, ..Turn::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Turn, A::Error> {
                let object = Object::deserialize(MapAccessDeserializer::new(map))?;
                if object.delay_ms.is_some_and(|delay| delay > LONGEST_SCRIPT_DELAY_MS) {
                    return Err(de::Error::custom(format!(
                        "`delayMs` is more than {LONGEST_SCRIPT_DELAY_MS}"
                    )));
                }
                Ok(Turn {
                    events: in_order(object.events)?,
                    delay_ms: object.delay_ms,
                    last_result_contains: object.expect.map(|expectation| expectation.last_result_contains),
                })
            }
        }

        deserializer.deserialize_any(TurnVisitor)
    }
}

fn in_order<E: de::Error>(events: Vec<Event>) -> Result<Vec<Event>, E> {
    match events.iter().position(|Event(event)| is_last(event)) {
        Some(position) if position + 1 < events.len() => {
            Err(E::custom("nothing follows an `end` or an `error` event in a turn"))
        }
        _ => Ok(events),
    }
}

/// An event of a stream that a model can say.
#[derive(Clone, Debug)]
struct Event(StreamEvent);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    ToolCall,
    Opaque,
    Usage,
    Error,
    End,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::ToolCall => "tool_call",
            Kind::Opaque => "opaque",
            Kind::Usage => "usage",
            Kind::Error => "error",
            Kind::End => "end",
        }
    }
}

/// The fields of all kinds: the parser then knows the place of a wrong one, which it loses when the kind decides first.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Fields {
    r#type: Kind,
    value: Option<Value>,
    tool_name: Option<String>,
    call_id: Option<String>,
    arguments: Option<Value>,
    provider: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_input_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    error: Option<ToolError>,
    reason: Option<StopReason>,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Fields::deserialize(deserializer)?.into_event().map(Self)
    }
}

impl Fields {
    fn into_event<E: de::Error>(mut self) -> Result<StreamEvent, E> {
        let kind = self.r#type;
        let missing = |field: &str| E::custom(format!("a `{}` event needs `{field}`", kind.word()));
        let event = match kind {
            Kind::Text => match self.value.take().ok_or_else(|| missing("value"))? {
                Value::String(value) => StreamEvent::Text { value },
                _ => return Err(E::custom("the `value` of a `text` event is a string")),
            },
            Kind::ToolCall => StreamEvent::ToolCall {
                tool_name: self.tool_name.take().ok_or_else(|| missing("toolName"))?,
                call_id: self.call_id.take().unwrap_or_default(),
                arguments: self.arguments.take().unwrap_or_else(|| Value::Object(Map::new())),
            },
            Kind::Opaque => StreamEvent::Opaque {
                provider: self.provider.take().ok_or_else(|| missing("provider"))?,
                value: self.value.take().ok_or_else(|| missing("value"))?,
            },
            Kind::Usage => StreamEvent::Usage(Usage {
                input_tokens: self.input_tokens.take().ok_or_else(|| missing("inputTokens"))?,
                output_tokens: self.output_tokens.take().ok_or_else(|| missing("outputTokens"))?,
                cached_input_tokens: self.cached_input_tokens.take().unwrap_or_default(),
                cache_write_tokens: self.cache_write_tokens.take().unwrap_or_default(),
            }),
            Kind::Error => StreamEvent::Error { error: self.error.take().ok_or_else(|| missing("error"))? },
            Kind::End => StreamEvent::End { reason: self.reason.take() },
        };
        match self.left_over() {
            Some(field) => Err(E::custom(format!("`{field}` is not a field of a `{}` event", kind.word()))),
            None => Ok(event),
        }
    }

    /// A field that the event of this kind did not take.
    fn left_over(&self) -> Option<&'static str> {
        let fields = [
            ("value", self.value.is_some()),
            ("toolName", self.tool_name.is_some()),
            ("callId", self.call_id.is_some()),
            ("arguments", self.arguments.is_some()),
            ("provider", self.provider.is_some()),
            ("inputTokens", self.input_tokens.is_some()),
            ("outputTokens", self.output_tokens.is_some()),
            ("cachedInputTokens", self.cached_input_tokens.is_some()),
            ("cacheWriteTokens", self.cache_write_tokens.is_some()),
            ("error", self.error.is_some()),
            ("reason", self.reason.is_some()),
        ];
        fields.into_iter().find_map(|(name, is_there)| is_there.then_some(name))
    }
}
