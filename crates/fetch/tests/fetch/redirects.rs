//! Redirects: every stop is checked again, and secrets stay where they were given.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tgp_contract::{Code, ToolError};
use tgp_fetch::{FetchClient, FetchLimits, FetchRequest, Hop, HopJudge, Redirects};

use crate::server::{Server, client_for, get, header, list, ok, redirect, refused};

fn path_of(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

#[tokio::test]
async fn a_redirect_inside_the_list_is_followed() {
    let server = Server::start(|request| match path_of(request) {
        "/a" => redirect(302, "b?x=1#frag"),
        "/b?x=1" => redirect(301, "/c"),
        _ => ok("arrived"),
    })
    .await;
    let response = get(&client_for(&[&server]), server.url("/a")).await.unwrap();
    assert_eq!(response.body, b"arrived");
    assert_eq!(response.url, server.url("/c"));
    assert!(response.redirected);
}

#[tokio::test]
async fn a_redirect_out_of_the_list_is_refused() {
    let outside = Server::text("secret").await;
    for location in [
        outside.url("/x?token=s3cret"),
        format!("//{}/x", outside.address),
        format!("\\\\{}\\x", outside.address),
        "https://evil.com/".to_owned(),
        "//evil.com".to_owned(),
        "https:evil.com".to_owned(),
        "file:///etc/passwd".to_owned(),
        "javascript:1".to_owned(),
    ] {
        let target = location.clone();
        let server = Server::start(move |_| redirect(302, &target)).await;
        let error =
            refused(get(&client_for(&[&server]), server.url("/a")).await, Code::Security, "redirects");
        assert!(!error.message.contains("s3cret"), "{error}");
        assert_eq!(server.requests().len(), 1, "{location}");
    }
    let server =
        Server::start(|request| redirect(302, &format!("http://u:p@{}/", header(request, "host").unwrap())))
            .await;
    refused(get(&client_for(&[&server]), server.url("/a")).await, Code::Security, "user name or a password");
    assert!(outside.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_out_of_the_path_is_refused() {
    for location in ["/admin", "../admin", "/v10", "..%2fadmin", "/v1/..;/admin", "/v1/%2e%2e/admin"] {
        let server = Server::start(move |_| redirect(307, location)).await;
        let client = FetchClient::new(list(&[&server.url("/v1")]), FetchLimits::default());
        refused(get(&client, server.url("/v1/a")).await, Code::Security, "path");
        assert_eq!(server.requests().len(), 1, "{location}");
    }
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    for location in [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:1/",
        "http://[::1]:1/",
        "http://[::ffff:127.0.0.1]:1/",
        "http://2130706433:1/",
        "http://0x7f.1:1/",
        "http://localhost:1/",
        "http://10.0.0.1/",
    ] {
        let server = Server::start(move |_| redirect(302, location)).await;
        refused(
            get(&client_for(&[&server]), server.url("/")).await,
            Code::Security,
            "not in `allowedFetchUrls`",
        );
    }
}

#[tokio::test]
async fn a_loop_ends_at_the_limit() {
    let server = Server::start(|_| redirect(302, "/again")).await;
    let error =
        refused(get(&client_for(&[&server]), server.url("/")).await, Code::Fetch, "more than 5 times");
    assert!(error.help_of().unwrap().contains("manual"));
    assert_eq!(server.requests().len(), 6);
    let none = FetchLimits { max_redirects: 0, ..FetchLimits::default() };
    let client = FetchClient::new(list(&[&server.url("")]), none);
    refused(get(&client, server.url("/")).await, Code::Fetch, "more than 0 times");
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn the_tool_can_ask_for_the_redirect_itself() {
    let server = Server::start(|_| redirect(308, "https://evil.com/")).await;
    let client = client_for(&[&server]);
    let ask = |redirect| FetchRequest { redirect, ..FetchRequest::new(server.url("/")) };
    let response = client.fetch(ask(Redirects::Manual)).await.unwrap();
    assert_eq!((response.status, response.redirected), (308, false));
    assert!(response.headers.contains(&("location".into(), "https://evil.com/".into())));
    refused(client.fetch(ask(Redirects::Error)).await, Code::Fetch, "redirect: 'error'");
}

#[tokio::test]
async fn what_only_looks_like_a_redirect_is_an_answer() {
    for head in [
        "HTTP/1.1 302 Found\r\n",
        "HTTP/1.1 304 Not Modified\r\nLocation: /x\r\n",
        "HTTP/1.1 300 X\r\nLocation: /x\r\n",
        "HTTP/1.1 201 Created\r\nLocation: /x\r\n",
    ] {
        let server = Server::start(move |_| format!("{head}Content-Length: 0\r\n\r\n").into_bytes()).await;
        let response = get(&client_for(&[&server]), server.url("/")).await.unwrap();
        assert!(!response.redirected, "{head}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_location_that_is_no_url_is_an_error() {
    for location in ["http://", "http://[::1", "http://a b/"] {
        let server = Server::start(move |_| redirect(302, location)).await;
        refused(get(&client_for(&[&server]), server.url("/")).await, Code::Fetch, "not a URL");
    }
    let server =
        Server::start(|_| b"HTTP/1.1 302 X\r\nLocation: /\xff\r\nContent-Length: 0\r\n\r\n".to_vec()).await;
    refused(get(&client_for(&[&server]), server.url("/")).await, Code::Fetch, "not text");
    let server = Server::start(|_| redirect(302, &format!("/{}", "a".repeat(9000)))).await;
    refused(get(&client_for(&[&server]), server.url("/")).await, Code::Fetch, "URL of a redirect");
}

#[tokio::test]
async fn method_and_body_follow_the_standard() {
    for (status, method, next, keeps_body) in [
        (301, "POST", "GET", false),
        (302, "POST", "GET", false),
        (303, "POST", "GET", false),
        (307, "POST", "POST", true),
        (308, "POST", "POST", true),
        (301, "PUT", "PUT", true),
        (302, "PATCH", "PATCH", true),
        (303, "PUT", "GET", false),
        (303, "DELETE", "GET", false),
        (308, "DELETE", "DELETE", true),
        (303, "HEAD", "HEAD", false),
        (302, "GET", "GET", false),
    ] {
        let server = Server::start(
            move |request| if path_of(request) == "/a" { redirect(status, "/b") } else { ok("") },
        )
        .await;
        let request = FetchRequest {
            method: method.into(),
            headers: vec![("Content-Type".into(), "text/plain".into()), ("Authorization".into(), "k".into())],
            body: (!matches!(method, "GET" | "HEAD")).then(|| b"payload".to_vec()),
            ..FetchRequest::new(server.url("/a"))
        };
        client_for(&[&server]).fetch(request).await.unwrap();
        let second = server.requests().pop().unwrap();
        let row = format!("{status} {method}: {second}");
        assert!(second.starts_with(&format!("{next} /b ")), "{row}");
        assert_eq!(second.ends_with("payload"), keeps_body, "{row}");
        let typed = keeps_body || method == next;
        assert_eq!(header(&second, "content-type").is_some(), typed, "{row}");
        assert_eq!(header(&second, "authorization"), Some("k"), "{row}");
        assert_eq!(header(&second, "referer"), None, "{row}");
    }
}

#[tokio::test]
async fn secrets_do_not_cross_origins() {
    let other = Server::text("x").await;
    let target = other.url("/b");
    let server = Server::start(move |_| redirect(307, &target)).await;
    let names = ["Authorization", "Cookie", "X-Api-Key", "X-Custom", "Referer"];
    let mut headers: Vec<_> = names.iter().map(|name| ((*name).to_owned(), "secret".to_owned())).collect();
    headers.push(("Accept".into(), "text/css".into()));
    headers.push(("Content-Type".into(), "text/plain".into()));
    let request = FetchRequest {
        method: "POST".into(),
        headers,
        body: Some(b"payload".to_vec()),
        ..FetchRequest::new(server.url("/a"))
    };
    let response = client_for(&[&server, &other]).fetch(request).await.unwrap();
    assert_eq!(response.url, other.url("/b"));
    let arrived = other.requests().remove(0);
    for name in names {
        assert_eq!(header(&server.requests()[0], name), Some("secret"), "{name}");
        assert_eq!(header(&arrived, name), None, "{name}");
    }
    assert_eq!(header(&arrived, "accept"), Some("text/css"));
    assert_eq!(header(&arrived, "content-type"), Some("text/plain"));
    assert!(arrived.ends_with("payload"));
}

/// Remembers the stops, refuses the one with this path, and takes its time.
struct Stops {
    refuse: &'static str,
    seen: Mutex<Vec<String>>,
    pause: Duration,
}

#[async_trait]
impl HopJudge for Stops {
    async fn judge(&self, hop: Hop<'_>) -> Result<(), ToolError> {
        let names: Vec<&str> = hop.headers().map(|(name, _)| name).collect();
        let line = format!("{} {} {} {}", hop.method(), hop.url.path(), names.join(","), hop.has_body());
        self.seen.lock().unwrap().push(line);
        tokio::time::sleep(self.pause).await;
        if hop.url.path() == self.refuse {
            return Err(ToolError::new(Code::Policy, "not there").help("go elsewhere"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn every_stop_is_judged_as_it_would_be_sent_and_before_it_is() {
    let other = Server::text("arrived").await;
    let there = other.url("/b");
    let server = Server::start(move |request| match path_of(request) {
        "/a" => redirect(307, "/same"),
        _ => redirect(302, &there),
    })
    .await;
    let client = client_for(&[&server, &other]);
    let request = FetchRequest {
        method: "POST".to_owned(),
        headers: vec![
            ("Authorization".to_owned(), "s3cret".to_owned()),
            ("Accept".to_owned(), "x".to_owned()),
        ],
        body: Some(b"body".to_vec()),
        ..FetchRequest::new(server.url("/a"))
    };
    let stops = |refuse| Stops { refuse, seen: Mutex::default(), pause: Duration::ZERO };
    let judge = stops("/b");
    refused(client.fetch_judged(request.clone(), &judge).await, Code::Policy, "not there");
    // The same origin gets what the first got; another origin neither the secret nor the body.
    let seen = judge.seen.into_inner().unwrap();
    assert_eq!(seen, ["POST /same authorization,accept true", "GET /b accept false"]);
    assert!(other.requests().is_empty(), "nothing was sent to what was refused");
    let judge = stops("/same");
    refused(client.fetch_judged(request.clone(), &judge).await, Code::Policy, "not there");
    assert_eq!(client.fetch_judged(request, &stops("")).await.unwrap().body, b"arrived");
    assert!(other.requests().iter().all(|request| header(request, "authorization").is_none()));
}

#[tokio::test]
async fn the_time_of_a_request_does_not_run_while_a_stop_is_judged() {
    let server = Server::start(|request| match path_of(request) {
        "/a" => redirect(302, "/b"),
        _ => ok("arrived"),
    })
    .await;
    let limits = FetchLimits { timeout: Duration::from_millis(400), ..FetchLimits::default() };
    let client = FetchClient::new(list(&[&server.url("")]), limits);
    let judge = Stops { refuse: "", seen: Mutex::default(), pause: Duration::from_millis(900) };
    let response = client.fetch_judged(FetchRequest::new(server.url("/a")), &judge).await.unwrap();
    assert_eq!(response.body, b"arrived");
}
