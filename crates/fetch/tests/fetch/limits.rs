//! Servers that send too much, too slowly or not what they promised.

use std::time::{Duration, Instant};

use tgp_contract::Code;
use tgp_fetch::{FetchClient, FetchLimits, FetchRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::server::{Server, accept, client_for, get, list, read_request, refused};

/// Only a fault takes longer, on a machine of any speed.
const SOON: Duration = Duration::from_secs(60);

fn limited(server: &str, limits: FetchLimits) -> FetchClient {
    FetchClient::new(list(&[server]), limits)
}

fn small() -> FetchLimits {
    FetchLimits { max_response_bytes: 1000, timeout: SOON, ..FetchLimits::default() }
}

/// A server that writes `head`, then `piece` again and again with `pause` between; it reports the end of each
/// connection with the number of pieces it could write.
async fn drip(
    head: &'static str,
    piece: &'static [u8],
    pause: Duration,
) -> (String, mpsc::UnboundedReceiver<u64>) {
    let (report, ended) = mpsc::unbounded_channel();
    let address = accept(move |mut stream| {
        let report = report.clone();
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(head.as_bytes()).await;
            let mut written = 0;
            // Bounded, so that a client that never hangs up fails the test instead of filling memory.
            while written < 100_000 && stream.write_all(piece).await.is_ok() {
                written += 1;
                // Even a sleep of nothing takes a millisecond, which is long for a body of single bytes.
                if pause.is_zero() {
                    tokio::task::yield_now().await;
                } else {
                    tokio::time::sleep(pause).await;
                }
            }
            let _ = report.send(written);
        }
    })
    .await;
    (format!("http://{address}"), ended)
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    for (length, fits) in [(0, true), (999, true), (1000, true), (1001, false), (5000, false)] {
        let server = Server::start(move |_| {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length)).into_bytes()
        })
        .await;
        let result = get(&limited(&server.url(""), small()), server.url("/")).await;
        if fits {
            assert_eq!(result.unwrap().body.len(), length);
        } else {
            let error = refused(result, Code::Fetch, "larger than the limit of 1000 bytes");
            assert_eq!(error.details["limit"], 1000);
        }
    }
}

#[tokio::test]
async fn a_huge_body_is_not_read() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
    let (url, mut ended) = drip(head, &[b'x'; 65536], Duration::ZERO).await;
    refused(get(&limited(&url, FetchLimits::default()), url.as_str()).await, Code::Fetch, "response body");
    let written = tokio::time::timeout(SOON, ended.recv()).await.expect("the connection is closed").unwrap();
    assert!(written < 1000, "{written} pieces were taken");
}

#[tokio::test]
async fn an_endless_body_is_cut_off() {
    for (head, piece) in [
        ("HTTP/1.1 200 OK\r\n\r\n", &b"0123456789abcdef"[..]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &b"10\r\n0123456789abcdef\r\n"[..]),
        // A chunked body makes this length a lie, and it must not be believed.
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", &b"1\r\nx\r\n"[..]),
    ] {
        let (url, mut ended) = drip(head, piece, Duration::ZERO).await;
        refused(get(&limited(&url, small()), url.as_str()).await, Code::Fetch, "response body");
        tokio::time::timeout(SOON, ended.recv()).await.expect("the connection is closed");
    }
}

#[tokio::test]
async fn a_content_length_that_lies_is_not_believed() {
    // Too long: the connection ends before the body does.
    let server = Server::start(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nshort".to_vec()).await;
    refused(get(&limited(&server.url(""), small()), server.url("/")).await, Code::Fetch, "failed");
    // Too short: the rest belongs to no answer, also not to the next one on this connection.
    let server = Server::start(|_| {
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
            .to_vec()
    })
    .await;
    let client = limited(&server.url(""), small());
    for _ in 0..3 {
        assert_eq!(get(&client, server.url("/")).await.unwrap().body, b"ok");
    }
    // Not a number.
    for length in ["-1", "1e3", "0x10", "99999999999999999999999", "5, 6"] {
        let server = Server::start(move |_| {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello").into_bytes()
        })
        .await;
        refused(get(&limited(&server.url(""), small()), server.url("/")).await, Code::Fetch, "");
    }
    // A chunked body that stops in the middle.
    let server =
        Server::start(|_| b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel".to_vec()).await;
    refused(get(&limited(&server.url(""), small()), server.url("/")).await, Code::Fetch, "failed");
}

#[tokio::test]
async fn headers_are_capped() {
    let many = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count)).into_bytes();
    let large = |size: usize| format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(size)).into_bytes();
    for (answer, fits) in [
        (many(90), true),
        (many(101), false),
        (many(5000), false),
        (large(60_000), true),
        (large(70_000), false),
        (large(3_000_000), false),
    ] {
        let server = Server::start(move |_| answer.clone()).await;
        let result = get(&client_for(&[&server]), server.url("/")).await;
        if fits {
            assert_eq!(result.unwrap().status, 200);
        } else {
            refused(result, Code::Fetch, "");
        }
    }
    let (url, mut ended) = drip("HTTP/1.1 200 OK\r\n", b"a: 0123456789abcdef\r\n", Duration::ZERO).await;
    refused(get(&limited(&url, small()), url.as_str()).await, Code::Fetch, "");
    tokio::time::timeout(SOON, ended.recv()).await.expect("the connection is closed");
}

