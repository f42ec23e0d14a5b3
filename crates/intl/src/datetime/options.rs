//! The options of `Intl.DateTimeFormat`.

use icu::calendar::AnyCalendarKind;
use icu::calendar::preferences::CalendarPreferences;
use icu::locale::Locale;
use icu::locale::extensions::unicode::key;
use serde::Deserialize;

use super::zone::Zone;
use crate::IntlError;
use crate::choice::choice;
use crate::locale::{NUMBERS, keyword, negotiate, set_keyword};

choice! { TextWidth { Narrow = "narrow", Short = "short", Long = "long" } }
choice! { NumberWidth { Numeric = "numeric", TwoDigit = "2-digit" } }
choice! {
    MonthWidth { Numeric = "numeric", TwoDigit = "2-digit", Narrow = "narrow", Short = "short", Long = "long" }
}
choice! {
    ZoneNameWidth {
        Short = "short", Long = "long", ShortOffset = "shortOffset", LongOffset = "longOffset",
        ShortGeneric = "shortGeneric", LongGeneric = "longGeneric",
    }
}
choice! { FormatStyle { Full = "full", Long = "long", Medium = "medium", Short = "short" } }
choice! { HourCycle { H11 = "h11", H12 = "h12", H23 = "h23", H24 = "h24" } }
choice! { Required { Any = "any", Date = "date", Time = "time" } }
choice! { Defaults { All = "all", Date = "date", Time = "time" } }

/// The calendars that dates can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalendarName {
    Gregory,
    Buddhist,
    Japanese,
    Persian,
    Roc,
}

impl CalendarName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Gregory => "gregory",
            Self::Buddhist => "buddhist",
            Self::Japanese => "japanese",
            Self::Persian => "persian",
            Self::Roc => "roc",
        }
    }
}

/// The options as the caller gives them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DateTimeRequest {
    locales: Vec<String>,
    calendar: Option<String>,
    numbering_system: Option<String>,
    hour12: Option<bool>,
    hour_cycle: Option<String>,
    time_zone: Option<String>,
    weekday: Option<String>,
    era: Option<String>,
    year: Option<String>,
    month: Option<String>,
    day: Option<String>,
    day_period: Option<String>,
    hour: Option<String>,
    minute: Option<String>,
    second: Option<String>,
    fractional_second_digits: Option<f64>,
    time_zone_name: Option<String>,
    date_style: Option<String>,
    time_style: Option<String>,
    /// What must be among the fields, else `defaults` are added.
    required: Option<String>,
    defaults: Option<String>,
}

/// The requested fields.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) weekday: Option<TextWidth>,
    pub(crate) era: Option<TextWidth>,
    pub(crate) year: Option<NumberWidth>,
    pub(crate) month: Option<MonthWidth>,
    pub(crate) day: Option<NumberWidth>,
    pub(crate) hour: Option<NumberWidth>,
    pub(crate) minute: Option<NumberWidth>,
    pub(crate) second: Option<NumberWidth>,
    pub(crate) fraction: Option<u8>,
    pub(crate) zone: Option<ZoneNameWidth>,
}

impl Fields {
    pub(crate) fn has_date(&self) -> bool {
        self.weekday.is_some() || self.year.is_some() || self.month.is_some() || self.day.is_some()
    }

    pub(crate) fn has_time(&self) -> bool {
        self.hour.is_some() || self.minute.is_some() || self.second.is_some() || self.fraction.is_some()
    }
}

/// Resolved options.
#[derive(Clone, Debug)]
pub(crate) struct DateTimeOptions {
    pub(crate) locale: Locale,
    pub(crate) calendar: CalendarName,
    pub(crate) zone: Zone,
    /// `c12` and `c24` of the extension `hc` choose by locale, which `hour12` asks for.
    pub(crate) hour_keyword: Option<String>,
    pub(crate) fields: Fields,
    pub(crate) date_style: Option<FormatStyle>,
    pub(crate) time_style: Option<FormatStyle>,
}

impl DateTimeOptions {
    pub(crate) fn read(request: &DateTimeRequest) -> Result<Self, IntlError> {
        let mut locale = negotiate(&request.locales, &[NUMBERS, key!("ca"), key!("hc")])?;
        set_keyword(&mut locale, NUMBERS, request.numbering_system.as_deref())?;
        let calendar = read_calendar(&mut locale, request.calendar.as_deref())?;
        let hour_keyword = read_hour_cycle(&mut locale, request)?;
        let zone = request.time_zone.as_deref().map_or_else(|| Ok(Zone::utc()), Zone::find)?;
        let date_style = FormatStyle::read_optional("dateStyle", request.date_style.as_deref())?;
        let time_style = FormatStyle::read_optional("timeStyle", request.time_style.as_deref())?;
        let mut fields = read_fields(request)?;
        let required = Required::read("required", request.required.as_deref(), Required::Any)?;
        let defaults = Defaults::read("defaults", request.defaults.as_deref(), Defaults::Date)?;
        if date_style.is_some() || time_style.is_some() {
            let explicit =
                fields.has_date() || fields.has_time() || fields.era.is_some() || fields.zone.is_some();
            if explicit {
                return Err(IntlError::kind(
                    "dateStyle and timeStyle cannot be used with options for single fields such as `month` or `hour`",
                ));
            }
            match required {
                Required::Date if time_style.is_some() => {
                    return Err(IntlError::kind("invalid option `timeStyle`: only a date is formatted here"));
                }
                Required::Time if date_style.is_some() => {
                    return Err(IntlError::kind("invalid option `dateStyle`: only a time is formatted here"));
                }
                _ => {}
            }
        } else {
            add_defaults(&mut fields, required, defaults);
        }
        Ok(Self { locale, calendar, zone, hour_keyword, fields, date_style, time_style })
    }
}

