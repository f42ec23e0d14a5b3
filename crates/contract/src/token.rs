//! A capability token on its way to the one who verifies it.

use std::fmt;

/// The text of a token. Its holder has its rights, so it is never printed with the rest of a value.
#[derive(Clone, PartialEq, Eq)]
pub struct CapabilityToken(String);

impl CapabilityToken {
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CapabilityToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CapabilityToken([redacted])")
    }
}
