//! The same words in the accents of many servers, and answers that end before they are done.

use serde_json::{Value, json};
use tgp_llm::Wire;

use crate::server::{Answer, Server};
use crate::support::{called, hello, json_of, once, play};

/// Plays the events and compares what was received; an error is compared by its message's end.
async fn check(wire: Wire, name: &str, events: &[Value], expected: Value) {
    let line = |event: &Value| match event {
        Value::String(raw) => format!("data: {raw}\n\n"),
        event => format!("data: {event}\n\n"),
    };
    let server = Server::start(vec![Answer::events(&events.iter().map(line).collect::<String>())]).await;
    let mut heard = match play(&*once(wire, &server.base), hello()).await {
        Ok(events) => json_of(&events),
        Err(error) => json!([{ "type": "error", "error": error }]),
    };
    let prefix = format!("the provider `{}` failed: ", called(wire, &server.base));
    for event in heard.as_array_mut().unwrap() {
        if let Some(message) = event.pointer("/error/message").cloned() {
            let message = message.as_str().unwrap().to_owned();
            *event = json!({ "error": message.strip_prefix(&prefix).unwrap() });
        }
    }
    assert_eq!(heard, expected, "{name}");
}

fn text(value: &str) -> Value {
    json!({ "type": "text", "value": value })
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "type": "tool_call", "toolName": name, "callId": id, "arguments": arguments })
}

fn usage(input: u64, output: u64) -> Value {
    json!({ "type": "usage", "inputTokens": input, "outputTokens": output })
}

fn end() -> Value {
    json!({ "type": "end" })
}

fn cut(reason: &str) -> Value {
    json!({ "type": "end", "reason": reason })
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta }] })
}

fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn fragment(fragment: Value) -> Value {
    delta(json!({ "tool_calls": [fragment] }))
}

