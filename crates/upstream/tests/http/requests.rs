//! What is sent to a server over HTTP, and what comes back.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tgp_contract::Code;
use tgp_upstream::ValueSource;

use crate::server::{Answer, Server, protocol};
use crate::support::{SECRET, User, message, watched};

#[tokio::test]
async fn a_key_is_sent_in_a_header_and_does_not_come_back() {
    watched(async {
        let server = Server::start(protocol).await;
        let secret = ValueSource::Secret("KEY".to_owned());
        let plain = ValueSource::Value("plain".to_owned());
        let user = User::with_headers(&server.url(), &[("Authorization", secret), ("X-Team", plain)]);
        user.add().await.unwrap();
        assert_eq!(user.call("echo", json!({ "text": "hello" })).await.unwrap(), json!("hello"));
        let echoed = user.call("echo", json!({ "text": format!("<{SECRET}>") })).await.unwrap();
        assert_eq!(echoed, json!("<[secret]>"));
        for request in server.seen() {
            assert_eq!(request.header("authorization"), Some(SECRET), "{request:?}");
            assert_eq!(request.header("x-team"), Some("plain"));
            assert_eq!(request.header("accept-encoding"), Some("identity"));
        }
    })
    .await;
}

#[tokio::test]
async fn headers_of_the_protocol_cannot_be_set() {
    watched(async {
        let server = Server::start(protocol).await;
        for (name, problem) in [("Mcp-Session-Id", "set by the protocol"), ("a b", "invalid")] {
            let user = User::with_headers(&server.url(), &[(name, ValueSource::Value("x".to_owned()))]);
            let error = user.add().await.unwrap_err();
            assert!(error.code == Code::Config && error.message.contains(problem), "{error}");
        }
        assert!(server.seen().is_empty());
    })
    .await;
}

#[tokio::test]
async fn answers_come_as_json_or_as_events() {
    watched(async {
        let server = Server::start(|request| {
            let answer = protocol(request);
            let body = answer.head.split_once("\r\n\r\n").unwrap().1.to_owned();
            if body.is_empty() {
                return answer;
            }
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "x" } });
            Answer::raw(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n\
                 : a comment\r\n\r\ndata: {note}\n\nid: 7\ndata: {body}\n\n"
            ))
        })
        .await;
        let user = User::new(&server.url());
        user.add().await.unwrap();
        assert_eq!(user.call("echo", json!({ "text": "hello" })).await.unwrap(), json!("hello"));
    })
    .await;
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_is_begun_again() {
    watched(async {
        let sessions = AtomicUsize::new(0);
        let server =
            Server::start(move |request| match (request.asks().as_str(), request.header("mcp-session-id")) {
                ("initialize", _) => {
                    let number = sessions.fetch_add(1, Ordering::Relaxed);
                    let answer = protocol(request).head;
                    let named = format!("Mcp-Session-Id: session-{number}\r\nContent-Type: application/json");
                    Answer::raw(answer.replace("Content-Type: application/json", &named))
                }
                ("tools/call", Some("session-0")) => Answer::status("404 Not Found", "", ""),
                (_, Some(_)) => protocol(request),
                _ => Answer::status("400 Bad Request", "", ""),
            })
            .await;
        let user = User::new(&server.url());
        user.add().await.unwrap();
        assert_eq!(user.call("echo", json!({ "text": "again" })).await.unwrap(), json!("again"));
    })
    .await;
}

#[tokio::test]
async fn an_error_of_the_protocol_is_a_refusal_of_the_call() {
    watched(async {
        let server = Server::start(|request| match request.asks().as_str() {
            "tools/call" => {
                let error = json!({ "code": -32602, "message": "no\u{202e}such  argument" });
                let body = json!({ "jsonrpc": "2.0", "id": request.json()["id"], "error": error });
                Answer::status("400 Bad Request", "Content-Type: application/json\r\n", &body.to_string())
            }
            _ => protocol(request),
        })
        .await;
        let user = User::new(&server.url());
        user.add().await.unwrap();
        for _ in 0..2 {
            let told = message(user.call("echo", json!({})).await);
            assert!(told.contains("was refused by the server") && !told.contains('\u{202e}'), "{told}");
        }
    })
    .await;
}
