//! What exactly is sent: every request of a conversation, the lists of models, and what must go back unchanged.

use serde_json::{Value, json};
use tgp_contract::{Block, ChatOptions, Code, Message, ModelInfo, Role};
use tgp_llm::{HttpOptions, Wire, provider};
use tgp_net::Secret;

use crate::server::{Answer, Request, Server};
use crate::support::{
    KEY, WIRES, conversation, golden, hello, label, once, options, patient, play, recorded, remembered, user,
};

/// A whole request but for the address and the length.
fn shown(request: &Request) -> Value {
    let headers: serde_json::Map<String, Value> = request
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "host" | "content-length"))
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    json!({ "line": request.line, "headers": headers, "body": request.body })
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn call(id: &str, name: &str, arguments: Value) -> Block {
    Block::ToolCall { call_id: id.to_owned(), tool_name: name.to_owned(), arguments }
}

fn result(id: &str, content: &str, is_error: bool) -> Block {
    Block::ToolResult { call_id: id.to_owned(), content: content.to_owned(), is_error }
}

fn opaque(provider: &str, value: Value) -> Block {
    Block::Opaque { provider: provider.to_owned(), value }
}

/// A conversation with everything that can be in one, also what should not.
fn everything(label: &str) -> ChatOptions {
    let said = |role, blocks| Message { role, blocks };
    conversation(vec![
        user("Do it."),
        said(Role::User, vec![text("Soon."), text(" \n")]),
        said(
            Role::Assistant,
            vec![
                opaque("other", json!({ "type": "thinking", "thinking": "not mine", "signature": "x" })),
                opaque(label, json!({ "type": "thinking", "thinking": "well", "signature": "sig" })),
                opaque(
                    label,
                    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" }),
                ),
                opaque(label, json!("what is this")),
                text("I "),
                text("read."),
                opaque(label, json!({ "type": "function_call", "id": "fc_1", "call_id": "call_a" })),
                call("call_a", "fs_read", json!({ "path": "a.ts" })),
                call("call:b", "fs.read file", json!("{\"path\": \"b.t")),
                call("call_c", "", json!([1, 2])),
                call("call_d", "now", json!(null)),
            ],
        ),
        said(Role::User, vec![text("By the way."), result("call_a", "let a = 1;", false)]),
        said(Role::User, vec![result("call:b", "EVALIDATION: no JSON", true), result("call_c", "", true)]),
        said(Role::User, vec![result("call_d", "12:00", false)]),
        said(Role::Assistant, vec![text("And then?")]),
        said(Role::Assistant, vec![text("Tell me.")]),
        said(Role::User, vec![]),
        user("Go on."),
        said(
            Role::Assistant,
            vec![
                opaque(label, json!({ "type": "thinking", "thinking": "cut", "signature": "off" })),
                opaque(label, json!({ "type": "reasoning", "id": "rs_9", "encrypted_content": "cut" })),
            ],
        ),
        user("You stopped."),
    ])
}

#[tokio::test]
async fn a_request_has_exactly_these_bytes() {
    for (name, wire) in WIRES {
        let server = Server::start(vec![Answer::events(&recorded(name))]).await;
        play(&*once(wire, &server.base), everything(&label(wire, &server.base))).await.unwrap();
        golden(&format!("{name}_request"), &shown(&server.requests()[0]));
    }
}

#[tokio::test]
async fn the_smallest_request_leaves_out_what_was_not_said() {
    let smallest = ChatOptions {
        system: String::new(),
        tools: Vec::new(),
        max_output_tokens: None,
        temperature: None,
        ..hello()
    };
    let mut bodies = Vec::new();
    for (name, wire) in WIRES {
        let server = Server::start(vec![Answer::events(&recorded(name))]).await;
        let options = HttpOptions { key: None, ..options(wire, &server.base) };
        play(&*provider("mine", options).unwrap(), smallest.clone()).await.unwrap();
        let request = &server.requests()[0];
        assert_eq!((request.header("authorization"), request.header("x-api-key")), (None, None), "{name}");
        bodies.push(request.body.clone());
    }
    let hello = |kind: &str| json!([{ "type": kind, "text": "Hello" }]);
    assert_eq!(
        bodies,
        [
            json!({
                "model": "m-1",
                "messages": [{ "role": "user", "content": "Hello" }],
                "stream": true,
                "stream_options": { "include_usage": true },
            }),
            json!({
                "model": "m-1",
                "input": [{ "type": "message", "role": "user", "content": hello("input_text") }],
                "store": false,
                "include": ["reasoning.encrypted_content"],
                "stream": true,
            }),
            json!({
                "model": "m-1",
                "max_tokens": 32000,
                "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Hello", "cache_control": { "type": "ephemeral" } }] }],
                "stream": true,
            }),
        ]
    );
}

