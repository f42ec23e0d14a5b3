//! The URLs that a tool may fetch.

use url::{Host, Url};

use super::entry::{AllowListError, Entry, HostRule};
use super::path;

/// The URLs that tools may fetch: `allowedFetchUrls` of the configuration, understood.
///
/// An entry is an origin and, if wanted, a path below which everything is allowed:
///
/// | entry | allows |
/// | --- | --- |
/// | `https://api.stripe.com` | that scheme, host and port, every path |
/// | `https://api.x.com/v1` or `/v1/` | `/v1` and what lies below it; not `/v10` |
/// | `https://*.example.com` | every name below `example.com` at any depth; not `example.com` itself |
/// | `http://127.0.0.1:8080` | that address and port, although it is a loopback address |
/// | `http://localhost:8080` | that name and port, as long as it resolves to a loopback address |
///
/// Parsed URLs are compared, never text. The star covers subdomains of one owner; what a public suffix is
/// (`*.co.uk`, `*.github.io`) is not known here, so such an entry means what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<Entry>,
}

/// Why a URL may not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    #[error("it is not a URL ({0})")]
    Malformed(String),
    #[error("only http and https URLs can be fetched, not `{0}:`")]
    Scheme(String),
    #[error("it carries a user name or a password")]
    Credentials,
    #[error("no URL is allowed: `allowedFetchUrls` is empty, or waits for `tgp trust` by a person")]
    EmptyList,
    #[error("its origin is not in `allowedFetchUrls`")]
    Origin,
    #[error("its path is not below one that `allowedFetchUrls` has for this origin")]
    Path,
    #[error("its path can be read as leaving the one that `allowedFetchUrls` has for this origin")]
    DisguisedPath,
}

impl AllowList {
    /// Understands the entries, or says which one is wrong and why.
    pub fn parse(entries: &[String]) -> Result<Self, AllowListError> {
        let entries = entries.iter().enumerate().map(|(index, text)| Entry::parse(index, text));
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[must_use]
    pub fn allows(&self, url: &str) -> bool {
        self.check(url).is_ok()
    }

    /// Parses `url` and gives back the form that was compared. Only that form may be sent.
    pub fn check(&self, url: &str) -> Result<Url, UrlRefusal> {
        let mut url = Url::parse(url).map_err(|error| UrlRefusal::Malformed(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlRefusal::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRefusal::Credentials);
        }
        // A fragment is never sent, and an absolute name is sent without its dot, as it was compared.
        url.set_fragment(None);
        if let Some(name) = url.domain().and_then(|name| name.strip_suffix('.')).map(str::to_owned) {
            // With one dot gone, `127.0.0.1..` would turn from a name into an address.
            if name.ends_with('.') {
                return Err(UrlRefusal::Malformed("its host ends in an empty label".to_owned()));
            }
            url.set_host(Some(&name)).map_err(|error| UrlRefusal::Malformed(error.to_string()))?;
        }
        if self.entries.is_empty() {
            return Err(UrlRefusal::EmptyList);
        }
        let same_origin: Vec<&Entry> =
            self.entries.iter().filter(|entry| entry.has_origin_of(&url)).collect();
        if same_origin.is_empty() {
            return Err(UrlRefusal::Origin);
        }
        // A whole origin has no path to be tricked out of.
        if same_origin.iter().any(|entry| entry.prefix.is_empty()) {
            return Ok(url);
        }
        if path::is_disguised(url.path()) {
            return Err(UrlRefusal::DisguisedPath);
        }
        if same_origin.iter().any(|entry| path::is_below(&entry.prefix, url.path())) {
            return Ok(url);
        }
        Err(UrlRefusal::Path)
    }

    /// Whether an entry names exactly this host; a wildcard that happens to cover it does not count.
    ///
    /// The host has to be that of a URL that [`Self::check`] gave back.
    pub(super) fn names(&self, host: &Host<&str>) -> bool {
        let host = host.to_owned();
        self.entries.iter().any(|entry| matches!(&entry.host, HostRule::Exact(own) if *own == host))
    }
}
