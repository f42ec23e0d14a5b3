//! Why a git server behind http refused, from the messages of git and curl.

use std::path::Path;

use super::{RETRY_LATER, found, is_of_server, said};
use crate::remote::{CredentialSource, Endpoint};

/// One sentence with the cause and the next step. `certificates` is the file of `SSL_CERT_FILE`.
pub(super) fn http(lines: &[&str], endpoint: &Endpoint, certificates: Option<&Path>) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| without_url(line)).collect();
    let lines = lines.as_slice();
    let any = |words: &[&str]| found(lines, words).is_some();
    let status = status(lines);
    if any(&["Authentication failed for"])
        || any(&["could not read Username"])
        || any(&["could not read Password"])
        || status == Some(401)
    {
        return refused_credential(endpoint);
    }
    if any(&["Could not resolve proxy"]) {
        return "the proxy that `https_proxy` names cannot be resolved; correct that environment variable, or \
                unset it"
            .to_owned();
    }
    if any(&["CONNECT tunnel failed"]) || status == Some(407) {
        return format!(
            "the proxy that `https_proxy` names refused the connection to {}; see that it allows this host, and that \
             the user and the password in the variable are right",
            endpoint.host_and_port()
        );
    }
    if let Some(status) = status {
        return by_status(status, endpoint);
    }
    let host = endpoint.host_and_port();
    if any(&["repository", "not found"]) {
        return by_status(404, endpoint);
    }
    if any(&["Could not resolve host"]) {
        return format!(
            "{host} cannot be found: its name cannot be resolved; check `git.url` and the network. {RETRY_LATER}"
        );
    }
    if any(&["imed out"]) || any(&["Timeout was reached"]) {
        return format!("{host} did not answer the connection in time; check the network. {RETRY_LATER}");
    }
    if any(&["Failed to connect"]) || any(&["connect to server"]) {
        return format!(
            "there is no connection to {host}: it was refused, or there is no route; see that the server runs and that \
             `git.url` has the right port. {RETRY_LATER}"
        );
    }
    let tells_of_certificate = |line: &&&str| {
        let is_own = !is_of_server(line);
        let line = line.to_lowercase();
        is_own && (line.contains("certificate") || line.contains("server verification failed"))
    };
    match lines.iter().find(tells_of_certificate) {
        Some(line) => certificate(line, &host, certificates),
        None if any(&["is this a git repository"]) || any(&["not valid: could not determine hash"]) => {
            format!(
                "{} is answered, but not by a git repository; set `git.url` to the address that `git clone` takes",
                endpoint.url
            )
        }
        None => format!("git cannot use {}: {}; check `git.url`", endpoint.url, said(lines)),
    }
}

/// The words of an address must not be taken for a cause.
fn without_url(line: &str) -> &str {
    let rest = line.strip_prefix("fatal: unable to access '").and_then(|rest| rest.split_once("': "));
    rest.map_or(line, |(_, cause)| cause)
}

/// The HTTP status that ended the conversation, when it was not a success.
fn status(lines: &[&str]) -> Option<u16> {
    let code_after = |line: &&str, words: &str| {
        let (_, rest) = line.split_once(words)?;
        rest.get(..3).and_then(|code| code.parse::<u16>().ok())
    };
    lines.iter().filter(|line| !is_of_server(line)).find_map(|line| {
        code_after(line, "The requested URL returned error: ")
            .or_else(|| code_after(line, "RPC failed; HTTP "))
    })
}

fn refused_credential(endpoint: &Endpoint) -> String {
    let url = &endpoint.url;
    match endpoint.credential {
        CredentialSource::None => {
            format!("the remote {url} wants a token and none is configured; set `git.auth.token`")
        }
        CredentialSource::Token => format!(
            "the remote {url} refused the user name or the token; correct `git.auth.token` in the configuration, or the \
             environment variable that it reads, and see that its user may read and write the repository"
        ),
        CredentialSource::Url => format!(
            "the remote {url} refused the user name or the password in `git.url`; correct them there, or remove them \
             from the URL and set `git.auth.token`"
        ),
    }
}

fn by_status(status: u16, endpoint: &Endpoint) -> String {
    let url = &endpoint.url;
    let (who, setting) = match endpoint.credential {
        CredentialSource::None => ("a user without a token", "set `git.auth.token`"),
        CredentialSource::Token => ("the user of `git.auth.token`", "use another token"),
        CredentialSource::Url => ("the user in `git.url`", "name another user there"),
    };
    match status {
        301 | 302 | 303 | 307 | 308 => format!(
            "the repository has moved: {url} redirects to another address (HTTP {status}), and a token is never sent \
             there; set `git.url` to the new address, which a browser shows"
        ),
        403 => format!(
            "the remote {url} forbids this (HTTP 403): {who} has no permission to write to the repository, or not even \
             to read it; give that permission at the server, or {setting}"
        ),
        404 | 410 => format!(
            "there is no repository at {url}, or {who} may not see it (HTTP {status}); check `git.url` (`git.repo` with \
             `git.provider`), or {setting}"
        ),
        429 | 500..=599 => {
            format!("the server of {url} is overloaded or out of order (HTTP {status}). {RETRY_LATER}")
        }
        _ => format!("the server of {url} answered HTTP {status}; check `git.url`"),
    }
}

fn certificate(line: &str, host: &str, certificates: Option<&Path>) -> String {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    if has(&["expired"]) {
        return format!(
            "the certificate of {host} has expired, so nothing was sent; the server's owner has to renew it (see that \
             this machine's clock is right)"
        );
    }
    if has(&["subject name", "does not match", "owner"]) {
        return format!(
            "the certificate of {host} is for another name, so nothing was sent; use the name that it was made for in \
             `git.url`"
        );
    }
    match certificates {
        None => format!(
            "the certificate of {host} is not signed by an authority that this machine knows, so nothing was sent; if it \
             is a server of your own, set the environment variable `SSL_CERT_FILE` to a PEM file with its certificate \
             or authority"
        ),
        Some(file) if !file.is_file() => format!(
            "the certificate of {host} cannot be checked, so nothing was sent: `SSL_CERT_FILE` names `{}`, which is not \
             a file; correct or unset that environment variable",
            file.display()
        ),
        Some(file) => format!(
            "the certificate of {host} is not signed by an authority in `{}`, so nothing was sent; add its certificate \
             to that file, or unset the environment variable `SSL_CERT_FILE` to use the system's authorities",
            file.display()
        ),
    }
}
