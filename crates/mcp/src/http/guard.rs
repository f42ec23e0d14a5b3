//! What is checked before the protocol sees a request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, StatusCode};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tgp_contract::CapabilityToken;

use super::sessions::{SessionOwners, SessionUse};
use super::shares::{Room, Shares};
use super::{ENDPOINT, Refusal, SESSION_HEADER};
use crate::client::{Client, Shared};

/// How long runs and answers of a client without a session are kept. Newer revisions have no sessions.
const CLIENT_IDLE: Duration = Duration::from_secs(900);
/// Clients at a time.
const MAX_CLIENTS: usize = 64;
/// Bytes of a token.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// The clients of the server, and to whom its sessions belong.
pub(super) struct Guard {
    shared: Arc<Shared>,
    manager: Arc<LocalSessionManager>,
    port: u16,
    pub(super) sessions: SessionOwners,
    clients: Mutex<Shares<Arc<Client>>>,
}

/// A request that was let in: its client, and its session where it names one.
pub(super) struct Admitted {
    pub(super) client: Arc<Client>,
    pub(super) session: Option<SessionUse>,
}

impl Guard {
    pub(super) fn new(shared: Arc<Shared>, manager: Arc<LocalSessionManager>, port: u16) -> Self {
        let clients = Mutex::new(Shares::new(MAX_CLIENTS));
        Self { shared, manager, port, sessions: SessionOwners::default(), clients }
    }

    /// Returns the client of a request, or why there is none.
    pub(super) fn admit(&self, parts: &Parts) -> Result<Admitted, Refusal> {
        let refuse = |status, message: &str| Err(Refusal::new(status, message));
        if !is_own_host(&parts.headers, self.port) {
            return refuse(StatusCode::FORBIDDEN, "the Host is not this server");
        }
        // Browsers send it for other pages, none of which has business here. This server has no pages of its own.
        if !is_own_origin(&parts.headers, self.port) {
            return refuse(StatusCode::FORBIDDEN, "requests of web pages are not served");
        }
        if parts.uri.path() != ENDPOINT {
            return refuse(StatusCode::NOT_FOUND, "the endpoint is /mcp");
        }
        let Some(token) = bearer(&parts.headers) else {
            return refuse(
                StatusCode::UNAUTHORIZED,
                "send the token of the token file as `Authorization: Bearer`",
            );
        };
        let client = match self.client(&token) {
            Ok(Some(client)) => client,
            Ok(None) => {
                return refuse(StatusCode::SERVICE_UNAVAILABLE, "all clients of this token are at work");
            }
            Err(()) => return refuse(StatusCode::UNAUTHORIZED, "the token is not valid"),
        };
        let session = match parts.headers.get(SESSION_HEADER).map(|id| id.to_str()) {
            None => None,
            Some(named) => {
                let begun = named.ok().and_then(|id| self.sessions.begin(id, &client.family));
                // The session of another token is as if it were not there.
                let Some(begun) = begun else { return refuse(StatusCode::NOT_FOUND, "unknown session") };
                Some(begun)
            }
        };
        Ok(Admitted { client, session })
    }

