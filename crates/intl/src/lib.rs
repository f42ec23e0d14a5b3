//! Locale-sensitive formatting and comparison with the semantics of ECMA-402, on ICU4X.
//!
//! All data is compiled in: nothing here reads a file, the environment or the clock. The default locale is `en-US` and
//! the default time zone UTC, so that the same input gives the same text on every machine.
#![forbid(unsafe_code)]

mod choice;
mod collator;
mod datetime;
mod display_names;
mod error;
mod list;
mod locale;
mod number;
mod part;
mod plural;
mod relative;
mod text;

pub use collator::Collator;
pub use datetime::DateTimeFormat;
pub use display_names::DisplayNames;
pub use error::IntlError;
pub use list::ListFormat;
pub use locale::{DEFAULT_LOCALE, canonical_locales, maximize, minimize, supported_locales};
pub use number::{NumberFormat, NumberValue};
pub use part::{Part, join};
pub use plural::PluralSelector;
pub use relative::RelativeTimeFormat;
pub use text::{SegmentEnd, Segmenter, lower_case, upper_case};

/// `Intl.supportedValuesOf`.
///
/// # Errors
/// For a key whose values cannot be listed.
pub fn supported_values(key: &str) -> Result<Vec<String>, IntlError> {
    match key {
        "calendar" => Ok(datetime::calendars()),
        "timeZone" => Ok(datetime::time_zones()),
        "unit" => Ok(number::units::names()),
        _ => Err(IntlError::Range(format!(
            "cannot list the values of `{}`: expected calendar, timeZone or unit",
            choice::shown(key)
        ))),
    }
}

/// Options come as JSON from the caller that has read them from a JavaScript object.
fn read_options<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, IntlError> {
    serde_json::from_str(json).map_err(|error| IntlError::Type(format!("invalid options: {error}")))
}
