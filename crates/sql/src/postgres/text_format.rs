//! How PostgreSQL's numbers, times and addresses are written down.

use std::error::Error;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::decode::Bytes;
use crate::values::fraction;

type Fault = Box<dyn Error + Sync + Send>;

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL's clock begins.
const EPOCH_DAYS: i64 = 10_957;

const MICROSECONDS: i64 = 1_000_000;
const DAY: i64 = 86_400 * MICROSECONDS;

/// A decimal number with every digit it was stored with.
pub(crate) fn numeric(raw: &mut Bytes<'_>) -> Result<String, Fault> {
    const NEGATIVE: u16 = 0x4000;
    const NOT_A_NUMBER: u16 = 0xc000;
    const INFINITY: u16 = 0xd000;
    const MINUS_INFINITY: u16 = 0xf000;
    let count = u16::from_be_bytes(raw.number()?);
    let weight = i16::from_be_bytes(raw.number()?);
    let sign = u16::from_be_bytes(raw.number()?);
    let scale = usize::from(u16::from_be_bytes(raw.number()?));
    match sign {
        NOT_A_NUMBER => return Ok("NaN".to_owned()),
        INFINITY => return Ok("Infinity".to_owned()),
        MINUS_INFINITY => return Ok("-Infinity".to_owned()),
        _ => {}
    }
    // Groups of four digits; the first one is worth 10000^weight.
    let mut groups = Vec::new();
    for _ in 0..count {
        groups.push(u16::from_be_bytes(raw.number()?));
    }
    let group = |place: i32| {
        let index = i32::from(weight) - place;
        usize::try_from(index).ok().and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let mut whole = String::new();
    for place in (0..=i32::from(weight).max(0)).rev() {
        write!(whole, "{:04}", group(place))?;
    }
    let whole = whole.trim_start_matches('0');
    let mut decimals = String::new();
    let mut place = -1;
    while decimals.len() < scale {
        write!(decimals, "{:04}", group(place))?;
        place -= 1;
    }
    decimals.truncate(scale);
    let minus = if sign == NEGATIVE { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if scale == 0 { "" } else { "." };
    Ok(format!("{minus}{whole}{point}{decimals}"))
}

pub(crate) fn uuid(raw: &mut Bytes<'_>) -> Result<String, Fault> {
    let hex = format!("{:032x}", u128::from_be_bytes(raw.number()?));
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    Ok(format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)))
}

/// Days since 2000-01-01.
pub(crate) fn date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => calendar_date(i64::from(days) + EPOCH_DAYS),
    }
}

/// Microseconds since 2000-01-01.
pub(crate) fn timestamp(microseconds: i64, zone: &str) -> String {
    match microseconds {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        microseconds => {
            let (days, rest) = (microseconds.div_euclid(DAY), microseconds.rem_euclid(DAY));
            format!("{}T{}{zone}", calendar_date(days + EPOCH_DAYS), time(rest))
        }
    }
}

/// Microseconds since midnight.
pub(crate) fn time(microseconds: i64) -> String {
    let (seconds, rest) = (microseconds / MICROSECONDS, microseconds % MICROSECONDS);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!(
        "{hours:02}:{minutes:02}:{:02}{}",
        seconds % 60,
        fraction(u32::try_from(rest).unwrap_or_default())
    )
}

/// A time and the seconds west of Greenwich.
pub(crate) fn zoned_time(raw: &mut Bytes<'_>) -> Result<String, Fault> {
    let clock = time(i64::from_be_bytes(raw.number()?));
    let west = i32::from_be_bytes(raw.number()?);
    let sign = if west > 0 { '-' } else { '+' };
    let (hours, minutes, seconds) = (west.abs() / 3_600, west.abs() / 60 % 60, west.abs() % 60);
    let seconds = if seconds == 0 { String::new() } else { format!(":{seconds:02}") };
    Ok(format!("{clock}{sign}{hours:02}:{minutes:02}{seconds}"))
}

/// The Gregorian date of a day, counted from 1970-01-01. Years beyond four digits have a sign, as ISO 8601 wants it.
fn calendar_date(days: i64) -> String {
    // The calendar repeats every 400 years; years begin in March here, so that the leap day comes last.
    const DAYS_PER_ERA: i64 = 146_097;
    const DAYS_TO_MARCH_OF_YEAR_0: i64 = 719_468;
    let shifted = days + DAYS_TO_MARCH_OF_YEAR_0;
    let (era, day) = (shifted.div_euclid(DAYS_PER_ERA), shifted.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    if (0..=9_999).contains(&year) {
        format!("{year:04}-{month:02}-{day_of_month:02}")
    } else {
        format!("{year:+07}-{month:02}-{day_of_month:02}")
    }
}

/// An ISO 8601 duration. Months, days and seconds are kept apart, because they do not convert into each other.
pub(crate) fn interval(raw: &mut Bytes<'_>) -> Result<String, Fault> {
    let microseconds = i64::from_be_bytes(raw.number()?);
    let days = i32::from_be_bytes(raw.number()?);
    let months = i32::from_be_bytes(raw.number()?);
    let mut text = "P".to_owned();
    for (number, unit) in [(months / 12, 'Y'), (months % 12, 'M'), (days, 'D')] {
        if number != 0 {
            write!(text, "{number}{unit}")?;
        }
    }
    let (hours, minutes) = (microseconds / (3_600 * MICROSECONDS), microseconds / (60 * MICROSECONDS) % 60);
    let rest = microseconds % (60 * MICROSECONDS);
    if microseconds != 0 {
        text.push('T');
        for (number, unit) in [(hours, 'H'), (minutes, 'M')] {
            if number != 0 {
                write!(text, "{number}{unit}")?;
            }
        }
        if rest != 0 {
            let minus = if rest < 0 { "-" } else { "" };
            let below = u32::try_from(rest.abs() % MICROSECONDS).unwrap_or_default();
            write!(text, "{minus}{}{}S", rest.abs() / MICROSECONDS, fraction(below))?;
        }
    }
    Ok(if text == "P" { "PT0S".to_owned() } else { text })
}

/// Family, prefix length, whether it is a network, length, address.
pub(crate) fn network(raw: &mut Bytes<'_>) -> Result<String, Fault> {
    let [_, prefix, is_network, length] = raw.number::<4>()?;
    let (address, full) = match length {
        4 => (Ipv4Addr::from(raw.number::<4>()?).to_string(), 32),
        16 => (Ipv6Addr::from(raw.number::<16>()?).to_string(), 128),
        _ => return Err("an address has an unknown length".into()),
    };
    Ok(if is_network == 0 && prefix == full { address } else { format!("{address}/{prefix}") })
}

pub(crate) fn hardware_address(raw: &[u8]) -> String {
    raw.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// A length in bits, then the bits from the left.
pub(crate) fn bits(raw: &mut Bytes<'_>) -> Result<String, Fault> {
    let length = usize::try_from(i32::from_be_bytes(raw.number()?))?;
    let mut text: String = raw.rest().iter().map(|byte| format!("{byte:08b}")).collect();
    text.truncate(length);
    Ok(text)
}

pub(crate) fn log_position(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position & u64::from(u32::MAX))
}
