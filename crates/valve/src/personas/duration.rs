//! Lengths of time as people write them.

use std::time::Duration;

/// A longer wait is a schedule, and a valve is not a clock.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a text is not a length of time that the file allows.
#[derive(Debug, thiserror::Error)]
pub(super) enum LengthError {
    #[error("`{}` is not a length of time", .0.escape_debug())]
    Unknown(String),
    #[error("`{}` is more than a day", .0.escape_debug())]
    TooLong(String),
}

/// Reads a whole number with its unit, such as `30s`.
pub(super) fn read(text: &str) -> Result<Duration, LengthError> {
    let unknown = || LengthError::Unknown(text.to_owned());
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).unwrap_or_default();
    let unit = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(unknown()),
    };
    let number: u64 = number.parse().map_err(|_| unknown())?;
    let length = Duration::from_millis(number.saturating_mul(unit));
    if length > LONGEST { Err(LengthError::TooLong(text.to_owned())) } else { Ok(length) }
}
