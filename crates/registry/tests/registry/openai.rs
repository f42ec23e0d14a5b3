//! The embeddings service, against a loopback server with scripted answers.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tgp_contract::Code;
use tgp_net::Secret;
use tgp_registry::{Embedder as _, OpenAiCompatible};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const KEY: &str = "sk-very-secret";

/// What the server saw.
#[derive(Clone, Debug)]
struct VisibleTools {
    head: String,
    body: Value,
}

/// Answers each request with what `answer` makes of its body: a status and a body.
async fn serve(
    answer: impl Fn(&Value) -> (u16, String) + Send + 'static,
) -> (String, Arc<Mutex<Vec<VisibleTools>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<VisibleTools>>> = Arc::default();
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let (head, body) = loop {
                let mut chunk = [0; 4096];
                let length = socket.read(&mut chunk).await.unwrap_or(0);
                bytes.extend_from_slice(&chunk[..length]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n")
                    && let Ok(body) = serde_json::from_str::<Value>(body)
                {
                    break (head.to_owned(), body);
                }
                assert!(length > 0, "the request ended early: {text}");
            };
            let (status, answer) = answer(&body);
            log.lock().unwrap().push(VisibleTools { head, body });
            let length = answer.len();
            let reply = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
            );
            let _ = socket.write_all(reply.as_bytes()).await;
            let _ = socket.shutdown().await;
        }
    });
    (base, seen)
}

/// The first number of each text is the first value of its vector; the order is turned round.
fn vectors(body: &Value) -> (u16, String) {
    let items = body["input"].as_array().unwrap().iter().enumerate().map(|(index, text)| {
        json!({ "index": index, "embedding": [text.as_str().unwrap().parse::<f32>().unwrap_or(0.5), 1.0, -0.5] })
    });
    (200, json!({ "data": items.rev().collect::<Vec<_>>() }).to_string())
}

fn client(base: &str) -> OpenAiCompatible {
    OpenAiCompatible::new(base, "embed-small", Some(Secret::new(KEY))).unwrap()
}

