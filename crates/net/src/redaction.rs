//! Removes one secret from the bytes of an answer, in every form in which a server may send it back.

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::Secret;
use crate::secret::PLACEHOLDER;
use crate::secret_forms::secret_forms;

/// A part of a base64 text that is shorter occurs in others by chance.
const MIN_BASE64_CHARS: usize = 6;
/// A shorter part of a secret is not looked for by itself: it may be the scheme before a token.
const MIN_PART_BYTES: usize = 8;
/// How often an encoding is undone when it is looked below: `%252F` is `%2F` is `/`.
const MAX_ROUNDS: usize = 3;

/// Finds a secret as it is, URL-encoded, in JSON, and in base64 at any position of a longer text.
#[derive(Clone, Debug)]
pub struct SecretRedaction(AhoCorasick);

impl SecretRedaction {
    /// `None` for an empty secret, and one that is too long to be looked for.
    #[must_use]
    pub fn new(secret: &Secret) -> Option<Self> {
        let mut forms = Vec::new();
        for part in parts(secret.expose()) {
            forms.extend(secret_forms(&part));
            forms.extend(base64_forms(part.as_bytes()));
        }
        forms.retain(|form| !form.is_empty());
        forms.sort();
        forms.dedup();
        // Hosts come back in lower case, and digits of escapes in either.
        let mut builder = AhoCorasick::builder();
        let found = builder.match_kind(MatchKind::LeftmostLongest).ascii_case_insensitive(true).build(&forms);
        found.ok().filter(|_| !forms.is_empty()).map(Self)
    }

    /// Whether the secret is in there.
    #[must_use]
    pub fn finds(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }

    /// Whether the secret is in there once escapes are undone, as they are in JSON, addresses, HTML and letters, and once
    /// the breaks of lines and the zeros of wide letters are left out.
    #[must_use]
    pub fn hides_in(&self, text: &[u8]) -> bool {
        self.finds_dense(text) || READINGS.iter().any(|reading| self.hides_in_reading(text, *reading))
    }

    fn hides_in_reading(&self, text: &[u8], reading: Reading) -> bool {
        let mut plain = text.to_vec();
        for _ in 0..MAX_ROUNDS {
            let undone = unescaped(&plain, reading);
            if undone == plain {
                break;
            }
            plain = undone;
            if self.finds(&plain) || self.finds_dense(&plain) {
                return true;
            }
        }
        false
    }

