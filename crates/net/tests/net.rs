//! The client against servers that misbehave, and secrets against everything that could show them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::error::Error as _;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use reqwest::header::HeaderMap;
use reqwest::{Client, Response};
use tgp_net::{
    BodyError, CappedBody, Secret, SecretRedaction, SecretScrubber, TooLarge, Transport, build_client,
    client_builder, content_encoding, is_loopback, read_body, read_plain_body, root_cause, tls_config,
};
use url::Url;

/// A server for one connection: it hands the request's head to the test and answers with `answer`.
fn serve(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, received) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
            head.extend(byte);
        }
        heads.send(String::from_utf8_lossy(&head).to_lowercase()).unwrap();
        answer(&mut stream);
    });
    (address, received)
}

fn text(text: &'static str) -> impl FnOnce(&mut TcpStream) + Send + 'static {
    move |stream| {
        let _ = stream.write_all(text.as_bytes());
    }
}

async fn plain_client() -> Client {
    build_client(client_builder(Transport::Plain), Vec::new()).await.unwrap()
}

async fn get(address: SocketAddr) -> Response {
    plain_client().await.get(format!("http://{address}/")).send().await.unwrap()
}

#[tokio::test]
async fn a_request_tells_no_more_than_it_must() {
    let (address, heads) = serve(text("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
    let mut response = get(address).await;
    assert_eq!(read_plain_body(&mut response, 2).await.unwrap(), b"ok");
    let head = heads.recv().unwrap();
    assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
    assert!(head.contains("user-agent: tgp/"), "{head}");
    assert!(!head.contains("referer") && !head.contains("cookie"), "{head}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (other, others) = serve(text("HTTP/1.1 200 OK\r\n\r\n"));
    let (address, _heads) = serve(move |stream| {
        let _ =
            write!(stream, "HTTP/1.1 302 Found\r\nlocation: http://{other}/\r\ncontent-length: 0\r\n\r\n");
    });
    assert_eq!(get(address).await.status(), 302);
    assert!(others.try_recv().is_err());
}

#[tokio::test]
async fn an_endless_body_is_read_up_to_the_limit() {
    let (ended, has_ended) = mpsc::channel();
    let (address, _heads) = serve(move |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        // Ends only when the client closes the connection.
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
        ended.send(()).unwrap();
    });
    let mut response = get(address).await;
    let error = read_body(&mut response, 10_000).await.unwrap_err();
    assert!(matches!(error, BodyError::TooLarge(TooLarge { limit: 10_000 })));
    drop(response);
    tokio::task::spawn_blocking(move || has_ended.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_not_read() {
    let (address, _heads) = serve(text("HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n"));
    assert!(matches!(read_body(&mut get(address).await, 10).await, Err(BodyError::TooLarge(_))));
}

#[tokio::test]
async fn a_body_that_ends_early_is_an_error() {
    let (address, _heads) = serve(text("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"));
    let error = read_body(&mut get(address).await, 10).await.unwrap_err();
    assert!(matches!(error, BodyError::Transport(_)), "{error}");
}

#[tokio::test]
async fn a_compressed_body_is_neither_decompressed_nor_taken_for_plain_text() {
    const BOMB: &str = "HTTP/1.1 200 OK\r\ncontent-encoding: GZip\r\ncontent-length: 4\r\n\r\nbomb";
    let (address, _heads) = serve(text(BOMB));
    assert_eq!(read_body(&mut get(address).await, 10).await.unwrap(), b"bomb");
    let (address, _heads) = serve(text(BOMB));
    let error = read_plain_body(&mut get(address).await, 10).await.unwrap_err();
    assert!(matches!(&error, BodyError::Compressed(encoding) if encoding == "gzip"), "{error}");
}

#[test]
fn only_a_compressed_body_has_an_encoding() {
    let headers = |values: &[&'static str]| -> HeaderMap {
        values.iter().map(|value| (reqwest::header::CONTENT_ENCODING, value.parse().unwrap())).collect()
    };
    for (values, expected) in [
        (vec![], None),
        (vec![""], None),
        (vec![" Identity "], None),
        (vec!["br"], Some("br")),
        (vec!["gzip, gzip"], Some("gzip, gzip")),
    ] {
        assert_eq!(content_encoding(&headers(&values)).as_deref(), expected, "{values:?}");
    }
    let mut twice = headers(&["identity"]);
    twice.append(reqwest::header::CONTENT_ENCODING, "zstd".parse().unwrap());
    assert_eq!(content_encoding(&twice).as_deref(), Some("zstd"));
}

#[tokio::test]
async fn a_client_for_https_refuses_plain_http() {
    // A machine without root certificates cannot build this client at all, which is an answer too.
    let Ok(client) = build_client(client_builder(Transport::Https), Vec::new()).await else { return };
    let (address, heads) = serve(text("HTTP/1.1 200 OK\r\n\r\n"));
    assert!(client.get(format!("http://{address}/")).send().await.is_err());
    assert!(heads.try_recv().is_err());
}

#[tokio::test]
async fn roots_that_are_no_certificates_are_refused() {
    let pem = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    assert!(build_client(client_builder(Transport::Https), pem).await.is_err());
}

#[test]
fn authorities_come_from_the_file_or_are_the_public_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authorities.pem");
    assert!(tls_config(None).is_ok());
    assert!(tls_config(Some(&file)).is_err());
    for (content, message) in [
        ("", "the file has no certificate"),
        ("no certificate\n", "the file has no certificate"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "invalid peer certificate"),
    ] {
        std::fs::write(&file, content).unwrap();
        let error = tls_config(Some(&file)).unwrap_err().to_string();
        assert!(error.contains(message), "{content}: {error}");
    }
}

#[test]
fn this_machine_is_recognised() {
    for (url, expected) in [
        ("http://localhost:1/x", true),
        ("http://127.8.0.1", true),
        ("http://[::1]/", true),
        ("http://localhost.example.org", false),
        ("http://127.0.0.1.example.org", false),
        ("http://10.0.0.1", false),
        ("http://[::ffff:8.8.8.8]", false),
        ("file:///x", false),
    ] {
        assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
    }
    assert_eq!(Transport::of(&Url::parse("http://a").unwrap()), Transport::Plain);
    assert_eq!(Transport::of(&Url::parse("https://a").unwrap()), Transport::Https);
}

#[test]
fn the_innermost_cause_is_found_inside_an_io_error() {
    let inner = "x".parse::<u8>().unwrap_err();
    let expected = inner.to_string();
    let outer = io::Error::other(io::Error::other(inner));
    assert!(outer.source().is_none() || root_cause(&outer) == expected);
    assert_eq!(root_cause(&outer), expected);
}

#[test]
fn a_secret_shows_itself_nowhere() {
    let secret = Secret::new("hunter2");
    let mut scrubber = SecretScrubber::default();
    scrubber.add(secret.expose());
    for shown in [format!("{secret}"), format!("{secret:?}"), format!("{secret:#?}"), format!("{scrubber:?}")]
    {
        assert!(!shown.contains("hunter2") && shown.contains("[secret]"), "{shown}");
    }
}

#[test]
fn secrets_and_userinfo_are_removed() {
    let mut scrubber = SecretScrubber::default();
    scrubber.add("t0ken");
    scrubber.add("ab");
    scrubber.add_key("§");
    scrubber.add_key("");
    for (text, clean) in [
        ("no access for t0ken at all", "no access for [secret] at all"),
        ("'https://me:pw@host/x.git' not found", "'https://host/x.git' not found"),
        ("https://a@b@host and ssh://git@host:22/x", "https://host and ssh://host:22/x"),
        ("mail me@x.org, see https://host/a@b", "mail me@x.org, see https://host/a@b"),
        ("https://t0ken@host", "https://host"),
        ("about", "about"),
        ("5 § 6", "5 [secret] 6"),
        ("", ""),
    ] {
        assert_eq!(scrubber.clean(text), clean);
    }
}

#[test]
fn bug_the_rest_of_a_longer_secret_is_not_shown() {
    let mut scrubber = SecretScrubber::default();
    scrubber.add("token");
    scrubber.add("token-and-more");
    scrubber.add("abab");
    assert_eq!(scrubber.clean("a token-and-more b"), "a [secret] b");
    assert_eq!(scrubber.clean("x ababab y"), "x [secret] y");
}

proptest! {
    #[test]
    fn no_secret_survives(
        secrets in prop::collection::vec("[a-cä]{4,6}", 1..4),
        pieces in prop::collection::vec("[a-cä ]{0,5}", 0..6),
    ) {
        let mut scrubber = SecretScrubber::default();
        for secret in &secrets {
            scrubber.add(secret);
        }
        let text = pieces.join(secrets.first().unwrap());
        let clean = scrubber.clean(&text);
        // What is between two placeholders was between two secrets, so no secret can be in it.
        for piece in clean.split("[secret]") {
            prop_assert!(text.contains(piece));
            for secret in &secrets {
                prop_assert!(!piece.contains(secret), "{text}: {clean}");
            }
        }
    }

    #[test]
    fn a_body_keeps_its_limit(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9), limit in 0..40_usize) {
        let mut body = CappedBody::new(limit);
        let fits = chunks.iter().all(|chunk| body.push(chunk).is_ok());
        let (kept, all) = (body.into_bytes(), chunks.concat());
        prop_assert!(kept.len() <= limit && all.starts_with(&kept));
        prop_assert_eq!(fits, all.len() <= limit);
        prop_assert!(!fits || kept == all);
    }
}

#[test]
fn bug_a_secret_was_hidden_by_escaped_breaks_of_lines() {
    let basic = STANDARD.encode("user:piSky-tGK/p+okens=enough-for-lines");
    for (secret, separator) in [
        ("Zq9-x7Kp/tok+en=with-more", "\\n"),
        ("Zq9-x7Kp/tok+en=with-more", "\\t"),
        ("Zq9-x7Kp/tok+en=with-more", "\\r\\n"),
        ("Zq9-x7Kp/tok+en=with-more", "\\u000a"),
        ("Zq9-x7Kp/tok+en=with-more", "\\u000D\\u000A"),
        ("Zq9-x7Kp/tok+en=with-more", "\\x0a"),
        ("Zq9-x7Kp/tok+en=with-more", "\\f"),
        ("Zq9-x7Kp/tok+en=with-more", "&#10;"),
        ("Zq9-x7Kp/tok+en=with-more", "%0D%0A"),
        ("Zq9-x7Kp/tok+en=with-more", "\r\n"),
        ("Zq9-x7Kp/tok+en=with-more", "=\r\n"),
        ("Zq9-x7Kp/tok+en=with-more", "=\n"),
        ("Zq9-x7Kp/tok+en=with-more", "\\\\n"),
        (basic.as_str(), "\\n"),
        (basic.as_str(), "\\\\r\\\\n"),
    ] {
        let redaction = SecretRedaction::new(&Secret::new(secret)).unwrap();
        for form in [secret.to_owned(), STANDARD.encode(format!("before {secret} after it"))] {
            for width in [4, 5, 20] {
                let lines: Vec<&str> =
                    form.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
                let text = format!("{{\"content\":\"{}\"}}", lines.join(separator));
                assert!(redaction.hides_in(text.as_bytes()), "{text}");
            }
        }
        let printable = secret.replace('=', "=3D").replace('/', "=2F").replace('-', "=2d");
        assert!(
            redaction.finds(printable.as_bytes()) || redaction.hides_in(printable.as_bytes()),
            "{printable}"
        );
    }
    let redaction = SecretRedaction::new(&Secret::new("Zq9-x7Kp/tok+en=with-more")).unwrap();
    for text in ["Zq9-x7Kp", "\\n\\t\\x\\x1\\", "=", "=\r", "=3", "a=b\nc=d", "{\"content\":\"dXNl\\ncjpa\"}"]
    {
        assert!(!redaction.hides_in(text.as_bytes()), "{text}");
    }
    // A sign that is protected without need is still the sign.
    assert!(redaction.hides_in(b"Zq9-x7Kp/\\tok+e\\n=with-more"));
}
