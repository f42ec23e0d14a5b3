//! Removes one secret from the bytes of an answer, in every form in which a server may send it back.

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::Secret;
use crate::secret::PLACEHOLDER;
use crate::secret_forms::secret_forms;

/// A part of a base64 text that is shorter occurs in others by chance.
const MIN_BASE64_CHARS: usize = 6;

/// Finds a secret as it is, URL-encoded, in JSON, and in base64 at any position of a longer text.
#[derive(Clone, Debug)]
pub struct SecretRedaction(AhoCorasick);

impl SecretRedaction {
    /// `None` for an empty secret, and one that is too long to be looked for.
    #[must_use]
    pub fn new(secret: &Secret) -> Option<Self> {
        let mut forms = secret_forms(secret.expose());
        forms.extend(base64_forms(secret.expose().as_bytes()));
        forms.retain(|form| !form.is_empty());
        let found = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms);
        found.ok().filter(|_| !forms.is_empty()).map(Self)
    }

    /// Whether the secret is in there.
    #[must_use]
    pub fn finds(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }

    /// The same without the secret; `None` where it is not in there.
    #[must_use]
    pub fn clean(&self, text: &[u8]) -> Option<Vec<u8>> {
        if !self.finds(text) {
            return None;
        }
        let mut clean = Vec::with_capacity(text.len());
        self.0.replace_all_with_bytes(text, &mut clean, |_, _, clean| {
            clean.extend_from_slice(PLACEHOLDER.as_bytes());
            true
        });
        Some(clean)
    }
}

/// What the secret looks like inside a base64 text, in which it may begin at each of three positions. The letters that
/// also depend on what stands before or after it are left out.
fn base64_forms(secret: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.iter().copied()).collect();
        let first = (before * 8).div_ceil(6);
        let whole = padded.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            let own = encoded.get(first..whole).unwrap_or_default();
            if own.len() >= MIN_BASE64_CHARS {
                forms.push(own.to_owned());
            }
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::SecretRedaction;
    use crate::Secret;

    fn clean(secret: &str, text: &str) -> String {
        let cleaned = SecretRedaction::new(&Secret::new(secret)).unwrap().clean(text.as_bytes());
        String::from_utf8(cleaned.unwrap_or_else(|| text.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn every_form_of_a_secret_is_removed() {
        let secret = "s3cr+t/w0rd=";
        for text in [
            "token: s3cr+t/w0rd=, twice s3cr+t/w0rd=".to_owned(),
            "?key=s3cr%2Bt%2Fw0rd%3D&x=1".to_owned(),
            "?key=s3cr%2bt%2fw0rd%3d".to_owned(),
            STANDARD.encode(format!("user:{secret}")),
            STANDARD.encode(format!("{secret} and more")),
            URL_SAFE_NO_PAD.encode(format!("12{secret}")),
        ] {
            let cleaned = clean(secret, &text);
            assert!(cleaned.contains("[secret]"), "{text}: {cleaned}");
            assert!(!cleaned.contains("s3cr") && !cleaned.contains("w0rd"), "{cleaned}");
        }
        assert_eq!(clean(secret, "nothing of it"), "nothing of it");
        assert!(SecretRedaction::new(&Secret::new("")).is_none());
    }

    proptest! {
        #[test]
        fn no_position_in_base64_hides_a_secret(
            secret in "[a-zA-Z0-9_/+-]{12,40}", before in "[ -~]{0,9}", after in "[ -~]{0,9}",
        ) {
            let text = STANDARD.encode(format!("{before}{secret}{after}"));
            prop_assert!(clean(&secret, &text).contains("[secret]"));
        }
    }
}
