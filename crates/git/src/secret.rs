//! Secrets of the remote: how they are held, removed from texts, and sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use tgp_net::Secret;
pub(crate) use tgp_net::SecretScrubber as Sieve;

/// The form of a name and a password in a `Basic` authorization header (RFC 7617).
pub(crate) fn basic(user: &str, password: &str) -> String {
    STANDARD.encode(format!("{user}:{password}"))
}

#[cfg(test)]
mod tests {
    use super::basic;

    #[test]
    fn basic_credentials_match_the_example_of_rfc_7617() {
        assert_eq!(basic("Aladdin", "open sesame"), "QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
