//! The wire formats: what is sent for a request, and what the events of an answer mean. Pure functions on values.

mod anthropic;
mod blocks;
mod chat;
mod history;
mod models;
mod responses;

use serde_json::{Value, json};
use tgp_contract::{ChatOptions, StopReason, StreamEvent, Usage};

use crate::failure::{Failure, ProviderMessage};
use crate::limits::MAX_QUOTED_CHARACTERS;
use crate::options::Wire;

pub(crate) use models::page;

/// What differs between servers that speak the same API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// OpenAI itself: newer names of parameters.
    pub(crate) is_openai: bool,
    /// The model can encrypt its thoughts for us to keep.
    pub(crate) has_encrypted_thoughts: bool,
    /// How many tokens may be written where no limit is set and the API wants one.
    pub(crate) default_limit: u64,
    /// The server accepts `stream_options`, by which it is asked to report what a turn has used.
    pub(crate) has_stream_options: bool,
}

/// Room for a large file. The models of today can write more, and a model that cannot is asked for less.
const DEFAULT_LIMIT: u64 = 32_000;

impl Default for Dialect {
    fn default() -> Self {
        Self {
            is_openai: false,
            has_encrypted_thoughts: true,
            default_limit: DEFAULT_LIMIT,
            has_stream_options: true,
        }
    }
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    GoOn,
    /// Everything was said; what the turn has cost may still follow.
    Finished(Option<StopReason>),
    /// Nothing more will follow.
    Over(Option<StopReason>),
}

/// Reads the events of one answer.
pub(crate) trait Decoder: Send {
    /// Reads one event by its name (empty when it has none) and its data, and adds what it means to `said`.
    fn read(&mut self, name: &str, data: &str, said: &mut Vec<StreamEvent>) -> Result<Progress, Failure>;
}

/// The body of a request for one turn. `label` marks the opaque blocks that are ours.
pub(crate) fn request(wire: Wire, label: &str, options: &ChatOptions, dialect: Dialect) -> Value {
    match wire {
        Wire::OpenAiChat => chat::request(label, options, dialect),
        Wire::OpenAiResponses => responses::request(label, options, dialect),
        Wire::Anthropic => anthropic::request(label, options, dialect),
    }
}

pub(crate) fn decoder(wire: Wire, label: &str, turn: u64) -> Box<dyn Decoder> {
    match wire {
        Wire::OpenAiChat => Box::new(chat::ChatDecoder::new(label, turn)),
        Wire::OpenAiResponses => Box::new(responses::ResponsesDecoder::new(label, turn)),
        Wire::Anthropic => Box::new(anthropic::AnthropicDecoder::new(label, turn)),
    }
}

/// The events by which a whole answer would have been streamed, or `None` when it is not an answer of this wire.
pub(crate) fn events_of(wire: Wire, answer: &Value) -> Option<Vec<Value>> {
    let items = |name: &str| answer.get(name).and_then(Value::as_array).filter(|items| !items.is_empty());
    match wire {
        Wire::OpenAiChat => items("choices").map(|_| vec![answer.clone(), json!("[DONE]")]),
        Wire::OpenAiResponses => {
            answer.get("output").filter(|output| output.is_array())?;
            let status = text(answer, "/status").unwrap_or("completed");
            Some(vec![json!({ "type": format!("response.{status}"), "response": answer })])
        }
        Wire::Anthropic => anthropic::events_of(answer, answer.get("content")?.as_array()?),
    }
}

/// The JSON of an event, or `None` when it says nothing. An event of a kind we do not know may hold anything.
fn parse(name: &str, data: &str, is_known: bool) -> Result<Option<Value>, Failure> {
    if data.trim().is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(data) {
        Ok(value) => Ok(Some(value)),
        Err(_) if !is_known && !name.is_empty() => Ok(None),
        Err(error) => {
            let beginning: String = data.chars().take(MAX_QUOTED_CHARACTERS).collect();
            Err(Failure::Unreadable(format!("an event is not JSON ({error}): {beginning}")))
        }
    }
}

/// An object of the fields that are there, in this order.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// A list that is left out when it is empty: some servers refuse an empty one.
fn list<T>(items: &[T], write: impl Fn(&T) -> Value) -> Option<Value> {
    if items.is_empty() { None } else { Some(items.iter().map(write).collect()) }
}

/// A text that is left out when it is empty.
fn words(text: &str) -> Option<Value> {
    if text.is_empty() { None } else { Some(text.into()) }
}

/// The kind of a typed event: what its data say, or else its name.
fn kind<'a>(name: &'a str, value: &'a Value) -> &'a str {
    text(value, "/type").unwrap_or(name)
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// A text that is there and not empty.
fn some_text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    text(value, pointer).filter(|text| !text.is_empty())
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

fn say(text: &str, said: &mut Vec<StreamEvent>) {
    if !text.is_empty() {
        said.push(StreamEvent::Text { value: text.to_owned() });
    }
}

/// What an event says of the tokens of its turn.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// All that was read, with the next two.
    input: Option<u64>,
    cached: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
}

/// Counts what a turn has cost; says it only when it has changed.
#[derive(Debug, Default)]
struct Meter(Usage);

impl Meter {
    /// A number that is missing or zero changes nothing: some servers repeat half of the count.
    fn count(&mut self, counted: Counted, said: &mut Vec<StreamEvent>) {
        let known = |new: Option<u64>, old: u64| new.filter(|new| *new > 0).unwrap_or(old);
        let usage = Usage {
            input_tokens: known(counted.input, self.0.input_tokens),
            output_tokens: known(counted.output, self.0.output_tokens),
            cached_input_tokens: known(counted.cached, self.0.cached_input_tokens),
            cache_write_tokens: known(counted.cache_write, self.0.cache_write_tokens),
        };
        if usage != self.0 {
            self.0 = usage;
            said.push(StreamEvent::Usage(usage));
        }
    }
}

fn reported(value: &Value) -> Failure {
    Failure::Reported(ProviderMessage::from_json(value))
}
