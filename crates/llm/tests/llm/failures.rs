//! How failures are told: the provider's words made safe, a next step, and no secret.

use tgp_contract::{Code, StreamEvent};
use tgp_llm::{HttpOptions, Wire, provider};

use crate::server::{Answer, Server};
use crate::support::{KEY, hello, once, options, play};

#[tokio::test]
async fn a_refusal_says_what_to_do_next() {
    let message = |text: &str| format!("{{\"error\":{{\"message\":\"{text}\"}}}}");
    let cases: Vec<(Wire, u16, String, &str, &str)> = vec![
        (Wire::OpenAiChat, 401, message("bad key"), "status 401: bad key", "`OPENAI_API_KEY`"),
        (Wire::Anthropic, 401, message("bad key"), "status 401: bad key", "`ANTHROPIC_API_KEY`"),
        (Wire::Anthropic, 403, message("not yours"), "status 403: not yours", "`ANTHROPIC_API_KEY`"),
        (Wire::OpenAiResponses, 404, message("no model"), "status 404: no model", "`models()`"),
        (Wire::OpenAiChat, 429, message("too fast"), "status 429: too fast", "quota"),
        (Wire::OpenAiChat, 413, String::new(), "failed: it answered with status 413", "too long"),
        (Wire::OpenAiChat, 500, "{\"error\":\"crashed\"}".into(), "status 500: crashed", "later"),
        (
            Wire::OpenAiChat,
            400,
            "{\"object\":\"error\",\"message\":\"bad\"}".into(),
            "status 400: bad",
            "model",
        ),
        (
            Wire::OpenAiChat,
            400,
            "[{\"error\":{\"code\":400,\"message\":\"bad list\"}}]".into(),
            "400: bad list",
            "model",
        ),
        (Wire::OpenAiChat, 422, "{\"detail\":\"bad field\"}".into(), "status 422: bad field", "model"),
        (Wire::OpenAiChat, 502, "<h1>Bad Gateway</h1>".into(), "status 502: <h1>Bad Gateway</h1>", "later"),
        (Wire::OpenAiChat, 302, String::new(), "status 302", "base URL"),
    ];
    for (wire, status, body, expected, step) in cases {
        let server = Server::start(vec![Answer::status(status, &[], &body)]).await;
        let error = play(&*once(wire, &server.base), hello()).await.unwrap_err();
        assert_eq!(error.code, Code::Provider);
        assert!(error.message.contains(expected) && error.message.contains("`mine`"), "{error}");
        assert!(error.help_of().unwrap().contains(step), "{status}: {error:?}");
        assert_eq!(error.details["status"], status);
        assert_eq!(error.details["retryable"], matches!(status, 408 | 429 | 500..), "{status}");
    }
}

#[tokio::test]
async fn a_missing_key_is_named_by_its_variable() {
    let server = Server::start(vec![Answer::status(401, &[], "")]).await;
    let options = HttpOptions {
        key: None,
        key_variable: Some("MY_KEY".to_owned()),
        ..options(Wire::OpenAiChat, &server.base)
    };
    let error = play(&*provider("mine", options).unwrap(), hello()).await.unwrap_err();
    assert_eq!(error.help_of(), Some("no key was sent; set the environment variable `MY_KEY`"));
}

#[tokio::test]
async fn no_secret_and_no_trick_gets_into_an_error() {
    let other = "gateway-secret-42";
    let words = format!("key {KEY} and {other} \u{1b}[2J\u{202e}evil\u{0}\u{200b} {}", "x".repeat(20_000));
    let body = serde_json::json!({ "error": { "message": words, "type": "server_error" } }).to_string();
    let word = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let answers = vec![
        Answer::status(400, &[], &body),
        Answer::status(400, &[], &words),
        Answer::events(&format!("data: {body}\n\n")),
        Answer::events(&format!("{word}data: {body}\n\n")),
        Answer::events(&format!("{word}data: {words}\n\n")),
        Answer::status(200, &[("content-type", "application/json; charset=utf-8")], &body),
        Answer::status(200, &[("content-type", "text/html")], &words),
    ];
    let count = answers.len();
    let server = Server::start(answers).await;
    let mut options = options(Wire::OpenAiChat, &server.base);
    options.headers = vec![("x-gateway".to_owned(), other.to_owned())];
    assert!(!format!("{options:?}").contains(KEY) && !format!("{options:?}").contains(other));
    let provider = provider("mine", options).unwrap();
    for number in 0..count {
        let error = match play(&*provider, hello()).await {
            Err(error) => error,
            Ok(events) => match events.last() {
                Some(StreamEvent::Error { error }) => error.clone(),
                _ => panic!("{number}: {events:?}"),
            },
        };
        let shown = serde_json::to_string(&error).unwrap();
        assert!(!shown.contains(KEY) && !shown.contains(other), "{number}: {shown}");
        assert!(error.message.contains("[key]"), "{number}: {shown}");
        assert!(
            error.message.contains("\\u{1b}[2J\\u{202e}evil\\u{0}\\u{200b}"),
            "{number}: {}",
            error.message
        );
        assert!(
            error.message.chars().all(|character| character.is_ascii_graphic() || character == ' '),
            "{number}"
        );
        assert!(shown.len() < 2_000, "{number}: {}", shown.len());
    }
}

#[tokio::test]
async fn what_is_no_stream_is_told_and_not_repeated() {
    let cases = [
        ("application/json", "{\"id\":\"chatcmpl-1\",\"choices\":[]}", "answered with `application/json`"),
        ("text/html; charset=utf-8", "<title>Sign in</title>", "<title>Sign in</title>"),
    ];
    for (content_type, body, expected) in cases {
        let server = Server::start(vec![Answer::status(200, &[("content-type", content_type)], body)]).await;
        let error =
            play(&*crate::support::patient(Wire::OpenAiChat, &server.base, 3), hello()).await.unwrap_err();
        assert!(error.message.contains(expected), "{error}");
        assert_eq!(error.details["retryable"], false);
        assert_eq!(server.requests().len(), 1);
    }
}
