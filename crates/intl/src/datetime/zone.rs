//! Time zones: IANA names and fixed offsets, with the rules compiled in.

use icu::time::zone::iana::IanaParserExtended;
use icu::time::zone::{TimeZone as ZoneId, UtcOffset};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::IntlError;
use crate::choice::shown;

/// No name of a zone is longer.
const MAX_NAME_BYTES: usize = 64;

/// A time zone and its name.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) name: String,
    pub(crate) id: ZoneId,
    rules: TimeZone,
}

impl Zone {
    pub(crate) fn utc() -> Self {
        Self { name: "UTC".to_owned(), id: ZoneId::from_iana_id("Etc/UTC"), rules: TimeZone::UTC }
    }

    pub(crate) fn find(name: &str) -> Result<Self, IntlError> {
        let invalid = || {
            IntlError::range(format!(
                "invalid time zone `{}`: expected a name such as `Europe/Berlin` or an offset such as `+02:00`",
                shown(name)
            ))
        };
        if name.len() > MAX_NAME_BYTES {
            return Err(invalid());
        }
        if name.starts_with(['+', '-']) {
            return Self::fixed(name).ok_or_else(invalid);
        }
        let rules = TimeZoneDatabase::bundled().get(name).map_err(|_| invalid())?;
        let parsed = IanaParserExtended::new().parse(name);
        let canonical = if parsed.time_zone == ZoneId::UNKNOWN {
            rules.iana_name().unwrap_or(name).to_owned()
        } else {
            parsed.canonical.to_owned()
        };
        if matches!(canonical.as_str(), "Etc/UTC" | "Etc/GMT" | "GMT" | "UTC") {
            return Ok(Self::utc());
        }
        Ok(Self { name: canonical, id: parsed.time_zone, rules })
    }

    /// An offset such as `+05:30`, `-0800` or `+02`.
    fn fixed(text: &str) -> Option<Self> {
        let sign = if text.starts_with('-') { -1 } else { 1 };
        let digits = text.get(1..)?;
        let (hours, minutes) = match digits.len() {
            2 => (digits, "00"),
            4 => (digits.get(..2)?, digits.get(2..)?),
            5 if digits.get(2..3)? == ":" => (digits.get(..2)?, digits.get(3..)?),
            _ => return None,
        };
        if !hours.bytes().chain(minutes.bytes()).all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        if hours > 23 || minutes > 59 {
            return None;
        }
        let seconds = sign * (hours * 3600 + minutes * 60);
        let offset = jiff::tz::Offset::from_seconds(seconds).ok()?;
        let name = format!("{}{hours:02}:{minutes:02}", if seconds < 0 { '-' } else { '+' });
        Some(Self { name, id: ZoneId::UNKNOWN, rules: TimeZone::fixed(offset) })
    }

    /// Seconds east of Greenwich at a moment.
    pub(crate) fn offset_at(&self, milliseconds: i64) -> UtcOffset {
        // Jiff's years end before those of JavaScript; the rules at its ends hold beyond them.
        let last = Timestamp::MAX.as_millisecond();
        let first = Timestamp::MIN.as_millisecond();
        let moment =
            Timestamp::from_millisecond(milliseconds.clamp(first, last)).unwrap_or(Timestamp::UNIX_EPOCH);
        UtcOffset::try_from_seconds(self.rules.to_offset(moment).seconds()).unwrap_or(UtcOffset::zero())
    }
}
