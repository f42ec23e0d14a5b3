//! Time as milliseconds since the epoch, and in the form of RFC 3339.

use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const NS_PER_MS: i128 = 1_000_000;

/// The last millisecond of the year 9999, which is the last that RFC 3339 can express.
const LAST_MS: u64 = 253_402_300_799_999;

/// The time of the system in milliseconds since the epoch.
///
/// A domain crate takes a clock as an argument instead, so that its tests do not depend on the time.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since the epoch as RFC 3339 in UTC, such as `2026-11-15T12:03:01.25Z`. A time after the year 9999 is the
/// end of that year.
pub fn rfc3339(ms: u64) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms.min(LAST_MS)) * NS_PER_MS);
    // Every time between 1970 and 9999 has this form.
    time.ok().and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
}

/// Seconds since the epoch, also before it, as RFC 3339 in UTC. `None` for years that RFC 3339 cannot express.
pub fn rfc3339_seconds(seconds: i64) -> Option<String> {
    OffsetDateTime::from_unix_timestamp(seconds).ok()?.format(&Rfc3339).ok()
}

/// The time of an RFC 3339 text in nanoseconds since the epoch; negative before it.
pub fn parse_rfc3339_ns(text: &str) -> Option<i128> {
    OffsetDateTime::parse(text, &Rfc3339).ok().map(OffsetDateTime::unix_timestamp_nanos)
}

/// The time of an RFC 3339 text in whole milliseconds since the epoch. `None` also for a time before it.
pub fn parse_rfc3339_ms(text: &str) -> Option<u64> {
    u64::try_from(parse_rfc3339_ns(text)?.div_euclid(NS_PER_MS)).ok()
}
