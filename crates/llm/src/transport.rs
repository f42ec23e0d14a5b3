//! Why a connection failed, read from the chain of causes: what no further attempt can fix is distinguished.

use std::error::Error;
use std::io;
use std::time::Duration;

use tgp_net::{causes, root_cause};

use crate::failure::Failure;

/// The words of the HTTP library for a head that is none. Its error type is not part of the client's face.
const NO_HEAD: [&str; 6] = [
    "invalid HTTP version parsed",
    "invalid HTTP header parsed",
    "invalid HTTP status-code parsed",
    "invalid content-length parsed",
    "unexpected transfer-encoding parsed",
    "message head is too large",
];

/// A request that was not answered.
pub(crate) fn unanswered(error: &reqwest::Error, connect: Duration) -> Failure {
    if error.is_connect() && error.is_timeout() {
        return Failure::NoConnection(connect);
    }
    if let Some(failure) = causes(error).find_map(lasting) {
        return failure;
    }
    if error.is_connect() {
        Failure::Unreachable(root_cause(error))
    } else {
        Failure::Dropped(root_cause(error))
    }
}

/// An answer that broke off.
pub(crate) fn broken_off(error: &reqwest::Error) -> Failure {
    // Bytes that are wrong were sent so; an end that comes too early is not intended.
    let is_garbage = |kind| matches!(kind, io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
    let mut kinds = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    if kinds.any(is_garbage) {
        Failure::Unreadable(root_cause(error))
    } else {
        Failure::Dropped(root_cause(error))
    }
}

fn lasting(cause: &(dyn Error + 'static)) -> Option<Failure> {
    match cause.downcast_ref::<rustls::Error>() {
        Some(rustls::Error::InvalidCertificate(why)) => return Some(Failure::Untrusted(why.to_string())),
        Some(rustls::Error::InvalidMessage(_)) => return Some(Failure::NoTls),
        Some(other) => return Some(Failure::Unreadable(format!("TLS failed: {other}"))),
        None => {}
    }
    let words = cause.to_string();
    NO_HEAD.contains(&words.as_str()).then_some(Failure::NoHttp(words))
}
