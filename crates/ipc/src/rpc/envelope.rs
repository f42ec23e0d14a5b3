//! A message of JSON-RPC 2.0 as it is read and written.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{Code, JsonLimits, ToolError, measure};
use tgp_text::one_line;

use super::protocol::{RequestId, RpcError};

/// The largest message in either direction.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Ids come back in answers and are in records.
const MAX_ID_BYTES: usize = 256;

/// The numbers of JSON-RPC, and ours.
pub(crate) mod number {
    pub(crate) const PARSE: i64 = -32700;
    pub(crate) const INVALID: i64 = -32600;
    pub(crate) const UNKNOWN_METHOD: i64 = -32601;
    pub(crate) const PARAMS: i64 = -32602;
    /// Before `initialize`.
    pub(crate) const NOT_READY: i64 = -32002;
    /// `data` says it.
    pub(crate) const FAILED: i64 = -32000;
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl From<ToolError> for RpcError {
    fn from(error: ToolError) -> Self {
        let error = error.bounded();
        Self { code: number::FAILED, message: error.message.clone(), data: Some(Box::new(error)) }
    }
}

/// A message of the other side.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// `values` are those of the whole line.
    Answer {
        id: u64,
        result: Result<Value, RpcError>,
        values: usize,
    },
}

/// Why a line cannot be taken as a message.
#[derive(Debug)]
pub(crate) struct Malformed {
    /// The id of the request that it would have been.
    pub(crate) id: Option<RequestId>,
    /// The request of ours that it would have answered. Both sides count their own requests, so a refusal must not carry it.
    pub(crate) answers: Option<u64>,
    pub(crate) error: RpcError,
}

#[derive(Deserialize)]
struct Wire {
    jsonrpc: Option<String>,
    id: Option<RequestId>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    /// A result that is null is one, too.
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<LooseError>,
}

/// An error of the other side. What it adds may be anything; a cause with a code that is not known is only its message.
#[derive(Deserialize)]
struct LooseError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