#[tokio::test]
async fn chat() {
    let done = json!("[DONE]");
    let hi = || delta(json!({ "content": "Hi" }));
    let whole =
        |name: &str, arguments: Value| json!({ "function": { "name": name, "arguments": arguments } });
    let raw = "{\"path\": \"a.t";
    let begin = || fragment(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": raw } }));
    let silent = || fragment(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "" } }));
    let cases = [
        ("no [DONE]", vec![hi(), finish("stop")], json!([text("Hi"), end()])),
        ("no finish reason", vec![hi(), done.clone()], json!([text("Hi"), end()])),
        ("nothing at all", vec![finish("stop"), done.clone()], json!([end()])),
        (
            "null content",
            vec![delta(json!({ "content": null })), hi(), finish("stop")],
            json!([text("Hi"), end()]),
        ),
        (
            "parts",
            vec![
                delta(json!({ "content": [{ "type": "thinking" }, { "type": "text", "text": "Hi" }] })),
                finish("stop"),
            ],
            json!([text("Hi"), end()]),
        ),
        (
            "a message instead of deltas",
            vec![json!({ "choices": [{ "message": { "content": "Hi" }, "finish_reason": "stop" }] })],
            json!([text("Hi"), end()]),
        ),
        (
            "other choices",
            vec![json!({ "choices": [{ "index": 1, "delta": { "content": "No" } }] }), hi(), finish("stop")],
            json!([text("Hi"), end()]),
        ),
        (
            "usage all the time, and words after the end",
            vec![
                json!({ "choices": [{ "delta": { "content": "Hi" } }], "usage": { "prompt_tokens": 3, "completion_tokens": 1 } }),
                json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }], "usage": { "prompt_tokens": 3, "completion_tokens": 1 } }),
                hi(),
                finish("length"),
                json!({ "usage": { "prompt_tokens": 3, "completion_tokens": 2 } }),
                done.clone(),
                hi(),
            ],
            json!([text("Hi"), usage(3, 1), usage(3, 2), end()]),
        ),
        (
            "whole calls without index and id",
            vec![
                delta(
                    json!({ "tool_calls": [whole("f", json!({ "a": 1 })), whole("g", json!("{\"b\":2}"))] }),
                ),
                fragment(whole("f", json!(""))),
                finish("stop"),
            ],
            json!([
                call("call_3_1", "f", json!({ "a": 1 })),
                call("call_3_2", "g", json!({ "b": 2 })),
                call("call_3_3", "f", json!({})),
                end()
            ]),
        ),
        (
            "fragments without index, by id",
            vec![
                fragment(json!({ "id": "a", "function": { "name": "f", "arguments": "{\"x\"" } })),
                fragment(json!({ "id": "b", "function": { "name": "g", "arguments": "{\"y\"" } })),
                fragment(json!({ "id": "a", "function": { "arguments": ":1}" } })),
                fragment(json!({ "function": { "arguments": ":2}" } })),
                finish("tool_calls"),
            ],
            json!([call("a", "f", json!({ "x": 1 })), call("b", "g", json!({ "y": 2 })), end()]),
        ),
        (
            "every index is 0",
            vec![
                fragment(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{}" } })),
                fragment(
                    json!({ "index": 0, "id": "b", "function": { "name": "f", "arguments": "{\"y\"" } }),
                ),
                fragment(json!({ "index": 0, "function": { "name": null, "arguments": ":2}" } })),
                finish("tool_calls"),
            ],
            json!([call("a", "f", json!({})), call("b", "f", json!({ "y": 2 })), end()]),
        ),
        (
            "the same id twice, and id and name with every fragment",
            vec![
                fragment(
                    json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"x\"" } }),
                ),
                fragment(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": ":1}" } })),
                fragment(json!({ "index": 1, "id": "a", "function": { "name": "g", "arguments": "{}" } })),
                finish("tool_calls"),
            ],
            json!([call("a", "f", json!({ "x": 1 })), call("call_3_1", "g", json!({})), end()]),
        ),
        (
            "arguments that are no JSON, or no object",
            vec![
                fragment(
                    json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "path=a" } }),
                ),
                fragment(json!({ "index": 1, "id": "b", "function": { "name": "f", "arguments": "[1]" } })),
                finish("stop"),
            ],
            json!([call("a", "f", json!("path=a")), call("b", "f", json!([1])), end()]),
        ),
        (
            "cut in a call",
            vec![begin(), finish("length")],
            json!([call("a", "f", json!(raw)), cut("length")]),
        ),
        // Nothing was written yet, which is not the same as no arguments.
        (
            "cut before a call's arguments",
            vec![silent(), finish("length")],
            json!([call("a", "f", json!("")), cut("length")]),
        ),
        (
            "a call without arguments",
            vec![silent(), finish("tool_calls")],
            json!([call("a", "f", json!({})), end()]),
        ),
        ("filtered", vec![hi(), finish("content_filter")], json!([text("Hi"), cut("refusal")])),
        (
            "refused",
            vec![delta(json!({ "refusal": "I cannot." })), finish("stop"), done.clone()],
            json!([text("I cannot."), cut("refusal")]),
        ),
        (
            "an error in the middle of a call",
            vec![
                hi(),
                begin(),
                json!({ "error": { "message": "out of memory" } }),
                finish("stop"),
                done.clone(),
            ],
            json!([text("Hi"), { "error": "it reported an error in its answer: out of memory" }]),
        ),
        (
            "an error as a finish",
            vec![
                hi(),
                json!({ "choices": [{ "delta": {}, "finish_reason": "error", "error": { "message": "died" } }] }),
            ],
            json!([text("Hi"), { "error": "it reported an error in its answer: died" }]),
        ),
        (
            "no JSON",
            vec![hi(), json!("{oops")],
            json!([text("Hi"), { "error": "its answer is not understood: an event is not JSON (key must be a string at line 1 column 2): {oops" }]),
        ),
    ];
    for (name, events, expected) in cases {
        check(Wire::OpenAiChat, name, &events, expected).await;
    }
}

/// The server has not said that the answer is complete, so a call that is not must not look like one without
/// arguments.
#[tokio::test]
async fn a_done_without_a_finish_reason_ends_words_and_cuts_calls() {
    let begin = |index: u64, arguments: &str| {
        fragment(
            json!({ "index": index, "id": format!("c{index}"), "function": { "name": "f", "arguments": arguments } }),
        )
    };
    let cases = [
        (vec![delta(json!({ "content": "Hi" }))], json!([text("Hi"), end()])),
        (vec![begin(0, "{\"a\":1}")], json!([call("c0", "f", json!({ "a": 1 })), end()])),
        (
            vec![begin(0, "{\"a\":1}"), begin(1, ""), begin(2, "{\"a\":")],
            json!([
                call("c0", "f", json!({ "a": 1 })),
                call("c1", "f", json!("")),
                call("c2", "f", json!("{\"a\":")),
                end()
            ]),
        ),
    ];
    for (mut events, expected) in cases {
        let name = format!("{events:?}");
        events.push(json!("[DONE]"));
        check(Wire::OpenAiChat, &name, &events, expected).await;
    }
}

