//! Streamable HTTP for hosts on this machine.
//!
//! It listens on the loopback addresses only. Before the protocol sees a request, this layer has checked the `Host`, that no
//! browser page sent it, the token, that an MCP session belongs to the token, and the size of the body.

mod guard;
mod sessions;
mod shares;
mod token_file;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tgp::Kernel;
use tgp_contract::{Code, JsonLimits, ToolError, measure};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use crate::client::Shared;
use crate::handler::{ClientSource, Handler};
use crate::options::ServerOptions;
use crate::transport::MAX_MESSAGE_BYTES;
use guard::{Admitted, Guard, own_hosts};

type Body = BoxBody<Bytes, Infallible>;
type Service = StreamableHttpService<Handler, LocalSessionManager>;

/// The path of the endpoint.
const ENDPOINT: &str = "/mcp";
/// The header by which a session is named.
const SESSION_HEADER: &str = "mcp-session-id";
/// Connections at a time. Each has one stream.
const MAX_CONNECTIONS: usize = 128;
/// How long a client may take to send a request, and to stay silent between two of them.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// How long a session may be silent.
const SESSION_IDLE: Duration = Duration::from_secs(600);
/// How often sessions and clients that are over are removed.
const CLEAN_UP_INTERVAL: Duration = Duration::from_secs(30);
/// How often a stream without events is kept open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Where the server listens.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// 0 chooses a free one.
    pub port: u16,
    /// The file with the token for clients; only its owner may read it.
    pub token_file: PathBuf,
}

/// A server that listens.
pub struct HttpServer {
    listeners: Vec<TcpListener>,
    port: u16,
    guard: Arc<Guard>,
    service: Service,
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HttpServer").field("port", &self.port).finish_non_exhaustive()
    }
}

impl HttpServer {
    /// Listens on 127.0.0.1 and ::1. The token file is made where there is none; its token stays valid over restarts.
    ///
    /// # Errors
    /// `ECONFIG` when the port or the token file cannot be used, `EVALIDATION` for options that name an unknown tool.
    pub async fn bind(
        kernel: Arc<Kernel>,
        options: ServerOptions,
        http: &HttpOptions,
    ) -> Result<Self, ToolError> {
        let shared = Arc::new(Shared::new(Arc::clone(&kernel), options)?);
        let first = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, http.port))).await?;
        let port = first.local_addr().map_or(http.port, |address| address.port());
        let mut listeners = vec![first];
        // A machine without IPv6 has only the other one.
        listeners.extend(listen(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await.ok());
        token_file::ensure(&kernel, &http.token_file, &shared.options.caveats("mcp http")).await?;

        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE);
        let sessions = Arc::new(sessions);
        let mut config = StreamableHttpServerConfig::default()
            .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
            .with_allowed_origins(own_hosts(port).map(|name| format!("http://{name}")))
            .enforce_origin_validation();
        config.legacy_session_mode = true;
        let handled = Arc::clone(&shared);
        let factory = move || Ok(Handler::new(ClientSource::OfRequest, Arc::clone(&handled)));
        let service = StreamableHttpService::new(factory, Arc::clone(&sessions), config);
        let guard = Arc::new(Guard::new(shared, sessions, port));
        Ok(Self { listeners, port, guard, service })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of the endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{ENDPOINT}", self.port)
    }

    /// Serves until the future is dropped; with it every open call is cancelled, and recorded as such.
    pub async fn serve(self) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut strangers: VecDeque<Stranger> = VecDeque::new();
        let mut waiting = None;
        let mut clean_up = tokio::time::interval(CLEAN_UP_INTERVAL);
        loop {
            while connections.try_join_next().is_some() {}
            strangers.retain(Stranger::is_one);
            // One connection waits here, and more in the system's own queue, which is bounded as well.
            let next = async {
                if waiting.is_none() {
                    waiting = Some(accept(&self.listeners).await?);
                }
                if places.available_permits() == 0
                    && let Some(oldest) = strangers.pop_front()
                {
                    oldest.task.abort();
                }
                let place = Arc::clone(&places).acquire_owned().await.ok()?;
                Some((waiting.take()?, place))
            };
            let accepted = tokio::select! {
                accepted = next => accepted,
                _ = clean_up.tick() => {
                    self.guard.clean_up().await;
                    continue;
                }
            };
            // Out of descriptors, or a client that was gone at once: neither is the server's end.
            let Some((stream, place)) = accepted else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (guard, service) = (Arc::clone(&self.guard), self.service.clone());
            let is_known = Arc::new(AtomicBool::new(false));
            let known = Arc::clone(&is_known);
            let task = connections.spawn(async move {
                connection(stream, guard, service, known).await;
                drop(place);
            });
            strangers.push_back(Stranger { task, is_known });
        }
    }
}

