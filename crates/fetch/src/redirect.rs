//! What becomes of a request when the server sends it elsewhere (RFC 9110 section 15.4).

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION,
    CONTENT_TYPE, HeaderName, RANGE, USER_AGENT,
};
use reqwest::{Method, StatusCode};
use url::Url;

use super::request::Prepared;

pub(super) fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// Changes the request into the one for the next stop.
pub(super) fn rewrite(request: &mut Prepared, status: StatusCode, from: &Url, to: &Url) {
    let becomes_get = match status {
        StatusCode::SEE_OTHER => !matches!(request.method, Method::GET | Method::HEAD),
        // The standard permits it and every client does it; only 307 and 308 promise to repeat a POST.
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => request.method == Method::POST,
        _ => false,
    };
    if becomes_get {
        request.method = Method::GET;
        request.body = None;
        for name in [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE] {
            request.headers.remove(name);
        }
    }
    if from.origin() != to.origin() {
        keep_only_harmless(request);
    }
}

/// Headers were given for one origin. Secrets hide under many names in addition to `Authorization` (`X-Api-Key`,
/// `Cookie`, ...), so what is sent to another origin is a list of what is known to hold none.
fn keep_only_harmless(request: &mut Prepared) {
    const HARMLESS: &[HeaderName] = &[
        ACCEPT,
        ACCEPT_ENCODING,
        ACCEPT_LANGUAGE,
        CONTENT_ENCODING,
        CONTENT_LANGUAGE,
        CONTENT_TYPE,
        RANGE,
        USER_AGENT,
    ];
    let names: Vec<HeaderName> =
        request.headers.keys().filter(|name| !HARMLESS.contains(name)).cloned().collect();
    for name in names {
        request.headers.remove(name);
    }
}