#[tokio::test]
async fn fragments_that_say_nothing_are_no_calls() {
    let nothing = [
        json!(null),
        json!({}),
        json!({ "index": 0, "id": null, "type": null, "function": { "name": null, "arguments": null } }),
        json!({ "index": 7, "id": "", "function": { "name": "", "arguments": "" } }),
        json!({ "index": 0, "type": "function", "extra_content": { "google": {} } }),
    ];
    let begin =
        || fragment(json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"x\"" } }));
    let rest = || fragment(json!({ "index": 0, "function": { "arguments": ":1}" } }));
    for nothing in nothing {
        let name = nothing.to_string();
        let alone = [fragment(nothing.clone()), delta(json!({ "content": "Hi" })), finish("stop")];
        check(Wire::OpenAiChat, &name, &alone, json!([text("Hi"), end()])).await;
        if nothing.get("extra_content").is_none() {
            let between = [begin(), fragment(nothing), rest(), finish("tool_calls")];
            check(Wire::OpenAiChat, &name, &between, json!([call("a", "f", json!({ "x": 1 })), end()])).await;
        }
    }
}

#[tokio::test]
async fn anthropic() {
    let start = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let tool = |id: &str, input: Value| json!({ "type": "tool_use", "id": id, "name": "f", "input": input });
    let input = |index: u64, json: &str| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": json } });
    let ends = |reason: &str| json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 5 } });
    let hi = || start(0, json!({ "type": "text", "text": "Hi" }));
    let over = || json!({ "type": "message_stop" });
    let cases = [
        ("no message_stop", vec![hi(), stop(0), ends("end_turn")], json!([text("Hi"), usage(0, 5), end()])),
        ("no stop reason", vec![hi(), stop(0), over()], json!([text("Hi"), end()])),
        (
            "interleaved blocks leave in their order",
            vec![
                start(0, tool("a", json!({}))),
                start(1, tool("b", json!({}))),
                input(1, "{\"y\":2"),
                input(0, "{\"x\":1"),
                input(1, "}"),
                stop(1),
                input(0, "}"),
                stop(0),
                ends("tool_use"),
            ],
            json!([call("a", "f", json!({ "x": 1 })), call("b", "f", json!({ "y": 2 })), usage(0, 5), end()]),
        ),
        (
            "the whole input at once, and none",
            vec![
                start(0, tool("a", json!({ "x": 1 }))),
                stop(0),
                start(1, tool("", json!({}))),
                stop(1),
                ends("tool_use"),
            ],
            json!([call("a", "f", json!({ "x": 1 })), call("call_3_1", "f", json!({})), usage(0, 5), end()]),
        ),
        (
            "cut in a call",
            vec![start(0, tool("a", json!({}))), input(0, "{\"x\": "), stop(0), ends("max_tokens"), over()],
            json!([call("a", "f", json!("{\"x\": ")), usage(0, 5), cut("length")]),
        ),
        (
            "cut before the arguments of the second call",
            vec![
                start(0, tool("a", json!({}))),
                input(0, ""),
                stop(0),
                start(1, tool("b", json!({}))),
                stop(1),
                ends("max_tokens"),
                over(),
            ],
            json!([call("a", "f", json!({})), call("b", "f", json!("")), usage(0, 5), cut("length")]),
        ),
        (
            "a thought that was cut is not kept",
            vec![
                start(0, json!({ "type": "thinking", "thinking": "hm", "signature": "" })),
                stop(0),
                ends("max_tokens"),
            ],
            json!([usage(0, 5), cut("length")]),
        ),
        (
            "blocks and deltas that nobody knows",
            vec![
                start(0, json!({ "type": "server_tool_use", "id": "s", "name": "web", "input": {} })),
                input(0, "{}"),
                stop(0),
                json!({ "type": "content_block_delta", "index": 9, "delta": { "type": "citations_delta" } }),
                json!({ "type": "content_block_stop" }),
                start(1, json!({ "type": "text", "text": "Hi" })),
                ends("stop_sequence"),
                over(),
            ],
            json!([text("Hi"), usage(0, 5), end()]),
        ),
        ("refused", vec![hi(), ends("refusal"), over()], json!([text("Hi"), usage(0, 5), cut("refusal")])),
        (
            "a full context",
            vec![hi(), ends("model_context_window_exceeded")],
            json!([text("Hi"), usage(0, 5), cut("length")]),
        ),
        (
            "an error in the middle",
            vec![
                hi(),
                json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
                over(),
            ],
            json!([text("Hi"), { "error": "it reported an error in its answer: Overloaded" }]),
        ),
    ];
    for (name, events, expected) in cases {
        check(Wire::Anthropic, name, &events, expected).await;
    }
}