/// What the model said goes back with its results, and its own blocks as they came, at their places.
#[tokio::test]
async fn what_the_model_said_goes_back() {
    for (name, wire) in WIRES {
        let stream = recorded(name);
        let server = Server::start(vec![Answer::events(&stream), Answer::events(&stream)]).await;
        let provider = once(wire, &server.base);
        let answer = remembered(&play(&*provider, hello()).await.unwrap());
        let results = answer.blocks.iter().filter_map(|block| match block {
            Block::ToolCall { call_id, .. } => Some(result(call_id, &format!("result of {call_id}"), false)),
            _ => None,
        });
        let results = Message { role: Role::User, blocks: results.collect() };
        // A session is kept as JSON between two turns.
        let kept: Message = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
        let next =
            ChatOptions { turn: 4, ..conversation(vec![user("Hello"), kept.clone(), results.clone()]) };
        play(&*provider, next).await.unwrap();
        let request = server.requests().remove(1);
        golden(&format!("{name}_second_request"), &request.body);

        // Another provider gets the words and the calls, and none of the blocks.
        let server = Server::start(vec![Answer::events(&stream)]).await;
        let other = tgp_llm::provider("other", options(wire, &server.base)).unwrap();
        play(&*other, conversation(vec![user("Hello"), kept, results])).await.unwrap();
        let body = server.requests()[0].body.to_string();
        for secret in ["thinking", "\"reasoning\"", "rs_1", "fc_1", "msg_1", "EqQBCgIYAh", "gAAAA"] {
            assert!(!body.contains(secret), "{name}: {secret} in {body}");
        }
        assert!(body.contains("fs_read"), "{name}");
    }
}

/// Models without thoughts refuse to be asked for them; that is learnt once.
#[tokio::test]
async fn a_model_that_cannot_encrypt_its_thoughts_is_asked_without() {
    let refusal = Answer::status(
        400,
        &[("content-type", "application/json")],
        r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}"#,
    );
    let good = || Answer::events(&recorded("responses"));
    let server = Server::start(vec![refusal.clone(), good(), good(), good(), refusal.clone(), refusal]).await;
    let provider = once(Wire::OpenAiResponses, &server.base);
    play(&*provider, hello()).await.unwrap();
    play(&*provider, hello()).await.unwrap();
    play(&*provider, ChatOptions { model: "m-2".to_owned(), ..hello() }).await.unwrap();
    let asked: Vec<bool> =
        server.requests().iter().map(|request| request.body.get("include").is_some()).collect();
    assert_eq!(asked, [true, false, false, true]);
    // A server that refuses it even so is not asked forever.
    let error = play(&*provider, ChatOptions { model: "m-3".to_owned(), ..hello() }).await.unwrap_err();
    assert_eq!((&error.details["status"], &error.details["attempts"]), (&400.into(), &2.into()));
}

#[tokio::test]
async fn models_are_listed() {
    let openai =
        r#"{"object":"list","data":[{"id":"m-1","object":"model"},{"object":"model"},{"id":"m-2"}]}"#;
    let first = r#"{"data":[{"id":"c-1","type":"model"}],"has_more":true,"first_id":"c-1","last_id":"c-1"}"#;
    let second = r#"{"data":[{"id":"c-2","type":"model"}],"has_more":false,"last_id":"c-2"}"#;
    let answer = |body: &str| Answer::status(200, &[("content-type", "application/json")], body);
    let busy = || Answer::status(503, &[], "");
    let cases = [
        (
            Wire::OpenAiChat,
            vec![busy(), answer(openai)],
            vec!["m-1", "m-2"],
            vec!["GET /v1/models HTTP/1.1"; 2],
        ),
        (Wire::OpenAiResponses, vec![answer(openai)], vec!["m-1", "m-2"], vec!["GET /v1/models HTTP/1.1"]),
        (Wire::OpenAiChat, vec![answer("{\"data\":null}")], vec![], vec!["GET /v1/models HTTP/1.1"]),
        (
            Wire::Anthropic,
            vec![answer(first), answer(second)],
            vec!["c-1", "c-2"],
            vec!["GET /v1/models?limit=1000 HTTP/1.1", "GET /v1/models?limit=1000&after_id=c-1 HTTP/1.1"],
        ),
    ];
    for (wire, answers, names, lines) in cases {
        let server = Server::start(answers).await;
        let models = patient(wire, &server.base, 2).models().await.unwrap();
        let expected: Vec<ModelInfo> =
            names.into_iter().map(|name| ModelInfo { name: name.to_owned() }).collect();
        assert_eq!(models, expected);
        let requests = server.requests();
        assert_eq!(requests.iter().map(|request| request.line.as_str()).collect::<Vec<_>>(), lines);
        let bearer = format!("Bearer {KEY}");
        let key =
            if wire == Wire::Anthropic { ("x-api-key", KEY) } else { ("authorization", bearer.as_str()) };
        assert!(requests.iter().all(|request| request.header(key.0) == Some(key.1)), "{requests:?}");
    }
    for wrong in ["<html>", "[]", "{\"data\":7}"] {
        let server = Server::start(vec![answer(wrong)]).await;
        let error = once(Wire::OpenAiChat, &server.base).models().await.unwrap_err();
        assert!(error.message.contains("list of models"), "{error}");
    }
}

