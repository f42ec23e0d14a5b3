//! Patterns of dates in digits, from the table that `data/dates.mjs` writes.

use super::options::{CalendarName, DateTimeOptions, MonthWidth, TextWidth};

const TABLE: &str = include_str!("../../data/dates.tsv");

/// The pattern for the requested date fields, where they are all in digits and the table has the locale.
pub(super) fn pattern(options: &DateTimeOptions) -> Option<&'static str> {
    let fields = &options.fields;
    let locale = &options.locale.id;
    let language = locale.language.as_str();
    let usual = match options.calendar {
        CalendarName::Gregory => language != "th",
        CalendarName::Buddhist => language == "th",
        _ => false,
    };
    let digits = matches!(fields.month, Some(MonthWidth::Numeric | MonthWidth::TwoDigit));
    if !usual || !digits || fields.era.is_some() {
        return None;
    }
    let long = fields.weekday == Some(TextWidth::Long);
    let skeleton = match (fields.year.is_some(), fields.day.is_some(), fields.weekday.is_some()) {
        (true, true, false) => "yMd",
        (true, true, true) if long => "yMEEEEd",
        (true, true, true) => "yMEd",
        (true, false, false) => "yM",
        (false, true, false) => "Md",
        (false, true, true) if long => "MEEEEd",
        (false, true, true) => "MEd",
        _ => return None,
    };
    let region = locale.region.map(|region| region.to_string()).unwrap_or_default();
    let traditional = locale.script.is_some_and(|script| script.as_str() == "Hant");
    let exact =
        if traditional && region != "HK" { "zh-TW".to_owned() } else { format!("{language}-{region}") };
    row(&exact, skeleton).or_else(|| row(language, skeleton))
}

fn row(locale: &str, skeleton: &str) -> Option<&'static str> {
    TABLE.lines().find_map(|line| {
        line.strip_prefix(locale)?.strip_prefix('\t')?.strip_prefix(skeleton)?.strip_prefix('\t')
    })
}
