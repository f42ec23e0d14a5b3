//! What is sent, what comes back, and what is never sent.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_contract::Code;
use tgp_fetch::{FetchClient, FetchLimits, FetchRequest, Redirects};

use crate::server::{Server, client, client_for, get, header, list, ok, refused};

#[tokio::test]
async fn a_get_brings_status_headers_and_text() {
    let server = Server::start(|_| {
        b"HTTP/1.1 201 Whatever\r\nContent-Length: 6\r\nX-A: 1\r\nX-A: 2\r\nX-L: caf\xe9\r\n\r\nh\xc3\xa9llo"
            .to_vec()
    })
    .await;
    let response = get(&client_for(&[&server]), server.url("/a?b=c#d")).await.unwrap();
    assert_eq!((response.status, response.status_text.as_str()), (201, "Created"));
    assert_eq!(response.url, server.url("/a?b=c"));
    assert!(!response.redirected);
    let wire = serde_json::to_value(&response).unwrap();
    assert_eq!(
        wire,
        json!({
            "url": server.url("/a?b=c"), "status": 201, "statusText": "Created",
            "headers": [["content-length", "6"], ["x-a", "1"], ["x-a", "2"], ["x-l", "café"]],
            "body": "héllo", "bodyEncoding": "utf8", "redirected": false,
        })
    );
    let request = server.requests().remove(0);
    assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
    assert_eq!(header(&request, "host"), Some(server.address.to_string().as_str()));
    assert_eq!(header(&request, "accept-encoding"), Some("identity"));
    assert!(header(&request, "user-agent").unwrap().starts_with("tgp/"));
    for absent in ["cookie", "referer", "origin", "proxy-authorization"] {
        assert_eq!(header(&request, absent), None);
    }
}

#[tokio::test]
async fn bytes_come_back_as_base64() {
    let server =
        Server::start(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xff\x00\xfe\x01".to_vec()).await;
    let response = get(&client_for(&[&server]), server.url("/")).await.unwrap();
    assert_eq!(response.body, [0xff, 0, 0xfe, 1]);
    let wire = serde_json::to_value(&response).unwrap();
    assert_eq!((&wire["body"], &wire["bodyEncoding"]), (&json!("/wD+AQ=="), &json!("base64")));
}

/// `hello` as gzip 1.12 writes it.
const GZIP: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00";
/// The same with a zlib header, and without any.
const ZLIB: &[u8] = b"\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15";
const DEFLATE: &[u8] = b"\xcb\x48\xcd\xc9\xc9\x07\x00";

fn compressed(encoding: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn a_compressed_body_is_unpacked() {
    for (encoding, body, expected) in [
        ("gzip", GZIP, &b"hello"[..]),
        ("X-GZIP", GZIP, b"hello"),
        ("identity, gzip", GZIP, b"hello"),
        ("deflate", ZLIB, b"hello"),
        ("deflate", DEFLATE, b"hello"),
        ("gzip", b"", b""),
        // What cannot be undone here is left as it is.
        ("br", b"\x0b\x02\x80", b"\x0b\x02\x80"),
        ("gzip, gzip, gzip", GZIP, GZIP),
    ] {
        let server = Server::start(move |_| compressed(encoding, body)).await;
        let mut request = FetchRequest::new(server.url("/"));
        request.headers = vec![("Accept-Encoding".into(), "gzip".into())];
        let response = client_for(&[&server]).fetch(request).await.unwrap();
        assert_eq!(response.body, expected, "{encoding}");
        assert_eq!(header(&server.requests()[0], "accept-encoding"), Some("gzip"));
    }
}

#[tokio::test]
async fn a_compressed_body_is_bounded_and_whole() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; 100_000]).unwrap();
    let bomb = bomb.finish().unwrap();
    let cut = GZIP[..GZIP.len() - 9].to_vec();
    for (body, expected) in [
        (bomb, "the unpacked response body is larger than the limit of 10000 bytes"),
        (cut, "cannot be used: it is not valid gzip"),
        (b"no".to_vec(), "cannot be used: it is not valid gzip"),
    ] {
        let server = Server::start(move |_| compressed("gzip", &body)).await;
        let limits = FetchLimits { max_response_bytes: 10_000, ..FetchLimits::default() };
        let client = FetchClient::new(list(&[&server.url("")]), limits);
        refused(get(&client, server.url("/")).await, Code::Fetch, expected);
    }
}

