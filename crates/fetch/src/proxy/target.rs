//! The target of a `CONNECT`: parsed once, and from then on the only form that is compared, resolved and reported.

use std::fmt;

use url::Host;

/// Longest host name, and longest label of one (RFC 1035).
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// A host and a port. Prints as `host:port`, in the form of an entry of [`ProxyHosts`](super::ProxyHosts).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTarget {
    host: Host<String>,
    port: u16,
}

impl ProxyTarget {
    /// Understands `host:port` and nothing that could mean something else to a resolver: no credentials, no escapes, no
    /// letters beyond ASCII (a client sends the `xn--` form), no number that is an address in disguise (`127.1`,
    /// `0x7f000001`). Upper case and one final dot are removed, since they do not change what a name means.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = parse_port(port)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match bracketed {
            Some(address) => Host::Ipv6(address.parse().ok()?),
            None => plain_host(host)?,
        };
        Some(Self { host, port })
    }

    /// The host; an IPv6 address is in brackets.
    #[must_use]
    pub fn host(&self) -> String {
        self.host.to_string()
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url_host(&self) -> Host<&str> {
        match &self.host {
            Host::Domain(name) => Host::Domain(name),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        }
    }
}

impl fmt::Display for ProxyTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

/// A port in its usual form: digits without a leading zero, and not 0.
pub(super) fn parse_port(text: &str) -> Option<u16> {
    let is_usual = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_usual)
}

/// A name or an IPv4 address that has no other reading.
pub(super) fn plain_host(text: &str) -> Option<Host<String>> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_plain = |label: &str| {
        (1..=LABEL_BYTES).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if name.len() > NAME_BYTES || !name.split('.').all(is_plain) {
        return None;
    }
    // The URL parser knows the spellings of addresses and the rules of `xn--`. What it would change is refused.
    Host::parse(&name).ok().filter(|host| host.to_string() == name)
}