#[tokio::test]
async fn responses() {
    let added = |index: u64, item: Value| json!({ "type": "response.output_item.added", "output_index": index, "item": item });
    let done = |index: u64, item: Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
    let item = |id: &str, status: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "f", "status": status, "arguments": arguments });
    let piece = |index: u64, delta: &str| json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": delta });
    let ended = |index: u64, all: &str| json!({ "type": "response.function_call_arguments.done", "output_index": index, "arguments": all });
    let says =
        |delta: &str| json!({ "type": "response.output_text.delta", "output_index": 0, "delta": delta });
    let completed = || json!({ "type": "response.completed", "response": {} });
    let incomplete = |reason: &str| json!({ "type": "response.incomplete", "response": { "incomplete_details": { "reason": reason }, "usage": { "input_tokens": 1, "output_tokens": 2 } } });
    let cases = [
        (
            "items that are only done",
            vec![
                done(0, json!({ "type": "message", "content": [{ "type": "output_text", "text": "Hi" }] })),
                done(1, item("a", "completed", "{\"x\":1}")),
                done(2, json!({ "type": "reasoning", "id": "rs_1", "summary": [] })),
                done(3, json!({ "type": "web_search_call" })),
                completed(),
            ],
            json!([text("Hi"), call("a", "f", json!({ "x": 1 })), end()]),
        ),
        (
            "a call that is done twice is one call",
            vec![
                added(0, item("a", "in_progress", "")),
                piece(0, "{}"),
                ended(0, "{}"),
                done(0, item("a", "completed", "{}")),
                completed(),
            ],
            json!([call("a", "f", json!({})), end()]),
        ),
        (
            "fragments for nobody, and a [DONE]",
            vec![piece(7, "{}"), ended(7, "{}"), says("Hi"), json!("[DONE]"), completed()],
            json!([text("Hi"), end()]),
        ),
        (
            "no arguments at all",
            vec![
                added(0, item("a", "in_progress", "")),
                ended(0, ""),
                done(0, item("a", "completed", "")),
                completed(),
            ],
            json!([call("a", "f", json!({})), end()]),
        ),
        (
            "cut before the arguments",
            vec![
                added(0, item("a", "in_progress", "")),
                ended(0, ""),
                done(0, item("a", "incomplete", "")),
                incomplete("max_output_tokens"),
            ],
            json!([call("a", "f", json!("")), usage(1, 2), cut("length")]),
        ),
        (
            "cut in the arguments",
            vec![added(0, item("a", "in_progress", "")), piece(0, "{\"x\""), incomplete("max_output_tokens")],
            json!([call("a", "f", json!("{\"x\"")), usage(1, 2), cut("length")]),
        ),
        (
            "filtered",
            vec![says("Hi"), incomplete("content_filter")],
            json!([text("Hi"), usage(1, 2), cut("refusal")]),
        ),
        (
            "refused",
            vec![json!({ "type": "response.refusal.delta", "delta": "No." }), completed()],
            json!([text("No."), cut("refusal")]),
        ),
        (
            "failed",
            vec![
                says("Hi"),
                json!({ "type": "response.failed", "response": { "error": { "code": "server_error", "message": "Broken" } } }),
                completed(),
            ],
            json!([text("Hi"), { "error": "it reported an error in its answer: Broken" }]),
        ),
        (
            "an error",
            vec![
                says("Hi"),
                json!({ "type": "error", "code": "rate_limit_exceeded", "message": "Slow", "param": null }),
            ],
            json!([text("Hi"), { "error": "it reported an error in its answer: Slow" }]),
        ),
    ];
    for (name, events, expected) in cases {
        check(Wire::OpenAiResponses, name, &events, expected).await;
    }
}
