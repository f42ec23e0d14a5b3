//! HTTPS with our own root certificate.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tgp_contract::Code;
use tgp_fetch::{FetchClient, FetchLimits};

use crate::server::{ScriptedResolver, get, list, ok, refused};

pub const ROOT: &[u8] = include_bytes!("fixtures/root.pem");
const CERTIFICATE: &[u8] = include_bytes!("fixtures/server.pem");
const KEY: &[u8] = include_bytes!("fixtures/server.key");

/// Answers each connection once, with what `answer` makes of the server's name and the request; a handshake that fails
/// ends that connection only.
pub fn serve_with(answer: impl Fn(&str, &str) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut tls) =
                (stream.unwrap(), rustls::ServerConnection::new(Arc::clone(&config)).unwrap());
            let mut tls = rustls::Stream::new(&mut tls, &mut stream);
            let mut request = [0; 4096];
            if let Ok(length) = tls.read(&mut request) {
                let name = tls.conn.server_name().unwrap_or("none").to_owned();
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let _ = tls.write_all(&answer(&name, &request));
                tls.conn.send_close_notify();
                let _ = tls.flush();
            }
        }
    });
    address
}

/// Answers with the server's name.
fn serve() -> SocketAddr {
    serve_with(|name, _| ok(name))
}

fn client(entry: &str) -> FetchClient {
    FetchClient::new(list(&[entry]), FetchLimits::default())
        .with_resolver(ScriptedResolver::new(&[&["127.0.0.1"]]))
}

#[tokio::test]
async fn https_works_with_a_trusted_root() {
    let url = format!("https://localhost:{}", serve().port());
    let client = client(&url).with_extra_roots(ROOT);
    for _ in 0..2 {
        assert_eq!(get(&client, url.as_str()).await.unwrap().body, b"localhost");
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let url = format!("https://localhost:{}", serve().port());
    // The leaf as the only extra root: it vouches for nothing, and a machine without roots can run this.
    let client = client(&url).with_extra_roots(CERTIFICATE);
    refused(get(&client, url.as_str()).await, Code::Fetch, "no secure connection");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let port = serve().port();
    for host in ["other.localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{port}");
        let client = client(&url).with_extra_roots(ROOT);
        refused(get(&client, url.as_str()).await, Code::Fetch, "no secure connection");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_a_plain_error() {
    let address = crate::server::accept(|mut stream| async move {
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, &crate::server::ok("plain")).await;
    })
    .await;
    let url = format!("https://localhost:{}", address.port());
    refused(
        get(&client(&url).with_extra_roots(ROOT), url.as_str()).await,
        Code::Fetch,
        "no secure connection",
    );
}

#[tokio::test]
async fn a_root_that_is_no_certificate_is_a_plain_error() {
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let client = client("https://localhost:1").with_extra_roots(broken);
    refused(get(&client, "https://localhost:1").await, Code::Fetch, "could not be set up");
}