    /// Whether the secret is in there without what separates its letters.
    fn finds_dense(&self, text: &[u8]) -> bool {
        let dense: Vec<u8> =
            text.iter().copied().filter(|byte| !byte.is_ascii_control() && *byte != b' ').collect();
        dense.len() != text.len() && self.finds(&dense)
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

/// A secret, its words where it has several (`token …`), and what `Basic …` stands for.
fn parts(secret: &str) -> Vec<String> {
    let mut parts = vec![secret.to_owned()];
    for word in secret.split_whitespace().filter(|word| word.len() >= MIN_PART_BYTES) {
        parts.push(word.to_owned());
        let decoded = STANDARD.decode(word).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let Some((_, password)) = decoded.as_deref().and_then(|pair| pair.split_once(':')) else { continue };
        if secret.len() > word.len() && password.len() >= MIN_PART_BYTES {
            parts.push(password.to_owned());
        }
    }
    parts
}

/// The reader of an escape, which decides its meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// A backslash only protects the sign behind it.
    Shell,
    /// `\n` is the end of a line, and `\x2F` a sign.
    Json,
    /// As in a letter: `=2F` is a sign, and `=` at the end of a line continues it.
    QuotedPrintable,
}

const READINGS: [Reading; 3] = [Reading::Shell, Reading::Json, Reading::QuotedPrintable];

/// The bytes with one layer of escapes undone: `%2F`, `\u002F`, `\/` and `&#x2F;`.
fn unescaped(text: &[u8], reading: Reading) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let (letter, left) = match (first, after.first()) {
            (b'%', _) => (number(after, 2, 16), after.get(2..)),
            (b'=', Some(b'\r' | b'\n')) if reading == Reading::QuotedPrintable => {
                (Some(u32::from(b'\n')), after.get(1..))
            }
            (b'=', _) if reading == Reading::QuotedPrintable => (number(after, 2, 16), after.get(2..)),
            (b'\\', Some(b'u')) => {
                let digits = after.get(1..).unwrap_or_default();
                (number(digits, 4, 16), digits.get(4..))
            }
            (b'\\', Some(b'x')) if reading == Reading::Json => {
                let digits = after.get(1..).unwrap_or_default();
                (number(digits, 2, 16), digits.get(2..))
            }
            (b'\\', Some(b'n' | b'r' | b't' | b'f' | b'b' | b'v')) if reading == Reading::Json => {
                (Some(u32::from(b'\n')), after.get(1..))
            }
            (b'\\', Some(sign)) => (Some(u32::from(*sign)), after.get(1..)),
            (b'&', Some(b'#')) => entity(after),
            _ => (None, None),
        };
        let is_byte = matches!(first, b'%' | b'=');
        match (letter.and_then(char::from_u32), left) {
            (Some(letter), Some(left)) if letter.is_ascii() || !is_byte => {
                plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                rest = left;
            }
            // A byte of a longer letter.
            (Some(letter), Some(left)) => {
                plain.push(u8::try_from(u32::from(letter)).unwrap_or_default());
                rest = left;
            }
            _ => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

/// The number that so many digits write.
fn number(text: &[u8], digits: usize, radix: u32) -> Option<u32> {
    let digits = text.get(..digits).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// The letter of a numeric entity, after its `&`, and what follows it.
fn entity(after: &[u8]) -> (Option<u32>, Option<&[u8]>) {
    const LONGEST: usize = 10;
    let end = after.iter().take(LONGEST).position(|byte| *byte == b';');
    let Some(end) = end else { return (None, None) };
    let digits = after.get(1..end).unwrap_or_default();
    let letter = match digits.split_first() {
        Some((b'x' | b'X', hex)) => number(hex, hex.len(), 16),
        Some(_) => number(digits, digits.len(), 10),
        None => None,
    };
    (letter, after.get(end + 1..))
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

    #[test]
    fn a_secret_behind_escapes_is_noticed() {
        let secret = "s3cr3t-t0ken/of+the=test";
        let redaction = SecretRedaction::new(&Secret::new(secret)).unwrap();
        let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let encoded = STANDARD.encode(format!("some words before {secret} and some after it"));
        let broken: String = encoded
            .as_bytes()
            .chunks(20)
            .map(|line| format!("{}\r\n", String::from_utf8_lossy(line)))
            .collect();
        for text in [
            secret.replace('/', "\\/").into_bytes(),
            secret.replace('/', "\\u002F").replace('+', "\\u002b").into_bytes(),
            secret.replace('-', "%2D").into_bytes(),
            secret.replace('/', "%252F").into_bytes(),
            secret.replace('/', "&#x2F;").replace('=', "&#61;").into_bytes(),
            broken.into_bytes(),
            wide,
        ] {
            let shown = String::from_utf8_lossy(&text).into_owned();
            assert!(!redaction.finds(&text) && redaction.hides_in(&text), "{shown}");
        }
        assert!(redaction.finds(secret.to_uppercase().as_bytes()));
        for text in ["", "%", "%zz", "\\", "\\u12", "&#;", "&#xZ;", "&#99999999999;", "nothing of it"] {
            assert!(!redaction.hides_in(text.as_bytes()), "{text}");
        }
        for (value, part) in [
            ("token ghp_s3cr3tabcdef", "ghp_s3cr3tabcdef"),
            ("Basic dXNlcjpwYXNzd29yZDEyMw==", "password123"),
        ] {
            let redaction = SecretRedaction::new(&Secret::new(value)).unwrap();
            assert!(redaction.finds(part.as_bytes()), "{value}");
            assert!(!redaction.finds(b"token Basic user"), "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = SecretRedaction::new(&Secret::new("s3cr3t-value")).unwrap().hides_in(&text);
        }

        #[test]
        fn no_position_in_base64_hides_a_secret(
            secret in "[a-zA-Z0-9_/+-]{12,40}", before in "[ -~]{0,9}", after in "[ -~]{0,9}",
        ) {
            let text = STANDARD.encode(format!("{before}{secret}{after}"));
            prop_assert!(clean(&secret, &text).contains("[secret]"));
        }
    }
}
