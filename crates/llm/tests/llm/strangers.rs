//! Servers that are something else: another attempt would get the same.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tgp_contract::ToolError;
use tgp_llm::Wire;

use crate::server::{Answer, Server};
use crate::support::{hello, patient, play};

/// Made for these tests, trusted by no client.
const CERTIFICATE: &[u8] = include_bytes!("fixtures/server.pem");
const KEY: &[u8] = include_bytes!("fixtures/server.key");

/// Treats every connection alike, and counts them.
fn listen(treat: impl Fn(std::net::TcpStream) + Send + 'static) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            seen.fetch_add(1, Ordering::SeqCst);
            treat(stream.unwrap());
        }
    });
    (port, count)
}

async fn failure(base: &str) -> ToolError {
    play(&*patient(Wire::OpenAiChat, base, 4), hello()).await.unwrap_err()
}

fn check(error: &ToolError, message: &str, help: &str) {
    assert!(error.message.contains(message), "{error}");
    assert!(error.help_of().unwrap().contains(help), "{error:?}");
    assert_eq!(
        (&error.details["attempts"], &error.details["retryable"]),
        (&1.into(), &false.into()),
        "{error}"
    );
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_told_once() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let (port, count) = listen(move |mut stream| {
        let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut request = [0; 4096];
        let read = rustls::Stream::new(&mut tls, &mut stream).read(&mut request);
        assert!(!matches!(read, Ok(1..)), "the client has sent its request");
    });
    let error = failure(&format!("https://127.0.0.1:{port}")).await;
    check(&error, "the server's certificate is not trusted (", "this system trusts");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_port_that_speaks_otherwise_is_told_once() {
    let answers = |bytes: &'static [u8]| {
        listen(move |mut stream| {
            let mut request = [0; 65536];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(bytes);
        })
    };
    let (plain, connections) = answers(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
    check(&failure(&format!("https://127.0.0.1:{plain}")).await, "this is not a TLS server", "`http://`");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    // The alert by which a TLS server answers plain words, and the greeting of another protocol.
    for greeting in
        [&b"\x15\x03\x01\x00\x02\x02\x16"[..], b"SSH-2.0-OpenSSH_9.9\r\n", b"\x00\xff\x17garbage\r\n\r\n"]
    {
        let (port, connections) = answers(greeting);
        let error = failure(&format!("http://127.0.0.1:{port}")).await;
        check(&error, "this is not an HTTP server, or it speaks TLS on this port (", "`https://`");
        assert_eq!(connections.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn answers_that_cannot_be_read_are_asked_for_once() {
    let head = |rest: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{rest}\r\n");
    let with = |rest: &str, body: &[u8]| Answer::raw([head(rest).as_bytes(), body].concat());
    let many: String = (0..2000).map(|number| format!("x-{number}: {}\r\n", "a".repeat(1000))).collect();
    let garbage: Vec<u8> =
        (0..3000_u32).map(|number| (number * 7 % 256) as u8).filter(|byte| *byte != 10).collect();
    let cases = [
        (
            with("content-encoding: gzip\r\nconnection: close\r\n", b"\x1f\x8b\x08\x00\x00"),
            "compressed with `gzip`",
        ),
        (with(&many, b""), "this is not an HTTP server"),
        (with("connection: close\r\n", &garbage), "its answer is not understood"),
        (with("connection: close\r\n", b"<html>\n<p>Sign in</p>\n"), "it is not a stream of events: <html>"),
        (with("connection: close\r\n", b"{\"choices\":[]}"), "it is not a stream of events: {"),
        (with("transfer-encoding: chunked\r\n", b"5\r\ndata:\r\nZZZ\r\n"), "its answer is not understood"),
    ];
    for (answer, expected) in cases {
        let server = Server::start(vec![answer]).await;
        let error = failure(&server.base).await;
        check(&error, expected, "");
        assert_eq!(server.requests().len(), 1, "{expected}");
    }
    // The status counts even when its words cannot be read.
    let zipped = Answer::status(503, &[("content-encoding", "gzip")], "\u{1f}zip");
    let server = Server::start(vec![zipped.clone(), zipped.clone(), zipped.clone(), zipped]).await;
    let error = failure(&server.base).await;
    assert!(error.message.ends_with("it answered with status 503"), "{error}");
    assert_eq!(server.requests().len(), 4);
}
