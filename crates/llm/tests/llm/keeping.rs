//! What servers want back, and who must not get it.

use serde_json::{Map, Value, json};
use tgp_contract::{Block, ChatOptions, Message, ModelProvider, Role};
use tgp_llm::{HttpOptions, Wire, provider};

use crate::server::{Answer, Server};
use crate::support::{conversation, hello, once, options, play, recorded, remembered, user};

fn stream(events: &[Value]) -> Answer {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Answer::events(&body)
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta }] })
}

fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

/// The conversation after an answer: its calls have results.
fn next(before: &[Message], answer: Message) -> Vec<Message> {
    let results = answer.blocks.iter().filter_map(|block| match block {
        Block::ToolCall { call_id, .. } => {
            Some(Block::ToolResult { call_id: call_id.clone(), content: "ok".to_owned(), is_error: false })
        }
        _ => None,
    });
    let results = Message { role: Role::User, blocks: results.collect() };
    before.iter().cloned().chain([answer, results]).collect()
}

async fn tell(provider: &dyn ModelProvider, messages: &[Message]) -> Vec<Message> {
    let events = play(provider, conversation(messages.to_vec())).await.unwrap();
    next(messages, remembered(&events))
}

fn fragment(index: u64, id: &str, extra: Value) -> Value {
    json!({
        "index": index,
        "id": id,
        "function": { "name": "fs_read", "arguments": "{}" },
        "extra_content": extra,
    })
}

/// DeepSeek refuses a turn with calls whose thoughts are gone, Gemini a call without its signature.
#[tokio::test]
async fn thoughts_and_signatures_of_compatible_servers_go_back_where_they_stood() {
    let signature = json!({ "google": { "thought_signature": "SIG+/=" } });
    let with_calls = || {
        stream(&[
            delta(json!({ "role": "assistant", "content": null, "reasoning_content": "" })),
            delta(json!({ "content": null, "reasoning_content": "First " })),
            delta(json!({ "content": "", "reasoning_content": "this." })),
            delta(json!({ "content": "I look." })),
            delta(
                json!({ "tool_calls": [fragment(0, "a", signature.clone()), fragment(1, "b", json!(null))] }),
            ),
            delta(json!({ "tool_calls": [{ "index": 1, "function": { "arguments": "" } }] })),
            finish("tool_calls"),
        ])
    };
    let last = || {
        stream(&[
            delta(json!({ "reasoning_content": "Then that." })),
            delta(json!({ "content": "Done." })),
            finish("stop"),
        ])
    };
    let good = || stream(&[delta(json!({ "content": "Hi" })), finish("stop")]);
    let server = Server::start(vec![last(), with_calls(), last(), good(), good()]).await;
    let provider = once(Wire::OpenAiChat, &server.base);
    let mut messages = vec![user("Hello")];
    for question in ["Look around", "", "Thanks"] {
        messages = tell(&*provider, &messages).await;
        if !question.is_empty() {
            messages.push(user(question));
        }
    }
    tell(&*provider, &messages).await;
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "fs_read", "arguments": "{}" } });
    let mut signed = call("a");
    signed["extra_content"] = signature.clone();
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "ok" });
    assert_eq!(
        server.requests()[3].body["messages"],
        json!([
            { "role": "system", "content": "You are careful." },
            { "role": "user", "content": "Hello" },
            // No call belongs to this turn, so its thought is not needed.
            { "role": "assistant", "content": "Done." },
            { "role": "user", "content": "Look around" },
            {
                "role": "assistant",
                "content": "I look.",
                "reasoning_content": "First this.",
                "tool_calls": [signed, call("b")],
            },
            result("a"),
            result("b"),
            { "role": "assistant", "content": "Done.", "reasoning_content": "Then that." },
            { "role": "user", "content": "Thanks" },
        ])
    );
    // Another server that speaks like it gets the words and the calls.
    let other = Server::start(vec![good()]).await;
    tell(&*once(Wire::OpenAiChat, &other.base), &messages).await;
    let body = other.requests()[0].body.to_string();
    for secret in ["reasoning_content", "First this.", "extra_content", "SIG"] {
        assert!(!body.contains(secret), "{secret} in {body}");
    }
    assert!(body.contains("I look."), "{body}");
}

