//! One entry of `allowedFetchUrls`.

use url::{Host, Url};

use super::path;

/// One entry that could not be understood. It names the entry, so that the configuration can be repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("allowedFetchUrls[{index}]: `{entry}` {problem}")]
pub struct AllowListError {
    index: usize,
    entry: String,
    problem: String,
}

impl AllowListError {
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
        &self.problem
    }
}

/// What an entry says about the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostRule {
    /// This host and no other.
    Exact(Host<String>),
    /// Every name below this one (`*.example.com`), but not the name itself.
    Below(String),
}

/// One understood entry: an origin and the path segments that a URL has to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) scheme: String,
    pub(super) host: HostRule,
    pub(super) port: u16,
    pub(super) prefix: Vec<String>,
}

impl Entry {
    pub(super) fn parse(index: usize, text: &str) -> Result<Self, AllowListError> {
        let fail = |problem: &str| AllowListError { index, entry: masked(text), problem: problem.to_owned() };
        // The URL parser drops or repairs these silently; in a security setting that hides a mistake.
        if text.chars().any(|letter| letter.is_whitespace() || letter.is_control() || letter == '\\') {
            return Err(fail("has a blank, a control character or a backslash in it; remove it"));
        }
        let lower = text.to_ascii_lowercase();
        if !lower.starts_with("https://") && !lower.starts_with("http://") {
            return Err(fail("has to begin with `https://` or `http://`"));
        }
        let url = Url::parse(text).map_err(|error| fail(&format!("is not a URL: {error}")))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(fail(
                "has credentials in it; leave them out and let the tool send an Authorization header",
            ));
        }
        if url.query().is_some() {
            return Err(fail("has a query; an entry is an origin and, if wanted, a path"));
        }
        if url.fragment().is_some() {
            return Err(fail("has a fragment; an entry is an origin and, if wanted, a path"));
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(fail("names no host"));
        };
        let host = host_rule(&host).map_err(fail)?;
        let prefix = path_prefix(text, url.path()).map_err(fail)?;
        Ok(Self { scheme: url.scheme().to_owned(), host, port, prefix })
    }

    /// Whether scheme, host and port of `url` are those of this entry. The host of `url` has to be canonical.
    pub(super) fn has_origin_of(&self, url: &Url) -> bool {
        self.scheme == url.scheme()
            && url.port_or_known_default() == Some(self.port)
            && url.host().is_some_and(|host| self.host.covers(&host))
    }
}

impl HostRule {
    pub(super) fn covers(&self, host: &Host<&str>) -> bool {
        match self {
            Self::Exact(own) => *own == host.to_owned(),
            Self::Below(parent) => match host {
                Host::Domain(name) => name
                    .strip_suffix(parent.as_str())
                    .and_then(|front| front.strip_suffix('.'))
                    .is_some_and(|front| front.split('.').all(|label| !label.is_empty())),
                Host::Ipv4(_) | Host::Ipv6(_) => false,
            },
        }
    }
}

/// The host without the dot that marks a name as absolute: `example.com.` is `example.com`.
///
/// Case, IDNA and the odd spellings of IPv4 addresses are already settled by the URL parser.
fn canonical(host: &Host<&str>) -> Host<String> {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(name).to_owned()),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    }
}

pub(super) fn host_rule(host: &Host<&str>) -> Result<HostRule, &'static str> {
    let host = canonical(host);
    let Host::Domain(name) = &host else { return Ok(HostRule::Exact(host)) };
    let (wildcard, name) = match name.strip_prefix("*.") {
        Some(parent) => (true, parent),
        None => (false, name.as_str()),
    };
    if name.contains('*') {
        return Err(
            "has a `*` in a place where it means nothing; only `*.` in front of a name is understood",
        );
    }
    if name.split('.').any(str::is_empty) {
        return Err("has an empty label in its host");
    }
    if !wildcard {
        return Ok(HostRule::Exact(host));
    }
    if !name.contains('.') {
        return Err("would cover a whole top-level domain; put at least two labels after `*.`");
    }
    Ok(HostRule::Below(name.to_owned()))
}

fn path_prefix(text: &str, parsed: &str) -> Result<Vec<String>, &'static str> {
    if parsed.contains('*') {
        return Err("has a `*` in its path; a path is a prefix already, so leave the `*` out");
    }
    // The parser has resolved plain dots by now, so they are looked for in the text as it was written.
    let written =
        text.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    if path::is_disguised(written) || path::is_disguised(parsed) {
        return Err("has dot segments or broken escapes in its path; write the path that is meant");
    }
    if parsed.contains("//") {
        return Err("has an empty segment (`//`) in its path");
    }
    Ok(path::segments(parsed))
}

/// An error message goes to logs and screens, and a password must not.
pub(super) fn masked(text: &str) -> String {
    // An entry that is refused may be no address at all, and where a password in it ends is unknown: everything up to the
    // last `@` is left out.
    let Some(end) = text.rfind('@') else { return text.to_owned() };
    let is_scheme =
        |scheme: &&str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let scheme = text.split_once("://").map(|(scheme, _)| scheme).filter(is_scheme);
    let scheme = scheme.map(|scheme| format!("{scheme}://")).unwrap_or_default();
    format!("{scheme}***{}", text.get(end..).unwrap_or_default())
}
