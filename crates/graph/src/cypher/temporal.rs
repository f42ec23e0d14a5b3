//! Dates and points in time, as far as commits need them: read from ISO 8601, compared, and taken apart.

const DAY: i64 = 86_400;

/// Years that are read: what four digits hold.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9_999;

/// A day: days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date(pub i64);

/// A point in time, with the distance of its clock from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DateTime {
    /// Seconds since 1970-01-01 in UTC.
    pub seconds: i64,
    pub nanos: u32,
    /// Seconds that its clock is ahead.
    pub offset: i32,
}

impl Date {
    /// Reads `2026-11-18`, `20261118`, `2026-11`, `2026`, `2026-W47-3`, `2026-322` and the same without `-`.
    pub fn parse(text: &str) -> Option<Self> {
        if !text.is_ascii() {
            return None;
        }
        let (year, rest) = text.split_at_checked(4)?;
        let year = number(year)?;
        let dashed = rest.starts_with('-');
        let rest = rest.strip_prefix('-').unwrap_or(rest);
        if let Some(week) = rest.strip_prefix('W') {
            return Self::of_week(year, week, dashed);
        }
        let (month, day) = match (rest.len(), dashed) {
            (0, false) => (1, 1),
            (2, _) => (number(rest)?, 1),
            (3, _) => {
                let day = number(rest)?;
                let length = if is_leap(year) { 366 } else { 365 };
                return (1..=length).contains(&day).then(|| Self(days(year, 1, 1) + day - 1));
            }
            (4, false) => (number(rest.get(..2)?)?, number(rest.get(2..)?)?),
            (5, true) if rest.get(2..3)? == "-" => (number(rest.get(..2)?)?, number(rest.get(3..)?)?),
            _ => return None,
        };
        let fits =
            YEARS.contains(&year) && (1..=12).contains(&month) && day >= 1 && day <= length(year, month);
        fits.then(|| Self(days(year, month, day)))
    }

    fn of_week(year: i64, week: &str, dashed: bool) -> Option<Self> {
        let (week, day) = match (week.len(), dashed) {
            (2, _) => (number(week)?, 1),
            (3, false) => (number(week.get(..2)?)?, number(week.get(2..)?)?),
            (4, true) if week.get(2..3)? == "-" => (number(week.get(..2)?)?, number(week.get(3..)?)?),
            _ => return None,
        };
        let first = monday_of_first_week(year);
        let weeks = (monday_of_first_week(year + 1) - first) / 7;
        ((1..=weeks).contains(&week) && (1..=7).contains(&day))
            .then(|| Self(first + (week - 1) * 7 + day - 1))
    }