#[tokio::test]
async fn texts_go_out_in_batches_and_come_back_in_order() {
    let (base, seen) = serve(vectors).await;
    let client = client(&base);
    assert_eq!(client.dimensions(), None);
    let texts: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    let embedded = client.embed(&texts).await.unwrap();
    let firsts: Vec<f32> = embedded.iter().map(|vector| vector[0]).collect();
    assert_eq!(firsts, (0..150).map(|number| number as f32).collect::<Vec<_>>());
    assert_eq!(client.dimensions(), Some(3));
    let seen = seen.lock().unwrap().clone();
    let sizes: Vec<usize> =
        seen.iter().map(|request| request.body["input"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [64, 64, 22]);
    for request in &seen {
        assert!(request.head.starts_with("POST /v1/embeddings HTTP/1.1\r\n"), "{}", request.head);
        let head = request.head.to_lowercase();
        assert!(
            head.contains(&format!("authorization: bearer {KEY}"))
                && head.contains("content-type: application/json")
        );
        assert_eq!(request.body["model"], json!("embed-small"));
    }
}

#[tokio::test]
async fn whatever_the_service_does_wrong_is_a_clean_error_without_the_key() {
    let refusal =
        json!({ "error": { "message": format!("Incorrect API key provided: {KEY}\u{1b}[31m") } }).to_string();
    let vector = |index: usize, values: Value| json!({ "index": index, "embedding": values });
    let cases: Vec<(&str, u16, String, &str)> = vec![
        ("refused", 401, refusal, "status 401"),
        ("server error", 500, "<html>oops</html>".to_owned(), "status 500"),
        ("redirect", 302, String::new(), "status 302"),
        ("no JSON", 200, "hello".to_owned(), "not understood"),
        ("too few", 200, json!({ "data": [] }).to_string(), "one vector for each text"),
        (
            "wrong index",
            200,
            json!({ "data": [vector(7, json!([1.0]))] }).to_string(),
            "one vector for each text",
        ),
        ("empty", 200, json!({ "data": [vector(0, json!([]))] }).to_string(), "no length"),
        ("too long", 200, json!({ "data": [vector(0, json!(vec![0.5; 4097]))] }).to_string(), "no length"),
        ("not finite", 200, r#"{"data":[{"index":0,"embedding":[1e999]}]}"#.to_owned(), "answer"),
        ("too large", 200, " ".repeat(17 * 1024 * 1024), "larger than"),
    ];
    for (name, status, body, reason) in cases {
        let (base, _) = serve(move |_| (status, body.clone())).await;
        let error = client(&base).embed(&["text".to_owned()]).await.unwrap_err();
        assert_eq!(error.code, Code::Provider, "{name}");
        let text = format!("{error:?} {}", serde_json::to_string(&error).unwrap());
        assert!(error.message.contains(reason) || name == "not finite", "{name}: {text}");
        assert!(!text.contains(KEY) && !error.message.contains('\u{1b}'), "{name}: {text}");
        assert!(error.help_of().is_some());
    }
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", closed.local_addr().unwrap());
    drop(closed);
    let error = client(&base).embed(&["text".to_owned()]).await.unwrap_err();
    assert_eq!(error.code, Code::Provider);
    assert!(!format!("{:?}", client(&base)).contains(KEY));
}

#[test]
fn a_base_url_is_checked_and_tells_services_apart() {
    for wrong in
        ["", "localhost:11434", "ftp://host/v1", "http://user:word@host/v1", "file:///etc", "mailto:a@b"]
    {
        let error = OpenAiCompatible::new(wrong, "m", None).unwrap_err();
        assert_eq!(error.code, Code::Config, "{wrong}");
        assert!(!error.message.contains("word@"), "{wrong}");
    }
    let fingerprint =
        |base: &str, model: &str| OpenAiCompatible::new(base, model, None).unwrap().fingerprint().to_owned();
    let one = fingerprint("http://a/v1", "nomic/embed:v1");
    assert_eq!(one, fingerprint("http://a/v1/", "nomic/embed:v1"), "a slash at the end changes nothing");
    assert!(
        one.chars().all(|character| character.is_ascii_alphanumeric() || character == '-'),
        "{one} is a file name"
    );
    assert_ne!(one, fingerprint("http://b/v1", "nomic/embed:v1"));
    assert_ne!(one, fingerprint("http://a/v1", "nomic/embed:v2"));
}

#[test]
fn bug_a_key_is_not_sent_in_plain_text_to_another_machine() {
    let new = |base: &str, key: Option<&str>| OpenAiCompatible::new(base, "m", key.map(Secret::new));
    for base in ["http://embeddings.example/v1", "http://10.0.0.1/v1", "http://localhost.example/v1"] {
        let error = new(base, Some(KEY)).unwrap_err();
        assert_eq!(error.code, Code::Config, "{base}");
        assert!(new(base, None).is_ok(), "{base}");
    }
    for base in ["https://embeddings.example/v1", "http://localhost:1/v1", "http://127.0.0.1/v1"] {
        assert!(new(base, Some(KEY)).is_ok(), "{base}");
    }
}

#[tokio::test]
async fn bug_a_message_that_is_cut_inside_the_key_shows_no_part_of_it() {
    for before in 280..310 {
        let message = format!("{}{KEY}", "x".repeat(before));
        let (base, _) = serve(move |_| (401, json!({ "error": { "message": message } }).to_string())).await;
        let error = client(&base).embed(&["text".to_owned()]).await.unwrap_err();
        assert!(!error.message.contains("sk-"), "{before}: {}", error.message);
    }
}

#[tokio::test]
async fn bug_an_error_does_not_show_the_query_of_the_base_url() {
    let (base, _) = serve(|_| (500, String::new())).await;
    let error = client(&format!("{base}?token=abcdef")).embed(&["text".to_owned()]).await.unwrap_err();
    assert!(
        error.message.contains("/v1/embeddings") && !error.message.contains("abcdef"),
        "{}",
        error.message
    );
}
