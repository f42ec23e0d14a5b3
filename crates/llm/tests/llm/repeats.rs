//! What is asked again in another way or after a pause, what a broken answer says of itself, and what a cache has saved.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tgp_contract::{REPEATABLE_DETAIL, StreamEvent, Usage};
use tgp_llm::{RetryNotice, Wire, provider};

use crate::server::{Answer, Server};
use crate::support::{hello, options, patient, play};

const HELLO: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn has_stream_options(body: &Value) -> bool {
    body.get("stream_options").is_some()
}

#[tokio::test]
async fn bug_a_server_that_rejects_stream_options_is_asked_without_them() {
    let named = json!({ "error": { "message": "Unknown parameter", "param": "stream_options" } });
    let told = json!({ "error": { "message": "stream_options: Extra inputs are not permitted" } });
    let schema =
        json!({ "detail": [{ "loc": ["body", "stream_options"], "msg": "extra fields not permitted" }] });
    let inner = json!({ "message": "unrecognised field include_usage" });
    let other = json!({ "error": { "message": "the model does not exist" } });
    for (status, refusal, is_learnt) in
        [(400, named, true), (400, told, true), (422, schema, true), (400, inner, true), (400, other, false)]
    {
        let refused = Answer::status(status, &[], &refusal.to_string());
        let server = Server::start(vec![refused, Answer::events(HELLO), Answer::events(HELLO)]).await;
        // A lesson is not an attempt that has to be waited for, so a provider that makes one learns, too.
        let provider = patient(Wire::OpenAiChat, &server.base, 1);
        assert_eq!(play(&*provider, hello()).await.is_ok(), is_learnt, "{refusal}");
        if is_learnt {
            play(&*provider, hello()).await.unwrap();
        }
        let asked: Vec<bool> =
            server.requests().iter().map(|request| has_stream_options(&request.body)).collect();
        assert_eq!(asked, if is_learnt { vec![true, false, false] } else { vec![true] }, "{refusal}");
    }
}