/// A connection that has shown no valid token. Where places are short the oldest of them ends.
struct Stranger {
    task: AbortHandle,
    is_known: Arc<AtomicBool>,
}

impl Stranger {
    fn is_one(&self) -> bool {
        !self.task.is_finished() && !self.is_known.load(Ordering::Acquire)
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ToolError> {
    TcpListener::bind(address).await.map_err(|error| {
        ToolError::new(Code::Config, format!("cannot listen at {address}: {error}"))
            .help("choose another port with `--http`, or 0 for a free one")
    })
}

/// The next connection of any listener.
async fn accept(listeners: &[TcpListener]) -> Option<TcpStream> {
    let accepted = match listeners {
        [one] => one.accept().await,
        [one, other, ..] => tokio::select! {
            accepted = one.accept() => accepted,
            accepted = other.accept() => accepted,
        },
        [] => std::future::pending().await,
    };
    accepted.ok().map(|(stream, _)| stream)
}

async fn connection(stream: TcpStream, guard: Arc<Guard>, service: Service, is_known: Arc<AtomicBool>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let (guard, service, is_known) = (Arc::clone(&guard), service.clone(), Arc::clone(&is_known));
        async move { Ok::<_, Infallible>(answer(&guard, &service, &is_known, request).await) }
    });
    // A connection that breaks is its client's business.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_PATIENCE)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(
    guard: &Guard,
    service: &Service,
    is_known: &AtomicBool,
    request: Request<Incoming>,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let Admitted { client, session } = match guard.admit(&parts) {
        Ok(admitted) => admitted,
        Err(refusal) => return refusal.response(),
    };
    is_known.store(true, Ordering::Release);
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal.response(),
    };
    let family = client.family.clone();
    // The token has done its work; the protocol and its logs need not see it.
    parts.headers.remove(http::header::AUTHORIZATION);
    parts.extensions.insert(client);
    let closes = parts.method == http::Method::DELETE;
    let named = parts.headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let mut response = service.handle(Request::from_parts(parts, Full::new(body))).await;
    let begun = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned);
    // An answer repeats the id of its own session, which may have ended meanwhile.
    if let Some(id) = begun.filter(|_| named.is_none())
        && let Err(refusal) = guard.bind(&id, &family).await
    {
        return refusal.response();
    }
    if let Some(id) = named.filter(|_| closes && response.status().is_success()) {
        guard.sessions.forget(&id);
        // Clients expect that a session is over by now, not that its end was accepted.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    // The session is in use until the answer was sent.
    response.map(|body| {
        let hold = move |frame| {
            let _ = &session;
            frame
        };
        body.map_frame(hold).boxed()
    })
}

/// The whole body, in time, within its size, and with its values counted.
async fn read_body(body: Incoming) -> Result<Bytes, Refusal> {
    let collected =
        tokio::time::timeout(REQUEST_PATIENCE, Limited::new(body, MAX_MESSAGE_BYTES).collect()).await;
    let body = match collected {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let message = format!("a message has at most {MAX_MESSAGE_BYTES} bytes");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        Err(_) => return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request was not sent in time")),
    };
    match measure(&body, JsonLimits::ARGUMENTS) {
        Ok(_) => Ok(body),
        Err(error) => Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())),
    }
}

/// An answer of this layer. None of them names a host, so that no page of a browser can read it.
struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn response(self) -> Response<Body> {
        let mut response = Response::new(Full::new(Bytes::from(self.message)).boxed());
        *response.status_mut() = self.status;
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(http::header::CONTENT_TYPE, plain);
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(http::header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}