impl DateTimeOptions {
    /// The locale with the hour cycle of its region.
    pub(crate) fn plain_locale(&self) -> Locale {
        let mut locale = self.locale.clone();
        locale.extensions.unicode.keywords.remove(key!("hc"));
        locale
    }
}

fn add_defaults(fields: &mut Fields, required: Required, defaults: Defaults) {
    let has_required = match required {
        Required::Date => fields.has_date(),
        Required::Time => fields.has_time(),
        Required::Any => fields.has_date() || fields.has_time(),
    };
    if has_required {
        return;
    }
    if defaults != Defaults::Time {
        fields.year = Some(NumberWidth::Numeric);
        fields.month = Some(MonthWidth::Numeric);
        fields.day = Some(NumberWidth::Numeric);
    }
    if defaults != Defaults::Date {
        fields.hour = Some(NumberWidth::Numeric);
        fields.minute = Some(NumberWidth::Numeric);
        fields.second = Some(NumberWidth::Numeric);
    }
}

fn read_fields(request: &DateTimeRequest) -> Result<Fields, IntlError> {
    if request.day_period.is_some() {
        return Err(IntlError::range(
            "option `dayPeriod` is not supported: use `hour12: true`, which shows AM and PM",
        ));
    }
    let fraction = match request.fractional_second_digits {
        None => None,
        Some(digits) if (1.0..=3.0).contains(&digits) => Some(digits.floor() as u8),
        Some(digits) => {
            return Err(IntlError::range(format!(
                "invalid value `{digits}` of option `fractionalSecondDigits`: expected 1 to 3"
            )));
        }
    };
    Ok(Fields {
        weekday: TextWidth::read_optional("weekday", request.weekday.as_deref())?,
        era: TextWidth::read_optional("era", request.era.as_deref())?,
        year: NumberWidth::read_optional("year", request.year.as_deref())?,
        month: MonthWidth::read_optional("month", request.month.as_deref())?,
        day: NumberWidth::read_optional("day", request.day.as_deref())?,
        hour: NumberWidth::read_optional("hour", request.hour.as_deref())?,
        minute: NumberWidth::read_optional("minute", request.minute.as_deref())?,
        second: NumberWidth::read_optional("second", request.second.as_deref())?,
        fraction,
        zone: ZoneNameWidth::read_optional("timeZoneName", request.time_zone_name.as_deref())?,
    })
}

fn read_calendar(locale: &mut Locale, option: Option<&str>) -> Result<CalendarName, IntlError> {
    let requested = option.map(str::to_ascii_lowercase).or_else(|| keyword(locale, &key!("ca")));
    let unsupported = |name: &str| {
        IntlError::range(format!(
            "unsupported calendar `{}`: use `calendar: 'gregory'`, buddhist, japanese, persian or roc",
            crate::choice::shown(name)
        ))
    };
    let calendar = match requested.as_deref() {
        Some("gregory" | "gregorian" | "iso8601") => CalendarName::Gregory,
        Some("buddhist") => CalendarName::Buddhist,
        Some("japanese") => CalendarName::Japanese,
        Some("persian") => CalendarName::Persian,
        Some("roc") => CalendarName::Roc,
        Some(other) => return Err(unsupported(other)),
        None => match AnyCalendarKind::try_new(CalendarPreferences::from(&*locale))
            .unwrap_or(AnyCalendarKind::Gregorian)
        {
            AnyCalendarKind::Gregorian | AnyCalendarKind::Iso => CalendarName::Gregory,
            AnyCalendarKind::Buddhist => CalendarName::Buddhist,
            AnyCalendarKind::Japanese => CalendarName::Japanese,
            AnyCalendarKind::Persian => CalendarName::Persian,
            AnyCalendarKind::Roc => CalendarName::Roc,
            other => return Err(unsupported(&format!("{other:?}").to_ascii_lowercase())),
        },
    };
    if option.is_some() {
        locale.extensions.unicode.keywords.remove(key!("ca"));
    }
    Ok(calendar)
}

fn read_hour_cycle(locale: &mut Locale, request: &DateTimeRequest) -> Result<Option<String>, IntlError> {
    let option = HourCycle::read_optional("hourCycle", request.hour_cycle.as_deref())?;
    let of_tag = keyword(locale, &key!("hc"));
    let chosen = match (request.hour12, option) {
        (Some(true), _) => Some("c12".to_owned()),
        (Some(false), _) => Some("c24".to_owned()),
        (None, Some(cycle)) => Some(cycle.as_str().to_owned()),
        (None, None) => of_tag.clone(),
    };
    if chosen.as_deref() == Some("h24") {
        return Err(IntlError::range("hourCycle `h24` is not supported: use `h23`"));
    }
    if request.hour12.is_some() || chosen != of_tag {
        locale.extensions.unicode.keywords.remove(key!("hc"));
    }
    Ok(chosen)
}