#[tokio::test]
async fn stream_options_of_the_user_stay_what_they_are() {
    let refusal = json!({ "error": { "param": "stream_options", "message": "no" } }).to_string();
    let server = Server::start(vec![Answer::status(400, &[], &refusal)]).await;
    let mut options = options(Wire::OpenAiChat, &server.base);
    options.body.insert("stream_options".to_owned(), json!({ "include_usage": false }));
    play(&*provider("mine", options).unwrap(), hello()).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn bug_a_rate_limit_without_a_time_is_waited_for_longer_and_longer() {
    let busy = || Answer::status(429, &[], "");
    let reported = "data: {\"error\":{\"message\":\"slow\",\"type\":\"rate_limit_error\"}}\n\n";
    let answers =
        vec![busy(), Answer::events(reported), busy(), Answer::status(503, &[], ""), Answer::events(HELLO)];
    let server = Server::start(answers).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut options = options(Wire::OpenAiChat, &server.base);
    options.retries.attempts = 5;
    options.retries.rate_limit_delay = Duration::from_millis(10);
    options.on_wait = Some({
        let told = Arc::clone(&told);
        Arc::new(move |waiting: &RetryNotice| told.lock().unwrap().push(waiting.pause))
    });
    play(&*provider("mine", options).unwrap(), hello()).await.unwrap();
    // Doubled, with a tenth on top; other failures have their own pauses.
    let pauses = told.lock().unwrap().clone();
    assert_eq!(pauses, [11, 22, 44, 0].map(Duration::from_millis));
}

/// What an answer says that breaks off after its first word.
async fn interruption(wire: Wire, attempts: u32, body: &str) -> Value {
    let server = Server::start(vec![Answer::events(body)]).await;
    let events = play(&*patient(wire, &server.base, attempts), hello()).await.unwrap();
    let Some(StreamEvent::Error { error }) = events.last() else { panic!("{events:?}") };
    error.details.get(REPEATABLE_DETAIL).cloned().unwrap_or_default()
}

#[tokio::test]
async fn an_answer_that_breaks_off_says_whether_it_may_be_asked_for_again() {
    let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let error =
        |kind: &str| format!("{chat}data: {{\"error\":{{\"message\":\"m\",\"type\":\"{kind}\"}}}}\n\n");
    let start = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n";
    let overloaded =
        format!("{start}data: {{\"type\":\"error\",\"error\":{{\"type\":\"overloaded_error\"}}}}\n\n");
    for (wire, attempts, body, expected) in [
        (Wire::OpenAiChat, 4, chat.to_owned(), true),
        (Wire::OpenAiChat, 4, error("server_error"), true),
        (Wire::Anthropic, 4, overloaded, true),
        // Nothing but a person changes these.
        (Wire::OpenAiChat, 4, error("insufficient_quota"), false),
        (Wire::OpenAiChat, 4, error("invalid_request_error"), false),
        (Wire::OpenAiChat, 4, format!("{chat}data: {{\n\n"), false),
        // The user wants one attempt.
        (Wire::OpenAiChat, 1, chat.to_owned(), false),
    ] {
        let said = interruption(wire, attempts, &body).await;
        assert_eq!(said == Value::Bool(true), expected, "{body}: {said}");
    }
}

#[tokio::test]
async fn bug_tokens_of_a_cache_are_counted_apart() {
    let chat = |usage: Value| {
        let chunk =
            json!({ "choices": [{ "delta": { "content": "Hi" }, "finish_reason": "stop" }], "usage": usage });
        format!("data: {chunk}\n\ndata: [DONE]\n\n")
    };
    let completed = json!({ "type": "response.completed", "response": {
        "output": [{ "type": "message", "content": [{ "type": "output_text", "text": "Hi" }] }],
        "usage": { "input_tokens": 7000, "output_tokens": 5, "input_tokens_details": { "cached_tokens": 6000 } },
    } });
    let started = json!({ "type": "message_start", "message": { "usage": {
        "input_tokens": 900, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 5000, "output_tokens": 1,
    } } });
    let delta = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 5 } });
    let stop = json!({ "type": "message_stop" });
    let of = |input_tokens, cached_input_tokens, cache_write_tokens| Usage {
        input_tokens,
        output_tokens: 5,
        cached_input_tokens,
        cache_write_tokens,
    };
    for (wire, body, expected) in [
        (
            Wire::OpenAiChat,
            chat(
                json!({ "prompt_tokens": 7000, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 6000 } }),
            ),
            of(7000, 6000, 0),
        ),
        (
            Wire::OpenAiChat,
            chat(json!({ "prompt_tokens": 7000, "completion_tokens": 5, "prompt_cache_hit_tokens": 64 })),
            of(7000, 64, 0),
        ),
        (
            Wire::OpenAiChat,
            chat(json!({ "prompt_tokens": 7000, "completion_tokens": 5, "prompt_tokens_details": null })),
            of(7000, 0, 0),
        ),
        (Wire::OpenAiResponses, format!("data: {completed}\n\n"), of(7000, 6000, 0)),
        (
            Wire::Anthropic,
            format!("data: {started}\n\ndata: {delta}\n\ndata: {stop}\n\n"),
            of(6000, 5000, 100),
        ),
    ] {
        let server = Server::start(vec![Answer::events(&body)]).await;
        let events = play(&*patient(wire, &server.base, 1), hello()).await.unwrap();
        let last = events.iter().rev().find_map(|event| match event {
            StreamEvent::Usage(usage) => Some(*usage),
            _ => None,
        });
        assert_eq!(last, Some(expected), "{body}");
    }
}

/// Who has set a key for another provider is not told that none is set.
#[tokio::test]
async fn bug_the_help_of_a_401_says_which_key_was_sent_or_why_none_was() {
    let help = |key: bool, variable: Option<&'static str>| async move {
        let server = Server::start(vec![Answer::status(401, &[], "{\"error\":\"no\"}")]).await;
        let mut options = options(Wire::OpenAiChat, &server.base);
        options.key = options.key.filter(|_| key);
        options.key_variable = variable.map(str::to_owned);
        let error = play(&*provider("mine", options).unwrap(), hello()).await.unwrap_err();
        error.help_of().unwrap().replace(&server.base, "BASE")
    };
    let none = help(false, None).await;
    assert!(
        none.starts_with("no key was sent, because none is set up for `BASE/v1`: pass --key-variable NAME"),
        "{none}"
    );
    assert!(!none.contains("OPENAI_API_KEY"), "{none}");
    let sent = help(true, Some("GATEWAY_KEY")).await;
    assert!(sent.contains("`GATEWAY_KEY` was not accepted"), "{sent}");
}
