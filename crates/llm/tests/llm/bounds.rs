//! What a server can make grow has an end.

use serde_json::json;
use tgp_contract::{Code, StreamEvent, ToolError};
use tgp_llm::Wire;

use crate::server::{Answer, Server, Step};
use crate::support::{hello, once, play};

const MEGABYTE: usize = 1024 * 1024;

async fn failure(wire: Wire, answer: Answer) -> ToolError {
    let mut server = Server::start(vec![answer]).await;
    let error = match play(&*once(wire, &server.base), hello()).await {
        Err(error) => error,
        Ok(mut events) => match events.pop() {
            Some(StreamEvent::Error { error }) => {
                assert!(
                    !events.iter().any(|event| matches!(event, StreamEvent::ToolCall { .. })),
                    "{events:?}"
                );
                error
            }
            other => panic!("{other:?}"),
        },
    };
    server.departure().await;
    assert_eq!(error.code, Code::Provider);
    error
}

fn data(value: &serde_json::Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

#[tokio::test]
async fn an_event_without_end_is_left() {
    for flood in [vec![b'x'; MEGABYTE], b"data: x\n".repeat(10_000), b": comment\n".repeat(10_000)] {
        let answer = Answer::events("data: ").then(Step::Flood(flood));
        let error = failure(Wire::OpenAiChat, answer).await;
        assert!(error.message.contains("an event (in bytes)"), "{error}");
        assert_eq!(error.details["retryable"], false);
    }
}

#[tokio::test]
async fn a_long_answer_of_small_events_is_heard() {
    let piece = "x".repeat(100_000);
    let event = data(&json!({ "choices": [{ "delta": { "content": piece } }] }));
    let answer =
        Answer::stream().then(Step::Send(event.repeat(120))).then(Step::Send(b"data: [DONE]\n\n".to_vec()));
    let server = Server::start(vec![answer]).await;
    let events = play(&*once(Wire::OpenAiChat, &server.base), hello()).await.unwrap();
    assert_eq!((events.len(), events.last()), (121, Some(&StreamEvent::End { reason: None })));
}

#[tokio::test]
async fn arguments_without_end_are_left() {
    let fragment = "x".repeat(MEGABYTE / 2);
    let chat = json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "f", "arguments": fragment } }] } }] });
    let begin = json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "function_call", "call_id": "a", "name": "f" } });
    let responses =
        json!({ "type": "response.function_call_arguments.delta", "output_index": 0, "delta": fragment });
    let start = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "a", "name": "f", "input": {} } });
    let anthropic = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": fragment } });
    for (wire, first, again) in [
        (Wire::OpenAiChat, Vec::new(), chat),
        (Wire::OpenAiResponses, data(&begin), responses),
        (Wire::Anthropic, data(&start), anthropic),
    ] {
        let answer = Answer::stream().then(Step::Send(first)).then(Step::Flood(data(&again)));
        let error = failure(wire, answer).await;
        assert!(error.message.contains("the arguments of a call"), "{error}");
    }
}

#[tokio::test]
async fn thoughts_without_end_are_left() {
    let start = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "" } });
    let delta = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "x".repeat(MEGABYTE) } });
    let answer = Answer::stream().then(Step::Send(data(&start))).then(Step::Flood(data(&delta)));
    let error = failure(Wire::Anthropic, answer).await;
    assert!(error.message.contains("a block"), "{error}");
}

#[tokio::test]
async fn calls_without_end_are_left() {
    // No index, a new name: each one is another call.
    let call = json!({ "choices": [{ "delta": { "tool_calls": [{ "function": { "name": "f", "arguments": "{}" } }] } }] });
    let error = failure(Wire::OpenAiChat, Answer::stream().then(Step::Flood(data(&call)))).await;
    assert!(error.message.contains("the number of calls"), "{error}");
}

#[tokio::test]
async fn bodies_without_end_are_left() {
    let head = |status: u16| format!("HTTP/1.1 {status} X\r\nconnection: close\r\n\r\n");
    let refusal = Answer::raw(head(400)).then(Step::Flood(vec![b'y'; MEGABYTE]));
    let error = failure(Wire::OpenAiChat, refusal).await;
    assert!(error.message.contains("status 400: yyy") && error.message.len() < 1000, "{error}");

    let list = Answer::raw(head(200)).then(Step::Flood(vec![b' '; MEGABYTE]));
    let server = Server::start(vec![list]).await;
    let error = once(Wire::OpenAiChat, &server.base).models().await.unwrap_err();
    assert!(error.message.contains("the list of models"), "{error}");

    // A list whose pages never end.
    let page = r#"{"data":[{"id":"c"}],"has_more":true,"last_id":"c"}"#;
    let server = Server::start(vec![Answer::status(200, &[], page); 20]).await;
    let models = once(Wire::Anthropic, &server.base).models().await.unwrap();
    assert_eq!((models.len(), server.requests().len()), (10, 10));
}