    pub fn to_text(self) -> String {
        let (year, month, day) = civil(self.0);
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// A part of it, by the name that Cypher has for it.
    pub fn part(self, name: &str) -> Option<i64> {
        let (year, month, day) = civil(self.0);
        let weekday = (self.0 + 3).rem_euclid(7) + 1;
        // The week belongs to the year that has its Thursday.
        let week_year = civil(self.0 + 4 - weekday).0;
        Some(match name {
            "year" => year,
            "quarter" => (month - 1) / 3 + 1,
            "month" => month,
            "day" => day,
            "week" => (self.0 - monday_of_first_week(week_year)) / 7 + 1,
            "weekYear" => week_year,
            "weekDay" | "dayOfWeek" => weekday,
            "ordinalDay" => self.0 - days(year, 1, 1) + 1,
            "dayOfQuarter" => self.0 - days(year, (month - 1) / 3 * 3 + 1, 1) + 1,
            _ => return None,
        })
    }
}

impl DateTime {
    /// Reads a date, `T` or a blank, a time of day and a distance from UTC. Without a time it is midnight, without a
    /// distance UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = match text.split_once(['T', 't', ' ']) {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (text, ""),
        };
        let date = Date::parse(date)?;
        let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
        let (time, zone) = rest.split_at_checked(zone)?;
        let (seconds, nanos) = if rest.is_empty() { (0, 0) } else { time_of_day(time)? };
        let offset = distance(zone)?;
        Some(Self { seconds: date.0 * DAY + seconds - i64::from(offset), nanos, offset })
    }

    /// The date that its clock shows.
    pub fn date(self) -> Date {
        Date((self.seconds + i64::from(self.offset)).div_euclid(DAY))
    }

    pub fn to_text(self) -> String {
        let clock = (self.seconds + i64::from(self.offset)).rem_euclid(DAY);
        let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
        let mut text = format!("{}T{hour:02}:{minute:02}", self.date().to_text());
        if second != 0 || self.nanos != 0 {
            text.push_str(&format!(":{second:02}"));
        }
        if self.nanos != 0 {
            let digits = format!("{:09}", self.nanos);
            text.push('.');
            text.push_str(digits.trim_end_matches('0'));
        }
        text.push_str(&self.zone());
        text
    }

    fn zone(self) -> String {
        if self.offset == 0 {
            return "Z".to_owned();
        }
        let (sign, distance) = if self.offset < 0 { ('-', -self.offset) } else { ('+', self.offset) };
        let seconds = distance % 60;
        let mut text = format!("{sign}{:02}:{:02}", distance / 3_600, distance / 60 % 60);
        if seconds != 0 {
            text.push_str(&format!(":{seconds:02}"));
        }
        text
    }

    /// A part of it as a number.
    pub fn part(self, name: &str) -> Option<i64> {
        let clock = (self.seconds + i64::from(self.offset)).rem_euclid(DAY);
        let nanos = i64::from(self.nanos);
        Some(match name {
            "hour" => clock / 3_600,
            "minute" => clock / 60 % 60,
            "second" => clock % 60,
            "millisecond" => nanos / 1_000_000,
            "microsecond" => nanos / 1_000,
            "nanosecond" => nanos,
            "epochSeconds" => self.seconds,
            "epochMillis" => self.seconds * 1_000 + nanos / 1_000_000,
            "offsetMinutes" => i64::from(self.offset / 60),
            "offsetSeconds" => i64::from(self.offset),
            _ => return self.date().part(name),
        })
    }

    /// A part of it as a text.
    pub fn text_part(self, name: &str) -> Option<String> {
        matches!(name, "offset" | "timezone").then(|| self.zone())
    }
}

fn number(digits: &str) -> Option<i64> {
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// `12`, `12:30`, `1230`, `12:30:15`, `123015`, the last two with a fraction.
fn time_of_day(text: &str) -> Option<(i64, u32)> {
    let (clock, fraction) =
        text.split_once(['.', ',']).map_or((text, None), |(one, other)| (one, Some(other)));
    let digits = clock.replace(':', "");
    let colons = clock.len() - digits.len();
    let fits = match digits.len() {
        2 => colons == 0,
        4 => colons <= 1,
        6 => colons == 0 || colons == 2,
        _ => false,
    };
    if !fits || !clock.is_ascii() || (fraction.is_some() && digits.len() != 6) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), number);
    let (hour, minute, second) = (part(0)?, part(2)?, part(4)?);
    let nanos = match fraction {
        None => 0,
        Some(digits) if (1..=9).contains(&digits.len()) => {
            u32::try_from(number(&format!("{digits:0<9}"))?).ok()?
        }
        Some(_) => return None,
    };
    (hour < 24 && minute < 60 && second < 60).then_some((hour * 3_600 + minute * 60 + second, nanos))
}

/// The distance from UTC: nothing, `Z`, `+01`, `+0100`, `+01:00`.
fn distance(text: &str) -> Option<i32> {
    if matches!(text, "" | "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = text.split_at_checked(1)?;
    let (seconds, nanos) = time_of_day(rest)?;
    let seconds = i32::try_from(seconds).ok().filter(|seconds| nanos == 0 && *seconds <= 18 * 3_600)?;
    match sign {
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a day of the Gregorian calendar. Years begin in March here, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// The first week of a year is the one that has its fourth of January.
fn monday_of_first_week(year: i64) -> i64 {
    let fourth = days(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}
