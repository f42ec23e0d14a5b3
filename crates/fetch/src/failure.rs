//! Every way a fetch can fail, in words for the person who reads them.
//!
//! A URL in a message is cut down to origin and path: queries hold keys, and messages end in logs.

use std::error::Error;
use std::time::Duration;

use tgp_contract::{Code, ToolError};
use tgp_net::{causes, root_cause};
use tgp_text::truncate;
use url::Url;

use super::UrlRefusal;
use super::resolver::OffLimits;

const LONGEST_EXCERPT: usize = 200;

/// Text of unknown origin, short and without control characters.
pub(super) fn excerpt(text: &str) -> String {
    let visible = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    truncate(text, LONGEST_EXCERPT).chars().map(visible).collect()
}

/// A URL as messages show it: without credentials, query and fragment.
pub(super) fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(parsed) if parsed.has_host() => {
            excerpt(&format!("{}{}", parsed.origin().ascii_serialization(), parsed.path()))
        }
        _ => excerpt(url.split(['?', '#']).next().unwrap_or(url)),
    }
}

fn failed(message: impl Into<String>) -> ToolError {
    ToolError::new(Code::Fetch, message)
}

/// The request itself is wrong; nothing was sent.
pub(super) fn invalid_request(problem: &str) -> ToolError {
    failed(format!("tgp.fetch cannot send this request: {problem}"))
}

pub(super) fn too_large(what: &str, limit: usize, unit: &str) -> ToolError {
    failed(format!("the {what} is larger than the limit of {limit} {unit}"))
        .help("ask for less: a page, a range, or fewer fields")
        .detail("limit", limit)
}

/// The list does not have this URL. `via` is the stop that redirected to it.
pub(super) fn refused(url: &str, refusal: &UrlRefusal, via: Option<&Url>) -> ToolError {
    let route =
        via.map_or_else(String::new, |from| format!(", to which {} redirects,", shown(from.as_str())));
    let message = format!("fetching `{}`{route} is refused: {refusal}", shown(url));
    let add = |entry: String| {
        ToolError::new(Code::Security, message.clone())
            .help(format!("if tools may reach it, add '{entry}' to `allowedFetchUrls` in the configuration"))
            .detail("add", entry)
    };
    let parsed = Url::parse(url).ok();
    let origin = parsed.as_ref().map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    match refusal {
        UrlRefusal::Malformed(_) => {
            failed(message).help("give a complete URL, such as https://example.com/path")
        }
        UrlRefusal::Scheme(_) => ToolError::new(Code::Security, message).help("use an http or https URL"),
        UrlRefusal::Credentials => ToolError::new(Code::Security, message)
            .help("leave them out of the URL and send an Authorization header"),
        UrlRefusal::EmptyList | UrlRefusal::Origin => add(origin),
        UrlRefusal::Path => add(format!("{origin}{}", parsed.as_ref().map_or("", Url::path))),
        UrlRefusal::DisguisedPath => ToolError::new(Code::Security, message).help(
            "write the path without encoded dots, slashes after dots, control characters and broken escapes",
        ),
    }
}

/// A request names a secret, and the kernel has none.
pub(super) fn no_secrets(name: &str) -> ToolError {
    let message = format!(
        "unknown secret `{}`: `secrets` in the configuration names none, or waits for `tgp trust` by a person",
        excerpt(name)
    );
    ToolError::new(Code::NotFound, message).help("ask the user to add it, and to confirm it with `tgp trust`")
}

/// The host has no address that a tool may connect to.
pub(super) fn off_limits(url: &Url, refusal: &OffLimits) -> ToolError {
    let mut entry = url.clone();
    // Cannot fail: the URL has a host, and an address is one.
    let _ = entry.set_ip_host(refusal.address);
    let entry = entry.origin().ascii_serialization();
    ToolError::new(Code::Security, format!("fetching `{}` is refused: {refusal}", shown(url.as_str())))
        .help(format!(
            "only public addresses can be fetched by name; if tools may reach this one, add '{entry}' to \
             `allowedFetchUrls` and fetch it by its address"
        ))
        .detail("add", entry)
}

pub(super) fn timed_out(url: &str, limit: Duration) -> ToolError {
    failed(format!("fetching `{}` took longer than {} ms", shown(url), limit.as_millis()))
        .help(
            "the server is slow or out of reach; try again, or raise the fetch timeout in the configuration",
        )
        .detail("limitMs", u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
}

pub(super) fn too_many_redirects(url: &Url, limit: usize) -> ToolError {
    failed(format!("`{}` is redirected more than {limit} times", shown(url.as_str())))
        .help("fetch the final URL, or pass redirect: 'manual' to see where each redirect leads")
}

pub(super) fn unwanted_redirect(url: &Url) -> ToolError {
    failed(format!(
        "`{}` answers with a redirect, and the request has redirect: 'error'",
        shown(url.as_str())
    ))
    .help("use redirect: 'follow' or 'manual' if a redirect is fine")
}

pub(super) fn bad_response(url: &Url, problem: &str) -> ToolError {
    failed(format!("the answer of `{}` cannot be used: {problem}", shown(url.as_str())))
        .help("the fault is with the server; check the URL with another client")
}

/// The client could not be built at all.
pub(super) fn no_client(problem: &str) -> ToolError {
    failed(format!("the HTTP client could not be set up: {problem}"))
        .help("https needs root certificates: install your system's ca-certificates, or point SSL_CERT_FILE at a bundle")
}

/// Whatever the HTTP client reports.
pub(super) fn transport(error: &reqwest::Error, url: &Url) -> ToolError {
    if let Some(refusal) = find::<OffLimits>(error) {
        return off_limits(url, refusal);
    }
    let target = shown(url.as_str());
    let cause = excerpt(&root_cause(error));
    if let Some(problem) = find::<rustls::Error>(error) {
        return failed(format!("no secure connection to `{target}`: {problem}"))
            .help("the server's certificate or TLS version is not acceptable; check the host name and the certificate");
    }
    if error.is_dns() {
        return failed(format!("the host of `{target}` could not be resolved: {cause}"))
            .help("check the spelling of the host name and the network of this machine");
    }
    if error.is_connect() {
        return failed(format!("no connection to `{target}`: {cause}"))
            .help("check that the server is running and that host and port are right");
    }
    failed(format!("fetching `{target}` failed: {cause}"))
        .help("the connection broke or the server does not speak HTTP properly; try again")
}

/// The first error of type `T` among the causes.
fn find<'error, T: Error + 'static>(error: &'error (dyn Error + 'static)) -> Option<&'error T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}
