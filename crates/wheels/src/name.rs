//! Names of packages and of extras, in the one form in which they are compared.

use std::fmt;

use crate::RequirementError;

/// Longest name.
const MAX_BYTES: usize = 128;

/// Endings that make pip take a name for a file.
const ARCHIVES: [&str; 8] = [".whl", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".egg"];

/// A name in its normal form: `Foo__Bar.baz` is `foo-bar-baz`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// # Errors
    /// For what is not a name, and for one that looks like an archive.
    pub fn new(text: &str) -> Result<Self, RequirementError> {
        let refused = || RequirementError::Name(text.chars().take(MAX_BYTES).collect());
        let is_edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        let is_name = text.len() <= MAX_BYTES
            && is_edge(text.chars().next())
            && is_edge(text.chars().next_back())
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || is_separator(letter));
        let lower = text.to_ascii_lowercase();
        if !is_name || ARCHIVES.iter().any(|ending| lower.ends_with(ending)) {
            return Err(refused());
        }
        let parts: Vec<&str> = lower.split(is_separator).filter(|part| !part.is_empty()).collect();
        Ok(Self(parts.join("-")))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

fn is_separator(letter: char) -> bool {
    matches!(letter, '-' | '_' | '.')
}