#[tokio::test]
async fn bases_and_headers_are_taken_as_people_write_them() {
    let cases = [
        (Wire::OpenAiChat, "/v1/", "POST /v1/chat/completions HTTP/1.1"),
        (Wire::OpenAiChat, "", "POST /chat/completions HTTP/1.1"),
        (Wire::OpenAiChat, "/a/v1?api-version=7", "POST /a/v1/chat/completions?api-version=7 HTTP/1.1"),
        (Wire::OpenAiResponses, "/v1", "POST /v1/responses HTTP/1.1"),
        (Wire::Anthropic, "/v1", "POST /v1/messages HTTP/1.1"),
        (Wire::Anthropic, "/proxy/", "POST /proxy/v1/messages HTTP/1.1"),
    ];
    for (wire, path, line) in cases {
        let server = Server::start(vec![Answer::status(418, &[], "")]).await;
        let mut options = options(wire, &server.base);
        options.base_url = Some(format!("{}{path}", server.base));
        options.headers = vec![("Anthropic-Version".to_owned(), "2030-01-01".to_owned())];
        play(&*provider("mine", options).unwrap(), hello()).await.unwrap_err();
        let request = &server.requests()[0];
        assert_eq!(request.line, line);
        assert_eq!(request.header("anthropic-version"), Some("2030-01-01"));
    }
}

#[test]
fn what_cannot_be_sent_is_a_mistake_of_the_configuration() {
    let base = |url: &str| HttpOptions {
        base_url: Some(url.to_owned()),
        ..options(Wire::OpenAiChat, "http://localhost")
    };
    let key = |key: &str| HttpOptions { key: Some(Secret::new(key)), ..HttpOptions::new(Wire::Anthropic) };
    let header = |name: &str, value: &str| HttpOptions {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..HttpOptions::new(Wire::OpenAiChat)
    };
    let cases = [
        (base("localhost:8080"), "neither http nor https"),
        (base("what"), "is not a URL"),
        (base("ftp://localhost"), "neither http nor https"),
        (base("https://me:secret-word@localhost"), "carries a user or a password"),
        (base("http://192.168.0.7:8000/v1"), "plain http to another machine"),
        (key(""), "is empty"),
        (key("secret-word\n"), "has characters that no key has"),
        (key("secret-wörd\u{0}"), "has characters that no key has"),
        (header("a b", "secret-word"), "header `a b`"),
        (header("fine", "secret-word\r\nx: y"), "header `fine`"),
    ];
    for (options, expected) in cases {
        let shown = format!("{options:?}");
        let error = provider("mine", options).err().unwrap();
        assert_eq!(error.code, Code::Config, "{expected}");
        assert!(error.message.contains(expected), "{error}");
        assert!(error.help_of().is_some(), "{error}");
        assert!(!format!("{error:?}").contains("secret-w"), "{error:?}");
        if options_have_no_url_secret(expected) {
            assert!(!shown.contains("secret-w"), "{shown}");
        }
    }
    // Without a key nothing can be read on the way but the words.
    assert!(provider("mine", HttpOptions { key: None, ..base("http://192.168.0.7:8000/v1") }).is_ok());
}

/// A URL is shown as it was written; that one with a password in it is refused is the point of its case.
fn options_have_no_url_secret(expected: &str) -> bool {
    !expected.contains("a password")
}