#[tokio::test]
async fn thoughts_do_not_go_to_another_model() {
    let chat = [
        delta(json!({ "reasoning_content": "gAAAA" })),
        delta(json!({ "tool_calls": [fragment(0, "a", json!({ "google": "EqQBCgIYAh" }))] })),
        finish("tool_calls"),
    ];
    let cases = [
        (Wire::OpenAiChat, stream(&chat)),
        (Wire::OpenAiResponses, Answer::events(&recorded("responses"))),
        (Wire::Anthropic, Answer::events(&recorded("anthropic"))),
    ];
    for (wire, answer) in cases {
        let server = Server::start(vec![answer.clone(), answer.clone(), answer]).await;
        let provider = once(wire, &server.base);
        let messages = tell(&*provider, &[user("Hello")]).await;
        for (model, is_kept) in [("m-1", true), ("m-2", false)] {
            let question = ChatOptions { model: model.to_owned(), ..conversation(messages.clone()) };
            play(&*provider, question).await.unwrap();
            let body = server.requests().pop().unwrap().body.to_string();
            for thought in ["gAAAA", "EqQBCgIYAh", "rs_1", "fc_1", "msg_1"] {
                assert!(is_kept || !body.contains(thought), "{wire:?}: {thought} in {body}");
            }
            assert_eq!(body.contains("gAAAA") || body.contains("EqQBCgIYAh"), is_kept, "{wire:?}: {body}");
            assert!(body.contains("fs_read"), "{body}");
        }
    }
}

/// The API asks for the thought that an id belongs to; one that it did not encrypt cannot be sent.
#[tokio::test]
async fn no_id_follows_a_thought_that_is_lost() {
    let event = |kind: &str, index: u64, item: &Value| json!({ "type": format!("response.output_item.{kind}"), "output_index": index, "item": item });
    let items = [
        json!({ "type": "reasoning", "id": "rs_kept", "summary": [], "encrypted_content": "E" }),
        json!({ "type": "function_call", "id": "fc_kept", "call_id": "a", "name": "f", "arguments": "{}" }),
        json!({ "type": "reasoning", "id": "rs_lost", "summary": [] }),
        json!({ "type": "message", "id": "msg_lost", "content": [{ "type": "output_text", "text": "Hm." }] }),
        json!({ "type": "function_call", "id": "fc_lost", "call_id": "b", "name": "f", "arguments": "{}" }),
        json!({ "type": "reasoning", "id": "rs_back", "summary": [], "encrypted_content": "F" }),
        json!({ "type": "function_call", "id": "fc_back", "call_id": "c", "name": "f", "arguments": "{}" }),
    ];
    let mut events = Vec::new();
    for (index, item) in (0..).zip(&items) {
        events.extend([event("added", index, item), event("done", index, item)]);
    }
    events.push(json!({ "type": "response.completed", "response": {} }));
    let server = Server::start(vec![stream(&events), stream(&events)]).await;
    let provider = once(Wire::OpenAiResponses, &server.base);
    let messages = tell(&*provider, &[user("Hello")]).await;
    tell(&*provider, &messages).await;
    let input = server.requests()[1].body["input"].clone();
    let ids: Vec<(&str, Option<&str>)> = input.as_array().unwrap()[1..]
        .iter()
        .map(|item| (item["type"].as_str().unwrap(), item.get("id").and_then(Value::as_str)))
        .collect();
    assert_eq!(
        ids,
        [
            ("reasoning", Some("rs_kept")),
            ("function_call", Some("fc_kept")),
            ("message", None),
            ("function_call", None),
            ("reasoning", Some("rs_back")),
            ("function_call", Some("fc_back")),
            ("function_call_output", None),
            ("function_call_output", None),
            ("function_call_output", None),
        ]
    );
}

