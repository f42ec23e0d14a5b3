//! Formatting in one calendar: ICU4X has a type for each, so the code is generated.

use std::fmt::Debug;

use icu::calendar::cal::{Buddhist, Gregorian, Japanese, Persian, Roc};
use icu::calendar::{AsCalendar, Date, Iso};
use icu::datetime::fieldsets::enums::CompositeFieldSet;
use icu::datetime::pattern::{DateTimePattern, FixedCalendarDateTimeNames};
use icu::datetime::{DateTimeFormatterPreferences, FixedCalendarDateTimeFormatter, parts};
use icu::time::zone::{TimeZoneInfo, UtcOffset, ZoneNameTimestamp, models};
use icu::time::{Time, ZonedDateTime};
use writeable::Part as WriteablePart;

use super::options::CalendarName;
use super::zone::Zone;
use crate::IntlError;
use crate::part::{Part, try_collect};

type Moment<C> = ZonedDateTime<C, TimeZoneInfo<models::AtTime>>;

/// The pattern of a field set, and the names it needs, in one calendar.
pub(super) trait CalendarFormat: Debug {
    fn parts(&self, milliseconds: i64, zone: &Zone) -> Option<Vec<Part>>;
}

/// A moment as the clocks and calendars of a zone show it.
fn moment<C: AsCalendar>(calendar: C, milliseconds: i64, zone: &Zone) -> Moment<C> {
    let offset: UtcOffset = zone.offset_at(milliseconds);
    let local = ZonedDateTime::from_epoch_milliseconds_and_utc_offset(milliseconds, offset);
    let date: Date<Iso> = local.date;
    let time: Time = local.time;
    let name_moment = ZoneNameTimestamp::from_epoch_seconds(milliseconds.div_euclid(1000));
    let zone = zone.id.with_offset(Some(offset)).with_zone_name_timestamp(name_moment);
    ZonedDateTime { date: date.to_calendar(calendar), time, zone }
}

/// The name that ECMA-402 has for a part.
fn name(part: WriteablePart, open: &[&'static str]) -> Option<&'static str> {
    if part.category == "decimal" {
        // A second with a fraction is one field of ICU4X and three parts here.
        return match (open.contains(&"second"), part.value) {
            (true, "decimal") => Some("literal"),
            (true, "fraction") => Some("fractionalSecond"),
            _ => None,
        };
    }
    Some(match part {
        parts::ERA => "era",
        parts::YEAR | parts::EXTENDED_YEAR => "year",
        parts::RELATED_YEAR => "relatedYear",
        parts::YEAR_NAME => "yearName",
        parts::MONTH => "month",
        parts::DAY => "day",
        parts::WEEKDAY => "weekday",
        parts::DAY_PERIOD => "dayPeriod",
        parts::HOUR => "hour",
        parts::MINUTE => "minute",
        parts::SECOND => "second",
        parts::TIME_ZONE_NAME => "timeZoneName",
        _ => return None,
    })
}

macro_rules! calendars {
    ($($variant:ident => $type:ty, $value:expr, $format:ident);+ $(;)?) => {
        $(
            #[derive(Debug)]
            struct $format {
                names: FixedCalendarDateTimeNames<$type, CompositeFieldSet>,
                pattern: DateTimePattern,
            }

            impl CalendarFormat for $format {
                fn parts(&self, milliseconds: i64, zone: &Zone) -> Option<Vec<Part>> {
                    let moment = moment($value, milliseconds, zone);
                    try_collect(&self.names.with_pattern_unchecked(&self.pattern).format(&moment), name)
                }
            }
        )+

        /// The pattern that CLDR has for a field set.
        pub(super) fn pattern_of(
            calendar: CalendarName,
            preferences: DateTimeFormatterPreferences,
            fields: CompositeFieldSet,
        ) -> Result<String, IntlError> {
            let failed = |error: &dyn std::fmt::Display| {
                IntlError::range(format!("these fields of a date cannot be shown together: {error}"))
            };
            Ok(match calendar {
                $(CalendarName::$variant => {
                    let formatter: FixedCalendarDateTimeFormatter<$type, CompositeFieldSet> =
                        FixedCalendarDateTimeFormatter::try_new(preferences, fields).map_err(|error| failed(&error))?;
                    formatter.format(&moment($value, SAMPLE_MILLISECONDS, &Zone::utc())).pattern().to_string()
                })+
            })
        }

        /// A formatter that uses `pattern`.
        pub(super) fn format_of(
            calendar: CalendarName,
            preferences: DateTimeFormatterPreferences,
            pattern: &str,
        ) -> Result<Box<dyn CalendarFormat>, IntlError> {
            let failed = |error: &dyn std::fmt::Display| {
                IntlError::range(format!("cannot format dates with `{pattern}`: {error}"))
            };
            let pattern = DateTimePattern::try_from_pattern_str(pattern).map_err(|error| failed(&error))?;
            Ok(match calendar {
                $(CalendarName::$variant => {
                    let mut names: FixedCalendarDateTimeNames<$type, CompositeFieldSet> =
                        FixedCalendarDateTimeNames::try_new(preferences).map_err(|error| failed(&error))?;
                    names.include_for_pattern(&pattern).map_err(|error| failed(&error))?;
                    Box::new($format { names, pattern })
                })+
            })
        }
    };
}

/// 10 March 2024: a year that the short pattern writes with two digits where it does so at all.
const SAMPLE_MILLISECONDS: i64 = 1_710_028_800_000;

calendars! {
    Gregory => Gregorian, Gregorian, GregorianFormat;
    Buddhist => Buddhist, Buddhist, BuddhistFormat;
    Japanese => Japanese, Japanese::new(), JapaneseFormat;
    Persian => Persian, Persian, PersianFormat;
    Roc => Roc, Roc, RocFormat;
}