#[tokio::test]
async fn every_method_goes_out_as_asked() {
    let server = Server::start(|request| {
        // A body after HEAD would be the start of the next answer.
        if request.starts_with("HEAD") {
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n".to_vec()
        } else {
            ok("x")
        }
    })
    .await;
    let client = client_for(&[&server]);
    for method in ["GET", "head", "Post", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let upper = method.to_uppercase();
        let body = (!matches!(upper.as_str(), "GET" | "HEAD")).then(|| b"hi".to_vec());
        let request =
            FetchRequest { method: method.into(), body: body.clone(), ..FetchRequest::new(server.url("/")) };
        assert_eq!(client.fetch(request).await.unwrap().status, 200);
        let sent = server.requests().pop().unwrap();
        assert!(sent.starts_with(&format!("{upper} / ")), "{sent}");
        assert_eq!(sent.ends_with("\r\n\r\nhi"), body.is_some(), "{sent}");
    }
    for method in ["CONNECT", "TRACE", "", "GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "G\0T", "PROPFIND"] {
        let request = FetchRequest { method: method.into(), ..FetchRequest::new(server.url("/")) };
        refused(client.fetch(request).await, Code::Fetch, "method");
    }
    for method in ["GET", "HEAD"] {
        let request = FetchRequest {
            method: method.into(),
            body: Some(Vec::new()),
            ..FetchRequest::new(server.url("/"))
        };
        refused(client.fetch(request).await, Code::Fetch, "has no body");
    }
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn headers_of_the_tool_arrive_and_those_of_the_connection_do_not() {
    let server = Server::text("x").await;
    let client = client_for(&[&server]);
    let with = |name: &str, value: &str| {
        let headers = vec![(name.to_owned(), value.to_owned())];
        FetchRequest { headers, ..FetchRequest::new(server.url("/")) }
    };
    for (name, value, arrives) in [
        ("Authorization", "Bearer x", "Bearer x"),
        ("cookie", "a=b", "a=b"),
        ("X-Blank", "  a\tb  ", "a\tb"),
        ("X-Empty", "", ""),
        ("User-Agent", "mine", "mine"),
        ("Referer", "https://me", "https://me"),
    ] {
        client.fetch(with(name, value)).await.unwrap();
        assert_eq!(header(&server.requests().pop().unwrap(), name), Some(arrives), "{name}");
    }
    let sent = server.requests().len();
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "CONNECTION",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Proxy-Authorization",
        "proxy-connection",
        "Proxy-Anything",
        "HTTP2-Settings",
    ] {
        refused(client.fetch(with(name, "1")).await, Code::Fetch, "set by the kernel");
    }
    for name in ["", " ", "X Y", "X:Y", "X\r\nY", "X\0", ":authority", "é", "Host ", "Ho\tst"] {
        refused(client.fetch(with(name, "1")).await, Code::Fetch, "not the name of a header");
    }
    for value in ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "\u{7f}", "é", "a\r\n\r\nGET / HTTP/1.1", "\n"] {
        refused(client.fetch(with("X-A", value)).await, Code::Fetch, "no header may have");
    }
    assert_eq!(server.requests().len(), sent, "nothing was sent for a bad header");
}

#[tokio::test]
async fn line_breaks_in_a_url_inject_nothing() {
    let server = Server::text("x").await;
    let url = server.url("/a\r\nX-Evil: 1\r\n\r\nGET /b%0d%0aX-Evil:%202?c\r\nd");
    get(&client_for(&[&server]), url).await.unwrap();
    let request = server.requests().remove(0);
    assert!(request.starts_with("GET /aX-Evil:%201GET%20/b%0d%0aX-Evil:%202?cd HTTP/1.1\r\n"), "{request}");
    assert_eq!(header(&request, "x-evil"), None);
}