/// How often `cache_control` occurs in a value, and where.
fn marks(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                if name == "cache_control" {
                    assert_eq!(inner, &json!({ "type": "ephemeral" }));
                    found.push(path.to_owned());
                }
                marks(inner, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                marks(inner, &format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn what_repeats_is_marked_for_the_cache() {
    let stream = recorded("anthropic");
    let server =
        Server::start(vec![Answer::events(&stream), Answer::events(&stream), Answer::events(&stream)]).await;
    let provider = once(Wire::Anthropic, &server.base);
    let messages = tell(&*provider, &[user("Hello")]).await;
    tell(&*provider, &messages).await;
    let bare = ChatOptions { system: String::new(), tools: Vec::new(), messages: Vec::new(), ..hello() };
    play(&*provider, bare).await.unwrap();
    let places: Vec<Vec<String>> = server
        .requests()
        .iter()
        .map(|request| {
            let mut found = Vec::new();
            marks(&request.body, "", &mut found);
            found
        })
        .collect();
    assert_eq!(
        places,
        [
            vec!["/system/0", "/messages/0/content/0", "/tools/0"],
            vec!["/system/0", "/messages/2/content/1", "/tools/0"],
            vec![],
        ]
    );
}

fn refusal(message: &str) -> Answer {
    let body = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": message } });
    Answer::status(400, &[("content-type", "application/json")], &body.to_string())
}

#[tokio::test]
async fn a_limit_that_is_too_large_for_a_model_is_learnt() {
    let named = "max_tokens: 32000 > 4096, which is the maximum allowed number of output tokens for c-3-haiku-20240307";
    let unnamed = "max_tokens exceeds what this model can write";
    let context =
        "input length and `max_tokens` exceed context limit: 188240 + 32000 > 200000, decrease one of them";
    let good = || Answer::events(&recorded("anthropic"));
    let free = |model: &str| ChatOptions { max_output_tokens: None, model: model.to_owned(), ..hello() };
    for (message, limit) in [(named, 4096), (unnamed, 8192), (context, 8192)] {
        let server = Server::start(vec![refusal(message), good(), good(), good()]).await;
        let provider = once(Wire::Anthropic, &server.base);
        for model in ["m-1", "m-1", "m-2"] {
            play(&*provider, free(model)).await.unwrap();
        }
        let asked: Vec<Value> =
            server.requests().iter().map(|request| request.body["max_tokens"].clone()).collect();
        assert_eq!(asked, [json!(32000), json!(limit), json!(limit), json!(32000)], "{message}");
    }
    // What does not concern the limit, or is not ours to change, is reported at once; and no request is
    // repeated forever.
    let budget = "`max_tokens` must be greater than `thinking.budget_tokens`";
    let body = Map::from_iter([("max_tokens".to_owned(), json!(64000))]);
    let cases = [
        (free("m-1"), Map::new(), vec![refusal(budget)]),
        (hello(), Map::new(), vec![refusal(named)]),
        (free("m-1"), body, vec![refusal("max_tokens: 64000 > 4096, which is the maximum")]),
        (free("m-1"), Map::new(), vec![refusal(unnamed), refusal(unnamed)]),
    ];
    for (question, body, answers) in cases {
        let count = answers.len();
        let server = Server::start(answers).await;
        let options = HttpOptions { body, ..options(Wire::Anthropic, &server.base) };
        let error = play(&*provider("mine", options).unwrap(), question).await.unwrap_err();
        assert_eq!((&error.details["status"], server.requests().len()), (&json!(400), count), "{error}");
        assert_eq!(error.help_of(), Some("set llm.maxOutputTokens to what this model can write"));
    }
}

#[tokio::test]
async fn fields_of_the_user_are_sent_and_win_but_for_ours() {
    let body = json!({
        "reasoning": { "effort": "high" },
        "temperature": 1,
        "model": "other", "messages": [], "input": [], "tools": [], "stream": false,
    });
    for (name, wire) in crate::support::WIRES {
        let server =
            Server::start(vec![Answer::events(&recorded(name)), Answer::events(&recorded(name))]).await;
        play(&*once(wire, &server.base), hello()).await.unwrap();
        let options = HttpOptions { body: body.as_object().unwrap().clone(), ..options(wire, &server.base) };
        play(&*provider("mine", options).unwrap(), hello()).await.unwrap();
        let requests = server.requests();
        let mut expected = requests[0].body.clone();
        expected["reasoning"] = json!({ "effort": "high" });
        expected["temperature"] = json!(1);
        assert_eq!(requests[1].body, expected, "{name}");
    }
}
