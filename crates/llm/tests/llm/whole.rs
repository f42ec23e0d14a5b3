//! Servers that do not stream: everything comes at once.

use serde_json::{Value, json};
use tgp_llm::Wire;

use crate::server::Answer;
use crate::support::heard;

fn at_once(body: &Value) -> Answer {
    Answer::status(200, &[("content-type", "application/json; charset=utf-8")], &body.to_string())
}

fn label(wire: Wire) -> &'static str {
    if wire == Wire::Anthropic { "http://server/m-1" } else { "http://server/v1/m-1" }
}

/// A text and a call, and then the end.
fn expected(opaque: &[Value], reason: Option<&str>) -> Value {
    let mut events = opaque.to_vec();
    events.push(json!({ "type": "text", "value": "Hi" }));
    events.push(json!({ "type": "tool_call", "toolName": "f", "callId": "a", "arguments": { "x": 1 } }));
    events.push(json!({ "type": "usage", "inputTokens": 3, "outputTokens": 2 }));
    events.push(reason.map_or(json!({ "type": "end" }), |reason| json!({ "type": "end", "reason": reason })));
    events.into()
}

fn opaque(wire: Wire, value: Value) -> Value {
    json!({ "type": "opaque", "provider": label(wire), "value": value })
}

fn response(status: &str, details: Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "status": status, "incomplete_details": details,
        "output": [
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E" },
            { "type": "message", "content": [{ "type": "output_text", "text": "Hi" }] },
            { "type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"x\":1}", "status": "completed" },
        ],
        "usage": { "input_tokens": 3, "output_tokens": 2 },
    })
}

fn thought() -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E" })
}

#[tokio::test]
async fn a_whole_answer_is_heard_as_if_it_had_been_streamed() {
    let call =
        json!({ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{\"x\":1}" } });
    let chat = |finish: &str| {
        json!({
            "object": "chat.completion",
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": "Hi", "reasoning_content": "hm", "tool_calls": [call] },
                "finish_reason": finish,
            }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 2 },
        })
    };
    let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "S" });
    let message = |stop: &str| {
        json!({
            "type": "message",
            "content": [thinking, { "type": "text", "text": "Hi" }, { "type": "tool_use", "id": "a", "name": "f", "input": { "x": 1 } }],
            "stop_reason": stop,
            "usage": { "input_tokens": 3, "output_tokens": 2 },
        })
    };
    let (completions, responses, messages) = (Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic);
    let in_chat = [opaque(completions, json!({ "type": "reasoning_content", "reasoning_content": "hm" }))];
    let in_responses = [opaque(responses, thought())];
    let full = json!({ "reason": "max_output_tokens" });
    let cases = [
        (completions, chat("tool_calls"), expected(&in_chat, None)),
        (completions, chat("length"), expected(&in_chat, Some("length"))),
        (responses, response("completed", json!(null)), expected(&in_responses, None)),
        (responses, response("incomplete", full), expected(&in_responses, Some("length"))),
    ];
    for (wire, body, expected) in cases {
        assert_eq!(heard(wire, at_once(&body)).await.unwrap(), expected, "{body}");
    }
    // This API reports the cost first.
    for (stop, reason) in [("tool_use", None), ("max_tokens", Some("length"))] {
        let mut expected = expected(&[opaque(messages, thinking.clone())], reason);
        let events = expected.as_array_mut().unwrap();
        let usage = events.remove(3);
        events.insert(0, usage);
        assert_eq!(heard(messages, at_once(&message(stop))).await.unwrap(), expected, "{stop}");
    }
}

/// Some gateways stream one event, the last one.
#[tokio::test]
async fn the_last_event_of_responses_is_enough() {
    let only = |kind: &str, response: Value| {
        Answer::events(&format!("data: {}\n\n", json!({ "type": kind, "response": response })))
    };
    let opaque = [opaque(Wire::OpenAiResponses, thought())];
    let completed = only("response.completed", response("completed", json!(null)));
    assert_eq!(heard(Wire::OpenAiResponses, completed).await.unwrap(), expected(&opaque, None));
    let details = json!({ "reason": "max_output_tokens" });
    let incomplete = only("response.incomplete", response("incomplete", details));
    assert_eq!(heard(Wire::OpenAiResponses, incomplete).await.unwrap(), expected(&opaque, Some("length")));
    // What was streamed is not said twice.
    let said = json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "Hi" });
    let last = json!({ "type": "response.completed", "response": response("completed", json!(null)) });
    let events = Answer::events(&format!("data: {said}\n\ndata: {last}\n\n"));
    let texts = heard(Wire::OpenAiResponses, events).await.unwrap();
    assert_eq!(texts[0], json!({ "type": "text", "value": "Hi" }));
    assert_eq!(texts.as_array().unwrap().len(), 3, "{texts}");
}

#[tokio::test]
async fn a_whole_answer_that_is_none_is_told() {
    let cases = [
        (Wire::OpenAiChat, json!({ "choices": [] }), "answered with `application/json`"),
        (
            Wire::OpenAiChat,
            json!({ "error": { "message": "overloaded" } }),
            "reported an error in its answer: overloaded",
        ),
        (Wire::OpenAiResponses, json!({ "output": [], "status": "in_progress" }), "not a finished answer"),
        (
            Wire::OpenAiResponses,
            json!({ "output": [], "status": "failed", "error": { "message": "broken" } }),
            "reported an error in its answer: broken",
        ),
        (
            Wire::Anthropic,
            json!({ "content": [{ "type": "text", "text": "Hi" }] }),
            "answered with `application/json`",
        ),
        (
            Wire::Anthropic,
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
            "reported an error in its answer: Overloaded",
        ),
    ];
    for (wire, body, expected) in cases {
        let error = heard(wire, at_once(&body)).await.unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
}