    /// Notes to whom a new session belongs. It may take the place of another session.
    pub(super) async fn bind(&self, id: &str, family: &str) -> Result<(), Refusal> {
        match self.sessions.bind(id, family) {
            Room::Free => Ok(()),
            Room::From(other) => {
                let _ = self.manager.close_session(&other.as_str().into()).await;
                Ok(())
            }
            Room::Full => {
                let _ = self.manager.close_session(&id.into()).await;
                let message = "all sessions of this token are at work";
                Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message))
            }
        }
    }

    /// The client of a token. Calls carry the token that their request showed, so each token has a client of its own.
    fn client(&self, token: &CapabilityToken) -> Result<Option<Arc<Client>>, ()> {
        let key = tgp_contract::canonical::sha256_hex(token.reveal().as_bytes());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.used(&key) {
            // It may have expired or been revoked since.
            self.shared.kernel.check_token(token).map_err(drop)?;
            return Ok(Some(Arc::clone(client)));
        }
        let token = self.shared.bounded(token).map_err(drop)?;
        let client = Arc::new(Client::new(&self.shared, token).map_err(drop)?);
        let is_busy = |client: &Arc<Client>| Arc::strong_count(client) > 1;
        match clients.take(&key, &client.family, Arc::clone(&client), is_busy) {
            Room::Full => Ok(None),
            Room::Free | Room::From(_) => Ok(Some(client)),
        }
    }

    /// Removes sessions that have ended and clients that are gone, with their runs.
    pub(super) async fn clean_up(&self) {
        for id in self.sessions.ids() {
            let is_open = self.manager.has_session(&id.as_str().into()).await.unwrap_or(false);
            if !is_open {
                self.sessions.forget(&id);
            }
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, family, used, _| used.elapsed() < CLIENT_IDLE || self.sessions.has(family));
    }
}

/// The token of a request. It is taken from this header alone: addresses and cookies end up in logs and in browsers.
fn bearer(headers: &HeaderMap) -> Option<CapabilityToken> {
    let mut values = headers.get_all(http::header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let is_token =
        scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MAX_TOKEN_BYTES;
    is_token.then(|| CapabilityToken::new(token.to_owned()))
}

/// Whether the request was meant for this server: a page that has pointed a name of its own here shows that name.
fn is_own_host(headers: &HeaderMap, port: u16) -> bool {
    let mut hosts = headers.get_all(http::header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    host.to_str().is_ok_and(|host| own_hosts(port).iter().any(|name| name.eq_ignore_ascii_case(host)))
}

/// Whether the request has no `Origin`, as those of programs, or this server itself as its origin.
fn is_own_origin(headers: &HeaderMap, port: u16) -> bool {
    headers.get_all(http::header::ORIGIN).iter().all(|origin| {
        let own = own_hosts(port).map(|name| format!("http://{name}"));
        origin.to_str().is_ok_and(|origin| own.iter().any(|name| name.eq_ignore_ascii_case(origin)))
    })
}

/// The names of this server.
pub(super) fn own_hosts(port: u16) -> [String; 3] {
    ["127.0.0.1", "[::1]", "localhost"].map(|name| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{bearer, is_own_host, is_own_origin};

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn only_the_own_host_is_served() {
        for host in ["127.0.0.1:7000", "[::1]:7000", "LocalHost:7000"] {
            assert!(is_own_host(&headers("host", &[host]), 7000), "{host}");
        }
        for host in ["127.0.0.1", "evil.test:7000", "127.0.0.1:7001", "localhost.evil.test:7000", ""] {
            assert!(!is_own_host(&headers("host", &[host]), 7000), "{host}");
        }
        assert!(!is_own_host(&headers("host", &["localhost:7000", "localhost:7000"]), 7000));
        assert!(!is_own_host(&HeaderMap::new(), 7000));
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        assert!(is_own_origin(&HeaderMap::new(), 7000));
        assert!(is_own_origin(&headers("origin", &["http://localhost:7000"]), 7000));
        for origin in ["null", "https://localhost:7000", "http://localhost", "http://evil.test:7000", ""] {
            assert!(!is_own_origin(&headers("origin", &[origin]), 7000), "{origin}");
        }
    }

    #[test]
    fn one_bearer_token_is_taken() {
        let token = bearer(&headers("authorization", &["bearer  tgp1.abc "])).unwrap();
        assert_eq!(token.reveal(), "tgp1.abc");
        for wrong in [&["Basic tgp1.abc"][..], &["Bearer "], &["Bearer a", "Bearer b"], &[]] {
            assert!(bearer(&headers("authorization", wrong)).is_none(), "{wrong:?}");
        }
    }
}
