//! Servers that hang, flood, lie and lead elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use crate::server::{Answer, Server, protocol};
use crate::support::{User, message, watched, watched_for};

const OK_JSON: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n";
const OK_EVENTS: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n";

/// Of the clock that is turned forward.
const HANG_LIMIT: Duration = Duration::from_secs(1_000);

/// A server that does well until its tool is called.
async fn check(answer: impl Fn() -> Answer + Send + Sync + 'static, expected: &str) {
    let server = Server::start(move |request| match request.asks().as_str() {
        "tools/call" => answer(),
        _ => protocol(request),
    })
    .await;
    let user = User::new(&server.url());
    user.add().await.unwrap();
    let ended = user.call("echo", json!({})).await;
    let is_of_unknown_outcome = ended.as_ref().is_err_and(|error| error.details.contains_key("outcome"));
    let told = message(ended);
    assert!(told.contains(expected), "{told}, expected {expected}");
    assert!(is_of_unknown_outcome, "{told}");
    // It is not tried again at once, and another server is not affected.
    let again = message(user.call("echo", json!({})).await);
    assert!(again.contains("is not started again for"), "{again}");
}

#[tokio::test]
async fn a_flood_is_cut_off() {
    watched(async {
        check(|| Answer::repeat(OK_JSON, "          "), "a message of more than 4 MiB").await;
        check(|| Answer::repeat(OK_EVENTS, "data: x"), "a message of more than 4 MiB").await;
        check(|| Answer::repeat(OK_EVENTS, "data: x\r\n"), "a message of more than 4 MiB").await;
        let note = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
        check(move || Answer::repeat(OK_EVENTS, note), "more than 10,000 messages for one call").await;
        check(|| Answer::repeat(OK_EVENTS, ":\n\n"), "more than 32 MiB for one call").await;
    })
    .await;
}

#[tokio::test]
async fn a_lie_about_the_size_is_noticed() {
    watched(async {
        let huge =
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nContent-Type: application/json\r\n\r\n{";
        check(move || Answer::hang(huge), "a message of more than 4 MiB").await;
        let short = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\nContent-Type: application/json\r\n\r\n{}";
        check(move || Answer::raw(short), "failed").await;
        let header = format!("X-Long: {}\r\n", "x".repeat(1_000));
        check(move || Answer::repeat("HTTP/1.1 200 OK\r\n", &header), "failed").await;
        check(
            || Answer::status("200 OK", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "x"),
            "compressed with \"gzip\"",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_is_not_the_protocol_is_refused() {
    watched(async {
        check(
            || Answer::status("200 OK", "Content-Type: text/html\r\n", "<h1>welcome</h1>"),
            "the content type \"text/html\"",
        )
        .await;
        check(|| Answer::status("200 OK", "", "{}"), "without a content type").await;
        check(|| Answer::json(&json!({ "hello": 1 })), "not a message of the protocol: \"{\"hello\":1}\"")
            .await;
        let long = json!("long ".repeat(100_000));
        check(move || Answer::json(&long), "not a message of the protocol").await;
        check(|| Answer::status("500 Internal Server Error", "", "boom"), "status 500").await;
        check(|| Answer::raw("SSH-2.0-OpenSSH_9.9\r\n"), "failed").await;
        check(|| Answer::raw(""), "failed").await;
        check(|| Answer::raw(format!("{OK_EVENTS}data: {{\"no\": \"message\"}}\n\n")), "failed").await;
    })
    .await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    watched(async {
        let elsewhere = Server::start(protocol).await;
        for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent"] {
            let location = format!("Location: {}\r\n", elsewhere.url());
            check(move || Answer::status(status, &location, ""), "redirects are not followed").await;
        }
        let server =
            Server::start(|_| Answer::status("307 Moved", "Location: https://example.com/\r\n", "")).await;
        let told = message(User::new(&server.url()).add().await);
        assert!(told.contains("it redirects to \"https://example.com/\" (status 307)"), "{told}");
        assert!(elsewhere.seen().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    watched_for(HANG_LIMIT, async {
        for head in
            [String::new(), OK_JSON.to_owned(), format!("{OK_JSON}{{"), format!("{OK_EVENTS}data: {{")]
        {
            let asked = Arc::new(Notify::new());
            let asked_too = Arc::clone(&asked);
            let server = Server::start(move |request| match request.asks().as_str() {
                "tools/call" => {
                    asked_too.notify_one();
                    Answer::hang(&head)
                }
                _ => protocol(request),
            })
            .await;
            let user = User::new(&server.url());
            user.add().await.unwrap();
            let called = async {
                let called = user.call("echo", json!({})).await;
                tokio::time::resume();
                called
            };
            let (ended, ()) = tokio::join!(called, async {
                asked.notified().await;
                // What was sent arrives; then the clock is turned forward.
                tokio::time::sleep(Duration::from_millis(100)).await;
                tokio::time::pause();
            });
            let told = message(ended);
            assert!(told.contains("within 120 s"), "{told}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_ends_is_not_opened_in_a_loop() {
    watched(async {
        let opened = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&opened);
        let server = Server::start(move |request| match request.method.as_str() {
            "GET" => {
                counted.fetch_add(1, Ordering::Relaxed);
                Answer::raw(format!("{OK_EVENTS}id: 1\nretry: 0\ndata:\n\n"))
            }
            "POST" if request.asks() == "initialize" => {
                let named = "Mcp-Session-Id: one\r\nContent-Type: application/json";
                Answer::raw(protocol(request).head.replace("Content-Type: application/json", named))
            }
            _ => protocol(request),
        })
        .await;
        let user = User::new(&server.url());
        user.add().await.unwrap();
        user.call("echo", json!({})).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let opened = opened.load(Ordering::Relaxed);
        assert!((1..=6).contains(&opened), "{opened}");
        user.call("echo", json!({})).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_server_that_floods_between_calls_is_left() {
    watched(async {
        let server = Server::start(move |request| match request.method.as_str() {
            "GET" => Answer::repeat(OK_EVENTS, ":\n\n"),
            "POST" if request.asks() == "initialize" => {
                let named = "Mcp-Session-Id: one\r\nContent-Type: application/json";
                Answer::raw(protocol(request).head.replace("Content-Type: application/json", named))
            }
            _ => protocol(request),
        })
        .await;
        let user = User::new(&server.url());
        // It may be too late already for the list of tools.
        match user.add().await {
            Ok(_) => {
                let _ = user.call("echo", json!({})).await;
            }
            Err(error) => assert!(error.message.contains("32 MiB"), "{error}"),
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_login_says_so() {
    watched(async {
        for challenge in ["", "WWW-Authenticate: Bearer realm=\"x\"\r\n"] {
            let server = Server::start(move |_| Answer::status("401 Unauthorized", challenge, "")).await;
            let error = User::new(&server.url()).add().await.unwrap_err();
            assert!(tgp_upstream::Upstreams::needs_login(&error), "{error}");
            assert_eq!(error.help_of(), Some("a person logs in with `tgp upstream login remote`"));
        }
    })
    .await;
}
