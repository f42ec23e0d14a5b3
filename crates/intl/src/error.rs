//! The error of every operation, in the two classes that ECMA-402 knows.

use icu_provider::DataError;

/// Why a value cannot be formatted or compared as requested. The class is that of the JavaScript error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntlError {
    /// A value outside of what is allowed or supported: a `RangeError`.
    #[error("{0}")]
    Range(String),
    /// A value of the wrong kind, or an option without the one it needs: a `TypeError`.
    #[error("{0}")]
    Type(String),
}

impl IntlError {
    pub(crate) fn range(text: impl Into<String>) -> Self {
        Self::Range(text.into())
    }

    pub(crate) fn kind(text: impl Into<String>) -> Self {
        Self::Type(text.into())
    }

    /// Data that the compiled tables lack for a locale.
    pub(crate) fn missing_data(what: &str, locale: &impl std::fmt::Display, error: &DataError) -> Self {
        Self::Range(format!("no data for {what} in locale `{locale}`: {error}"))
    }
}