#[tokio::test]
async fn what_is_not_listed_is_refused_with_the_entry_to_add() {
    let server = Server::text("x").await;
    let empty = client(&[]);
    let error =
        refused(get(&empty, "https://api.stripe.com/v1?key=s3cret").await, Code::Security, "is empty");
    assert_eq!(error.details["add"], "https://api.stripe.com");
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    let other = client(&["https://api.stripe.com/v1"]);
    let error = refused(get(&other, server.url("/x")).await, Code::Security, "not in `allowedFetchUrls`");
    assert_eq!(error.details["add"], server.url("").as_str());
    assert!(error.help_of().unwrap().contains("allowedFetchUrls"));
    let error =
        refused(get(&other, "https://api.stripe.com/v2/x?q").await, Code::Security, "path is not below");
    assert_eq!(error.details["add"], "https://api.stripe.com/v2/x");
    refused(get(&other, "https://api.stripe.com/v1/..%2fx").await, Code::Security, "can be read as leaving");
    refused(get(&other, "https://u:p@api.stripe.com/v1").await, Code::Security, "user name or a password");
    refused(get(&other, "ftp://api.stripe.com/v1").await, Code::Security, "only http and https");
    refused(get(&other, "nonsense").await, Code::Fetch, "not a URL");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_plain_error() {
    let address = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let entry = format!("http://{address}");
    refused(get(&client(&[&entry]), entry.as_str()).await, Code::Fetch, "no connection to");
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_a_plain_error() {
    for bytes in [
        "",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        "HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ] {
        let server = Server::start(move |_| bytes.into()).await;
        refused(get(&client_for(&[&server]), server.url("/")).await, Code::Fetch, "");
    }
}

#[tokio::test]
async fn one_client_serves_many_calls_at_once() {
    let server = Server::start(|request| ok(request.split(' ').nth(1).unwrap())).await;
    let client = client_for(&[&server]);
    let calls = (0..20).map(|number| {
        let (client, url) = (&client, server.url(&format!("/{number}")));
        async move { get(client, url).await.unwrap().body }
    });
    let bodies = futures_util::future::join_all(calls).await;
    for (number, body) in bodies.iter().enumerate() {
        assert_eq!(body, format!("/{number}").as_bytes());
    }
}

#[test]
fn the_wire_form_of_a_request_is_read() {
    let read = |value: Value| FetchRequest::from_json(value);
    assert_eq!(read(json!({"url": "https://x.com"})).unwrap(), FetchRequest::new("https://x.com"));
    let full = read(json!({
        "url": "u", "method": "POST", "headers": [["a", "1"], ["a", "2"]], "body": "/wD+", "bodyEncoding": "base64",
        "redirect": "manual",
    }))
    .unwrap();
    assert_eq!(full.headers, [("a".into(), "1".into()), ("a".into(), "2".into())]);
    assert_eq!(full.body.as_deref(), Some(&[0xff, 0, 0xfe][..]));
    assert_eq!((full.method.as_str(), full.redirect), ("POST", Redirects::Manual));
    let text =
        read(json!({"url": "u", "headers": {"b": "2", "a": "1"}, "body": "é", "method": null})).unwrap();
    assert_eq!(text.headers, [("a".into(), "1".into()), ("b".into(), "2".into())]);
    assert_eq!(text.body.as_deref(), Some("é".as_bytes()));
    for (value, problem) in [
        (json!({}), "missing field `url`"),
        (json!({"url": 1}), "invalid type"),
        (json!("https://x.com"), "invalid type"),
        (json!({"url": "u", "headers": {"a": 1}}), "object of strings"),
        (json!({"url": "u", "headers": [["a"]]}), "object of strings"),
        (json!({"url": "u", "body": {"a": 1}}), "invalid type"),
        (json!({"url": "u", "body": "%", "bodyEncoding": "base64"}), "not base64"),
        (json!({"url": "u", "bodyEncoding": "hex"}), "unknown variant"),
        (json!({"url": "u", "credentials": "include"}), "unknown field"),
    ] {
        let error = read(value.clone()).expect_err(&value.to_string());
        assert_eq!(error.code, Code::Fetch);
        assert!(error.message.contains(problem), "`{}` lacks `{problem}`", error.message);
    }
}

#[test]
fn sloppy_base64_is_refused() {
    for text in
        ["Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "Zm-_", "Zé=="]
    {
        let request = json!({"url": "u", "body": text, "bodyEncoding": "base64"});
        assert!(FetchRequest::from_json(request).is_err(), "{text}");
    }
    for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")] {
        let request = json!({"url": "u", "body": text, "bodyEncoding": "base64"});
        let request = FetchRequest::from_json(request).unwrap();
        assert_eq!(request.body.as_deref(), Some(bytes.as_bytes()));
    }
}

#[test]
fn debug_output_holds_no_secret() {
    let request = FetchRequest {
        headers: vec![("authorization".into(), "s3cret".into())],
        body: Some(b"s3cret".to_vec()),
        ..FetchRequest::new("https://x.com/a?key=s3cret")
    };
    let text = format!("{request:?}");
    assert!(!text.contains("s3cret") && text.contains("authorization"), "{text}");
}

#[test]
fn a_client_that_fetches_nothing_is_cheap() {
    // Outside any runtime, and without reading a certificate.
    let started = std::time::Instant::now();
    for _ in 0..1000 {
        drop(FetchClient::new(list(&["https://x.com"]), FetchLimits::default()));
    }
    assert!(started.elapsed() < Duration::from_secs(1));
}
