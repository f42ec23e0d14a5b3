//! The one way to build an HTTP client.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, redirect};
use rustls::crypto::{CryptoProvider, ring};
use url::{Host, Url};

use crate::root_cause;

/// A connection that takes longer will not come. Callers that know better set their own limit.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Which of the two kinds of connection a client makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Plain HTTP. No certificates are loaded, so that a machine without them can use a local service.
    Plain,
    /// HTTPS and nothing else, verified with the root certificates of the system.
    Https,
}

impl Transport {
    /// The transport for a URL: [`Transport::Plain`] for `http`, [`Transport::Https`] for everything else.
    #[must_use]
    pub fn of(url: &Url) -> Self {
        if url.scheme() == "http" { Self::Plain } else { Self::Https }
    }
}

/// Why a client could not be built.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ClientError(String);

/// A client that follows no redirect, uses no proxy, cookies or `Referer`, asks for bodies that are not compressed and
/// decompresses nothing.
///
/// Everything is set here even where it is the default: another crate of the program can switch features of the HTTP
/// library on, and they would be on here too. The caller adds what it needs, such as a resolver or a total timeout.
pub fn client_builder(transport: Transport) -> ClientBuilder {
    // The library panics without a process-wide provider; a second call loses the race and changes nothing.
    if CryptoProvider::get_default().is_none() {
        let _ = ring::default_provider().install_default();
    }
    let mut headers = HeaderMap::new();
    // A compressed body can be a bomb, and a compressed stream is held back until a block is full.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let builder = Client::builder()
        .tls_backend_rustls()
        // A proxy of the environment must not see keys.
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .referer(false)
        // A redirect could name another host, and keys must not go there.
        .redirect(redirect::Policy::none())
        .default_headers(headers)
        .user_agent(concat!("tgp/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT);
    match transport {
        Transport::Plain => builder.tls_certs_only([]),
        Transport::Https => builder.https_only(true),
    }
}

/// Builds the client on a thread for blocking work: the root certificates of the system are read from many files.
///
/// `extra_roots` are certificates in PEM that are trusted in addition to those of the system; none when it is
/// empty.
///
/// # Errors
/// When there are no root certificates, or `extra_roots` has none.
pub async fn build_client(builder: ClientBuilder, extra_roots: Vec<u8>) -> Result<Client, ClientError> {
    let build = move || {
        let builder = match extra_roots.as_slice() {
            [] => builder,
            pem => builder.tls_certs_merge(Certificate::from_pem_bundle(pem)?),
        };
        builder.build()
    };
    tokio::task::spawn_blocking(build)
        .await
        .map_err(|error| ClientError(error.to_string()))?
        .map_err(|error| ClientError(root_cause(&error)))
}

/// Whether a URL names this machine, so that a key can be sent to it over plain HTTP.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    url.host().is_some_and(|host| is_loopback_host(&host))
}

/// The same for a host. A scheme that the URL standard does not know leaves addresses as names.
#[must_use]
pub fn is_loopback_host<Name: AsRef<str>>(host: &Host<Name>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => {
            let name = name.as_ref();
            name.eq_ignore_ascii_case("localhost")
                || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}