impl From<LooseError> for RpcError {
    fn from(error: LooseError) -> Self {
        let data = serde_json::from_value(error.data).ok();
        Self { code: error.code, message: error.message, data }
    }
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What can be read of a line that cannot be taken as a message.
#[derive(Default, Deserialize)]
struct Head {
    id: Option<RequestId>,
    method: Option<serde::de::IgnoredAny>,
}

/// Characters of what a parser says: it repeats what it was given.
const MAX_CAUSE: usize = 300;

/// Values are counted before they are made. `limits` are those of answers; a request has those of arguments.
pub(crate) fn parse(line: &[u8], limits: JsonLimits) -> Result<Incoming, Malformed> {
    let refuse = |code: i64, message: String| {
        let Head { id, method } = serde_json::from_slice(line).unwrap_or_default();
        let error = RpcError::new(code, one_line(&message, MAX_CAUSE));
        match (method, id) {
            (Some(_), id) => Malformed { id: id.filter(is_short), answers: None, error },
            (None, Some(RequestId::Number(answers))) => Malformed { id: None, answers: Some(answers), error },
            (None, _) => Malformed { id: None, answers: None, error },
        }
    };
    let size = measure(line, limits).map_err(|error| refuse(number::INVALID, error.to_string()))?;
    let wire: Wire = serde_json::from_slice(line).map_err(|error| {
        let code = if error.is_data() { number::INVALID } else { number::PARSE };
        refuse(code, format!("the line is not a message of JSON-RPC: {error}"))
    })?;
    if wire.jsonrpc.as_deref() != Some("2.0") {
        return Err(refuse(number::INVALID, "`jsonrpc` must be \"2.0\"".to_owned()));
    }
    let incoming = match (wire.method, wire.id, wire.result, wire.error) {
        (Some(method), Some(id), None, None) if is_short(&id) => {
            measure(line, JsonLimits::ARGUMENTS)
                .map_err(|error| refuse(number::INVALID, error.to_string()))?;
            Some(Incoming::Request { id, method, params: wire.params })
        }
        (Some(method), None, None, None) => Some(Incoming::Notification { method, params: wire.params }),
        (None, Some(RequestId::Number(id)), Some(result), None) => {
            Some(Incoming::Answer { id, result: Ok(result), values: size.values })
        }
        (None, Some(RequestId::Number(id)), None, Some(error)) => {
            Some(Incoming::Answer { id, result: Err(error.into()), values: size.values })
        }
        _ => None,
    };
    incoming.ok_or_else(|| {
        let message = format!(
            "a message has `method` with or without `id`, or the `id` of a request of the kernel with `result` or \
             `error`; an `id` has at most {MAX_ID_BYTES} bytes"
        );
        refuse(number::INVALID, message)
    })
}

fn is_short(id: &RequestId) -> bool {
    match id {
        RequestId::Number(_) => true,
        RequestId::Text(text) => text.len() <= MAX_ID_BYTES,
    }
}

/// The parameters of a request. A missing object is an empty one.
pub(crate) fn params<T: DeserializeOwned>(value: Value) -> Result<T, RpcError> {
    let value = if value.is_null() { Value::Object(serde_json::Map::new()) } else { value };
    serde_json::from_value(value).map_err(|error| {
        let cause = one_line(&error.to_string(), MAX_CAUSE);
        let data = ToolError::new(Code::Validation, format!("the parameters cannot be read: {cause}"))
            .help("docs/protocol.md shows every message");
        RpcError { code: number::PARAMS, message: data.message.clone(), data: Some(Box::new(data)) }
    })
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outgoing<'a, T> {
    Request { jsonrpc: &'static str, id: u64, method: &'a str, params: T },
    Notification { jsonrpc: &'static str, method: &'a str, params: T },
    Result { jsonrpc: &'static str, id: &'a RequestId, result: T },
    Error { jsonrpc: &'static str, id: Option<&'a RequestId>, error: &'a RpcError },
}

const VERSION: &str = "2.0";

/// A line, or nothing when it would be longer than allowed.
fn line<T: Serialize>(message: &Outgoing<'_, T>) -> Option<Vec<u8>> {
    let mut buffer = crate::buffer::BoundedBuffer::new(MAX_MESSAGE_BYTES - 1);
    serde_json::to_writer(&mut buffer, message).ok()?;
    let mut line = buffer.into_bytes();
    line.push(b'\n');
    Some(line)
}

pub(crate) fn request(id: u64, method: &str, params: &impl Serialize) -> Option<Vec<u8>> {
    line(&Outgoing::Request { jsonrpc: VERSION, id, method, params })
}

pub(crate) fn notification(method: &str, params: &impl Serialize) -> Option<Vec<u8>> {
    line(&Outgoing::Notification { jsonrpc: VERSION, method, params })
}

/// The answer to a request. One that is too long is replaced by an error: what was asked for has been done.
pub(crate) fn answer(id: &RequestId, result: &Result<impl Serialize, RpcError>) -> Vec<u8> {
    let written = match result {
        Ok(result) => line(&Outgoing::Result { jsonrpc: VERSION, id, result }),
        Err(error) => return failure(Some(id), error),
    };
    written.unwrap_or_else(|| {
        let message = format!("the answer has more than {MAX_MESSAGE_BYTES} bytes, too many for a message");
        let error = ToolError::new(Code::Runtime, message).detail("ran", true).help("ask for less at a time");
        failure(Some(id), &error.into())
    })
}

pub(crate) fn failure(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    line::<()>(&Outgoing::Error { jsonrpc: VERSION, id, error }).unwrap_or_else(|| {
        let error = RpcError::new(error.code, one_line(&error.message, MAX_CAUSE));
        line::<()>(&Outgoing::Error { jsonrpc: VERSION, id, error: &error }).unwrap_or_default()
    })
}
