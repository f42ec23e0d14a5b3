//! The tokens that a server was sent, and their removal from what it answers.

use std::sync::{Arc, Mutex, PoisonError};

use tgp_net::{Secret, SecretRedaction};

/// Why a connection is ended whose answers cannot be cleaned.
pub(crate) const HIDDEN_TOKEN: &str =
    "its answer holds the token of the login in a form that cannot be removed";

/// Shorter values occur in ordinary answers.
const MIN_TOKEN_BYTES: usize = 8;
/// A token is replaced when it is refreshed; those before the last ones are of no use.
const MAX_TOKENS: usize = 8;

/// The tokens of one login that are in use, or were lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownTokens(Arc<Mutex<Vec<(Secret, SecretRedaction)>>>);

impl KnownTokens {
    pub(crate) fn learn(&self, token: &str) {
        let token = Secret::new(token);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if token.expose().len() < MIN_TOKEN_BYTES || known.iter().any(|(other, _)| *other == token) {
            return;
        }
        if let Some(redaction) = SecretRedaction::new(&token) {
            known.push((token, redaction));
            let excess = known.len().saturating_sub(MAX_TOKENS);
            known.drain(..excess);
        }
    }

    /// What a server has sent, without tokens; `None` when one is hidden in it.
    pub(crate) fn clean(&self, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        let known: Vec<SecretRedaction> = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().map(|(_, redaction)| redaction.clone()).collect()
        };
        for redaction in known {
            bytes = redaction.clean(&bytes).unwrap_or(bytes);
            if redaction.hides_in(&bytes) {
                return None;
            }
        }
        Some(bytes)
    }

    /// The same for words of an error.
    pub(crate) fn clean_text(&self, text: &str) -> String {
        let clean = self.clean(text.as_bytes().to_vec());
        clean.map_or_else(
            || "[it holds a secret]".to_owned(),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::KnownTokens;

    #[test]
    fn a_token_is_removed_until_many_others_followed_it() {
        let tokens = KnownTokens::default();
        tokens.learn("short");
        tokens.learn("s3cret-token-1");
        tokens.learn("s3cret-token-2");
        assert_eq!(tokens.clean_text("short s3cret-token-1, s3cret-token-2"), "short [secret], [secret]");
        assert_eq!(tokens.clean_text("s3cret\\u002dtoken-1"), "[it holds a secret]");
        for number in 0..8 {
            tokens.learn(&format!("another-token-{number}"));
        }
        assert_eq!(tokens.clean_text("s3cret-token-1"), "s3cret-token-1");
        assert!(!format!("{tokens:?}").contains("another-token"));
    }
}