#[tokio::test]
async fn requests_are_capped_before_anything_is_sent() {
    let server = Server::text("x").await;
    let client = client_for(&[&server]);
    let post = |size: usize| FetchRequest {
        method: "POST".into(),
        body: Some(vec![b'x'; size]),
        ..FetchRequest::new(server.url("/"))
    };
    assert_eq!(client.fetch(post(1024 * 1024)).await.unwrap().status, 200);
    refused(client.fetch(post(1024 * 1024 + 1)).await, Code::Fetch, "request body");
    let headers = |count: usize, size: usize| FetchRequest {
        headers: vec![("a".into(), "b".repeat(size)); count],
        ..FetchRequest::new(server.url("/"))
    };
    refused(client.fetch(headers(101, 1)).await, Code::Fetch, "list of request headers");
    refused(client.fetch(headers(2, 40_000)).await, Code::Fetch, "sum of the request headers");
    let long = server.url(&"a/".repeat(5000));
    refused(get(&client, long).await, Code::Fetch, "URL is larger");
    assert_eq!(server.requests().len(), 1);
}

/// Slow in every phase: before the first byte, within the head, within the body, and after a redirect.
#[tokio::test]
async fn a_slow_server_runs_into_the_deadline() {
    let pause = Duration::from_millis(20);
    for (head, piece) in [
        ("", &b""[..]),
        ("", &b"H"[..]),
        ("HTTP/1.1 200 OK\r\n", &b"a: b\r\n"[..]),
        ("HTTP/1.1 200 OK\r\nX: ", &b"x"[..]),
        ("HTTP/1.1 200 OK\r\n\r\n", &b"x"[..]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &b"1\r\nx\r\n"[..]),
        ("", &b"HTTP/1.1 100 Continue\r\n\r\n"[..]),
    ] {
        let (url, mut ended) = drip(head, piece, pause).await;
        let limits =
            FetchLimits { timeout: Duration::from_millis(300), max_headers: 1000, ..FetchLimits::default() };
        let started = Instant::now();
        let result = get(&limited(&url, limits), url.as_str()).await;
        let error = result.expect_err("it takes too long");
        assert_eq!(error.code, Code::Fetch);
        // A first byte that is not HTTP ends earlier, with its own error.
        if !piece.starts_with(b"H") || piece.len() > 1 {
            assert!(error.message.contains("took longer than 300 ms"), "{head:?} {piece:?}: {error}");
            assert_eq!(error.details["limitMs"], 300);
        }
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        // With nothing to write the server cannot notice; it is stopped with the runtime.
        if !piece.is_empty() {
            tokio::time::timeout(SOON, ended.recv()).await.expect("the connection is closed");
        }
    }
}

#[tokio::test]
async fn redirects_share_one_deadline() {
    let address = accept(|mut stream| async move {
        read_request(&mut stream).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        let answer = "HTTP/1.1 302 X\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    let url = format!("http://{address}");
    let limits =
        FetchLimits { timeout: Duration::from_millis(400), max_redirects: 100, ..FetchLimits::default() };
    refused(get(&limited(&url, limits), url.as_str()).await, Code::Fetch, "took longer than 400 ms");
}

#[tokio::test]
async fn dropping_a_fetch_closes_its_connection() {
    for head in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin"] {
        let (report, mut reports) = mpsc::unbounded_channel();
        let address = accept(move |mut stream| {
            let report = report.clone();
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = report.send("asked");
                let rest = stream.read(&mut [0; 16]).await;
                let _ = report.send(if matches!(rest, Ok(0) | Err(_)) { "closed" } else { "more" });
            }
        })
        .await;
        let url = format!("http://{address}");
        let client = limited(&url, FetchLimits::default());
        {
            let fetch = get(&client, url.as_str());
            tokio::pin!(fetch);
            tokio::select! {
                result = &mut fetch => panic!("{result:?}"),
                report = reports.recv() => assert_eq!(report, Some("asked")),
            }
        }
        let report = tokio::time::timeout(SOON, reports.recv()).await.expect("the server sees the end");
        assert_eq!(report, Some("closed"), "{head:?}");
    }
}
