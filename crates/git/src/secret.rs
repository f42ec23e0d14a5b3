//! Words that must never be shown, and the sieve that every shown text passes.

use std::fmt;

/// A token or password. It has no way out but into a header.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

/// Shorter words than this occur in ordinary text; taking them out would spoil it and hide nothing.
const SHORTEST_SECRET: usize = 4;

/// Takes the known secrets, and whatever stands before an `@` in a URL, out of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sieve {
    secrets: Vec<Secret>,
}

impl Sieve {
    pub(crate) fn add(&mut self, secret: &str) {
        if secret.len() >= SHORTEST_SECRET {
            self.secrets.push(Secret::new(secret));
        }
    }

    pub(crate) fn clean(&self, text: &str) -> String {
        let text = self.secrets.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.expose()) { text.replace(secret.expose(), "[secret]") } else { text }
        });
        without_userinfo(&text)
    }
}

/// Removes `user:password@` from every URL in the text.
fn without_userinfo(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        clean.push_str(before);
        clean.push_str("://");
        let end =
            after.find(|letter: char| letter == '/' || letter.is_whitespace() || "'\"`<>".contains(letter));
        let authority = end.and_then(|end| after.get(..end)).unwrap_or(after);
        rest = match authority.rfind('@') {
            Some(at) => after.get(at + 1..).unwrap_or_default(),
            None => after,
        };
    }
    clean.push_str(rest);
    clean
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The form of a name and a password in a `Basic` authorization header (RFC 7617).
pub(crate) fn basic(user: &str, password: &str) -> String {
    let bytes = format!("{user}:{password}").into_bytes();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits: u32 = 0;
        for position in 0..3 {
            bits = (bits << 8) | u32::from(group.get(position).copied().unwrap_or_default());
        }
        for position in 0..4 {
            let index = (bits >> (18 - 6 * position)) & 0x3f;
            let letter = ALPHABET.get(index as usize).copied().unwrap_or(b'=');
            text.push(if position <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Sieve, basic};

    #[test]
    fn basic_credentials_match_the_example_of_rfc_7617() {
        assert_eq!(basic("Aladdin", "open sesame"), "QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }

    #[test]
    fn secrets_and_userinfo_are_taken_out() {
        let mut sieve = Sieve::default();
        sieve.add("t0ken");
        sieve.add("ab");
        for (text, clean) in [
            ("no access for t0ken at all", "no access for [secret] at all"),
            ("'https://me:pw@host/x.git' not found", "'https://host/x.git' not found"),
            ("https://a@b@host and ssh://git@host:22/x", "https://host and ssh://host:22/x"),
            ("mail me@x.org, see https://host/a@b", "mail me@x.org, see https://host/a@b"),
            ("about", "about"),
        ] {
            assert_eq!(sieve.clean(text), clean);
        }
    }
}
