//! Streams of server-sent events. The first letter of the input chooses the wire; the stream begins after the first line.

use std::cell::OnceCell;
use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tgp_contract::StreamEvent;
use tgp_llm::{HttpOptions, Wire, answer_events};
use tokio::runtime::{Builder, Runtime};

use super::{ensure, same};
use crate::Target;
use crate::mutate::sentence;

pub(super) const TARGET: Target = Target {
    name: "sse",
    about: "a stream gives the same events however it is cut, the last of them and no other is an end, and comments mean nothing",
    oracle: check,
    dictionary: &[
        "data: ",
        "data:",
        "event: ",
        "id: 1\n",
        "retry: 5\n",
        ":\n\n",
        "\n\n",
        "\r\n\r\n",
        "\r\r",
        "\r",
        "\u{feff}",
        "data: [DONE]\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        "event: error\ndata: {\"error\":{\"message\":\"no\"}}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"é\"}}]}\n\n",
        "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n",
        "\"index\":1",
        "\"usage\":{\"prompt_tokens\":1}",
        "\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"a\",\"arguments\":\"{\"}}]",
        "\"type\":\"content_block_start\"",
        "\"type\":\"content_block_delta\"",
        "\"type\":\"response.completed\"",
        "null",
        "\\ud83d",
        "\\\"",
        "c\n",
        "r\n",
        "a\n",
    ],
    generate: Some(|random| sentence(random, GRAMMAR, "stream", DEPTH).into_bytes()),
    iterations: 1_300,
};

/// How deep a generated stream nests.
const DEPTH: u32 = 8;

/// Streams of all wires, with the lines and the noise that servers put between them.
const GRAMMAR: &[(&str, &[&str])] = &[
    (
        "stream",
        &[
            "c\ndata: [DONE]\n\n",
            "c\n<chat>data: {\"choices\":[{\"delta\":{},\"finish_reason\":<reason>}]}<end>data: [DONE]<end>",
            "a\n<anthropic>data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":<reason>},\"usage\":{\"output_tokens\":<number>}}<end>data: {\"type\":\"message_stop\"}<end>",
            "r\n<responses>data: {\"type\":\"response.completed\",\"response\":{\"output\":[],\"usage\":{\"input_tokens\":<number>}}}<end>",
        ],
    ),
    (
        "chat",
        &[
            "",
            "data: {\"choices\":[{\"delta\":{\"content\":<text>}}]}<end><chat>",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":<number>,\"id\":<text>,\"function\":{\"name\":<text>,\"arguments\":<text>}}]}}]}<end><chat>",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":<number>,\"completion_tokens\":<number>}}<end><chat>",
            "<noise><chat>",
        ],
    ),
    (
        "anthropic",
        &[
            "",
            "event: content_block_start<line>data: {\"type\":\"content_block_start\",\"index\":<number>,\"content_block\":{\"type\":\"tool_use\",\"id\":<text>,\"name\":<text>,\"input\":{}}}<end><anthropic>",
            "data: {\"type\":\"content_block_delta\",\"index\":<number>,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":<text>}}<end><anthropic>",
            "data: {\"type\":\"content_block_start\",\"index\":<number>,\"content_block\":{\"type\":\"text\",\"text\":<text>}}<end><anthropic>",
            "data: {\"type\":\"content_block_delta\",\"index\":<number>,\"delta\":{\"type\":\"text_delta\",\"text\":<text>}}<end><anthropic>",
            "data: {\"type\":\"content_block_stop\",\"index\":<number>}<end><anthropic>",
            "<noise><anthropic>",
        ],
    ),
    (
        "responses",
        &[
            "",
            "event: response.output_text.delta<line>data: {\"type\":\"response.output_text.delta\",\"delta\":<text>}<end><responses>",
            "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":<text>,\"name\":<text>,\"arguments\":<text>}}<end><responses>",
            "<noise><responses>",
        ],
    ),
    (
        "noise",
        &[
            ":<line>",
            ": still here<end>",
            "id: 7<line>",
            "retry: 5<end>",
            "event: later<line>data: not json<end>",
            "data<end>",
            "data:<end>",
            "foo: bar<line>",
            "<line>",
        ],
    ),
    (
        "text",
        &[
            "\"Hi\"",
            "\"\"",
            "\"\u{e9}\u{1f600}\"",
            "\"\\n\\u00e9\"",
            "\"{\\\"path\\\":\"",
            "\"\\\"a\\\"}\"",
            "null",
            "\"{}\"",
        ],
    ),
    ("number", &["0", "1", "2", "null", "-1", "1e3", "99999999999999999999"]),
    (
        "reason",
        &[
            "\"stop\"",
            "\"tool_calls\"",
            "\"length\"",
            "\"end_turn\"",
            "\"tool_use\"",
            "null",
            "\"max_tokens\"",
        ],
    ),
    ("line", &["\n", "\r\n", "\r"]),
    ("end", &["\n\n", "\n\n", "\r\n\r\n", "\r\r", "\n\r\n", "\r\n\n"]),
];

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

fn check(input: &[u8]) -> Result<(), String> {
    let end = input.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let body = input.get(end..).unwrap_or_default();
    let wire = match input.first() {
        Some(b'r') => Wire::OpenAiResponses,
        Some(b'a') => Wire::Anthropic,
        _ => Wire::OpenAiChat,
    };
    let whole = events(wire, body, body.len())?;
    same("the events depend on how the stream is cut", &events(wire, body, 1)?, &whole)?;
    same("the events depend on how the stream is cut", &events(wire, body, 7)?, &whole)?;
    let kind = |event: &Value| event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_end = |event: &Value| matches!(kind(event).as_str(), "end" | "error");
    let (Some(last), ends) = (whole.last(), whole.iter().filter(|event| is_end(event)).count()) else {
        return Err("the stream has no events, not even an end".to_owned());
    };
    ensure!(is_end(last) && ends == 1, "an end is not the last event, or not the only one: {whole:?}");
    // What an error says may quote the beginning of the stream, and a byte order mark is one at the beginning only.
    if kind(last) == "end" && !body.starts_with("\u{feff}".as_bytes()) {
        let noisy = [b": still here\n\n".as_slice(), body].concat();
        same("a comment changes the events", &events(wire, &noisy, noisy.len())?, &whole)?;
    }
    Ok(())
}

/// The events of a body that comes in pieces of `step` bytes.
fn events(wire: Wire, body: &[u8], step: usize) -> Result<Vec<Value>, String> {
    let pieces: Vec<Result<Bytes, Infallible>> =
        body.chunks(step.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    RUNTIME.with(|runtime| {
        if runtime.get().is_none() {
            let made =
                Builder::new_current_thread().enable_time().build().map_err(|error| error.to_string())?;
            let _ = runtime.set(made);
        }
        let Some(runtime) = runtime.get() else { return Err("there is no runtime".to_owned()) };
        runtime.block_on(async {
            let response = http::Response::new(reqwest::Body::wrap_stream(stream::iter(pieces)));
            let stream =
                answer_events(&HttpOptions::new(wire), response.into()).map_err(|error| error.to_string())?;
            let events: Vec<StreamEvent> = stream.collect().await;
            events
                .iter()
                .map(|event| serde_json::to_value(event).map_err(|error| error.to_string()))
                .collect()
        })
    })
}
