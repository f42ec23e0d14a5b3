//! The hosts that a proxy connects to.

use url::{Host, Url};

use super::ProxyTarget;
use super::target::{parse_port, plain_host};
use crate::entry::{HostRule, host_rule, masked};
use crate::resolver::{Scope, is_localhost};

/// The port of an entry that names none.
const DEFAULT_PORT: u16 = 443;

/// The hosts that a proxy connects to.
///
/// | entry | allows |
/// | --- | --- |
/// | `api.example.com` | that host, port 443 |
/// | `api.example.com:8443` | that host and port |
/// | `*.example.com` | every name below `example.com` at any depth, port 443; not `example.com` itself |
/// | `10.0.0.7:8443`, `[fd00::7]` | that address, although it is a private one |
/// | `localhost:8080` | that name and port, as long as it resolves to a loopback address of this machine |
///
/// The rules are those of [`AllowList`](crate::AllowList), which has the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyHosts {
    entries: Vec<HostEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HostEntry {
    host: HostRule,
    port: u16,
}

/// One entry that could not be understood. It names the entry, so that the definition can be repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hosts[{index}]: `{entry}` {problem}")]
pub struct ProxyHostsError {
    index: usize,
    entry: String,
    problem: &'static str,
}

impl ProxyHostsError {
    /// The place of the entry in the list, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The entry as written; a password in it is masked.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// What is wrong with it, and what to write instead.
    #[must_use]
    pub fn problem(&self) -> &str {
        self.problem
    }
}

impl ProxyHosts {
    /// Understands the entries.
    ///
    /// # Errors
    /// Names the first entry that is wrong, and why.
    pub fn parse<Text: AsRef<str>>(entries: &[Text]) -> Result<Self, ProxyHostsError> {
        let entries = entries.iter().enumerate().map(|(index, entry)| {
            let entry = entry.as_ref();
            HostEntry::parse(entry).map_err(|problem| ProxyHostsError {
                index,
                entry: masked(entry),
                problem,
            })
        });
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The addresses that a name may have at this port; none when no entry covers it. Addresses are covered only by an entry
    /// that names them, and need no further check.
    pub(super) fn scope_of(&self, target: &ProxyTarget) -> Option<Scope> {
        let host = target.url_host();
        let covers = |entry: &&HostEntry| entry.port == target.port() && entry.host.covers(&host);
        let mut covering = self.entries.iter().filter(covers).peekable();
        covering.peek()?;
        let is_named = covering.any(|entry| matches!(entry.host, HostRule::Exact(_)));
        let is_local = matches!(host, Host::Domain(name) if is_localhost(name));
        Some(if is_local && is_named { Scope::Loopback } else { Scope::Public })
    }
}

impl HostEntry {
    fn parse(text: &str) -> Result<Self, &'static str> {
        const NOT_A_HOST: &str = "is not a host; write `host` or `host:port`";
        // The URL parser drops, repairs or decodes these silently; in a security setting that hides a mistake.
        if text.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
            return Err("has a blank or a control character in it; remove it");
        }
        if text.contains(['/', '\\', '?', '#']) {
            return Err("is a URL or has a path; write `host` or `host:port` alone");
        }
        if text.contains('@') {
            return Err("has credentials in it; write `host` or `host:port` alone");
        }
        if text.contains('%') {
            return Err("has an escape in it; write the name that is meant");
        }
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an address are inside its brackets.
            Some((host, port)) if !port.ends_with(']') => {
                (host, parse_port(port).ok_or("has an invalid port; write a number from 1 to 65535")?)
            }
            _ => (text, DEFAULT_PORT),
        };
        if host.contains(':') && !host.starts_with('[') {
            return Err("has several colons; write an IPv6 address in brackets");
        }
        let url = Url::parse(&format!("https://{host}")).map_err(|_| NOT_A_HOST)?;
        let host = host_rule(&url.host().ok_or(NOT_A_HOST)?)?;
        // A URL may have names that no target can have, such as `a.com,b.com`.
        match &host {
            HostRule::Exact(Host::Domain(name)) | HostRule::Below(name) if plain_host(name).is_none() => {
                Err(NOT_A_HOST)
            }
            _ => Ok(Self { host, port }),
        }
    }
}
