//! What a proxy reports to its owner, and what it answers to a client that it refuses.

use std::net::IpAddr;

use super::ProxyTarget;

/// One decision of a proxy, or the end of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyEvent {
    /// Where the client wanted to go; none when its request did not say it in an acceptable way.
    pub target: Option<ProxyTarget>,
    /// What became of it.
    pub outcome: ProxyOutcome,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyOutcome {
    /// The host is connected. [`ProxyOutcome::Closed`] follows.
    Opened,
    /// A rule or a limit forbids it. Nothing was sent to the host.
    Refused(ProxyRefusal),
    /// The host is listed and could not be reached, for this reason.
    Failed(String),
    /// The tunnel has ended, or the proxy with it.
    Closed {
        /// Bytes from the client to the host.
        sent: u64,
        /// Bytes from the host to the client.
        received: u64,
    },
}

/// Why a request is refused. The text says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyRefusal {
    /// The request head is not plainly a `CONNECT`.
    #[error("invalid request head: {0}; expected `CONNECT host:port HTTP/1.1`")]
    Head(&'static str),
    /// The head did not arrive in time.
    #[error("the request head took longer than {seconds} s")]
    HeadTime {
        /// The limit.
        seconds: u64,
    },
    /// Another method, such as `GET` of an `http:` URL.
    #[error("this proxy only opens tunnels: use an `https:` URL, or send `CONNECT host:port`")]
    Method,
    /// No entry covers the target.
    #[error("`{0}` is not listed: `hosts` of the definition lists what can be reached")]
    Unlisted(ProxyTarget),
    /// The owner of the proxy was asked, and does not allow it.
    #[error("`{target}` is not allowed: {why}")]
    Denied {
        /// What was asked for.
        target: ProxyTarget,
        /// As the owner said it.
        why: String,
    },
    /// The target has no address that it may have.
    #[error(
        "`{target}` is at {address}, which is a {kind} address: `hosts` of the definition must list that address itself"
    )]
    Address {
        /// The listed target.
        target: ProxyTarget,
        /// The first address of it.
        address: IpAddr,
        /// The name of the range.
        kind: &'static str,
    },
    /// As many tunnels as the proxy may have are open.
    #[error("{limit} tunnels are open, which is the limit: close one and try again")]
    TooManyTunnels {
        /// The limit.
        limit: usize,
    },
}

impl ProxyRefusal {
    /// Code and reason of the answer, and the header that goes with it.
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self::Head(_) => "400 Bad Request",
            Self::HeadTime { .. } => "408 Request Timeout",
            Self::Method => "405 Method Not Allowed\r\nAllow: CONNECT",
            Self::Unlisted(_) | Self::Denied { .. } | Self::Address { .. } => "403 Forbidden",
            Self::TooManyTunnels { .. } => "503 Service Unavailable",
        }
    }
}

/// Code and reason when the host cannot be reached.
pub(super) const UNREACHABLE: &str = "502 Bad Gateway";
