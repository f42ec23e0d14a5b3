//! Removes known secrets from texts that are shown.

use std::ops::Range;

use crate::Secret;
use crate::secret::PLACEHOLDER;
use crate::secret_forms::secret_forms;

/// Shorter words occur in ordinary text; removing them would spoil it and hide nothing.
const MIN_SECRET_BYTES: usize = 4;

/// Removes the secrets it knows, and the user name and password of every URL, from a text.
#[derive(Clone, Debug, Default)]
pub struct SecretScrubber {
    secrets: Vec<Secret>,
}

impl SecretScrubber {
    /// Adds a text that may be a secret. One of less than four bytes is left out.
    pub fn add(&mut self, secret: &str) {
        if secret.len() >= MIN_SECRET_BYTES {
            self.add_key(secret);
        }
    }

    /// Adds a text that is certainly a secret, however short, in every form in which it may be shown.
    pub fn add_key(&mut self, secret: &str) {
        if !secret.is_empty() {
            self.secrets.extend(secret_forms(secret).into_iter().map(Secret::new));
        }
    }

    /// The text without secrets.
    ///
    /// Clean a text before it is cut: the beginning of a secret that was cut is not recognised.
    #[must_use]
    pub fn clean(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut shown_up_to = 0;
        for Range { start, end } in self.occurrences(text) {
            clean.push_str(text.get(shown_up_to..start).unwrap_or_default());
            clean.push_str(PLACEHOLDER);
            shown_up_to = end;
        }
        clean.push_str(text.get(shown_up_to..).unwrap_or_default());
        without_userinfo(&clean)
    }

    /// Where secrets are in the text. Those that overlap are one range, so that no rest of a longer secret
    /// remains beside a shorter one.
    fn occurrences(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for secret in &self.secrets {
            let secret = secret.expose();
            let first = secret.chars().next().map_or(1, char::len_utf8);
            let mut from = 0;
            while let Some(at) = text.get(from..).and_then(|rest| rest.find(secret)) {
                let start = from + at;
                found.push(start..start + secret.len());
                from = start + first;
            }
        }
        found.sort_unstable_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }
}

/// Removes `user:password@` from every URL in the text.
fn without_userinfo(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        clean.push_str(before);
        clean.push_str("://");
        let end = after.find(|letter: char| {
            letter.is_whitespace() || matches!(letter, '/' | '\'' | '"' | '`' | '<' | '>')
        });
        let authority = end.and_then(|end| after.get(..end)).unwrap_or(after);
        rest = match authority.rfind('@') {
            Some(at) => after.get(at + 1..).unwrap_or_default(),
            None => after,
        };
    }
    clean.push_str(rest);
    clean
}
