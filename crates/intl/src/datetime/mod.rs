//! `Intl.DateTimeFormat`.
//!
//! ICU4X chooses the pattern for a set of fields, but knows one width for all of them. So the pattern is taken from it,
//! the widths that the caller asks for are put in, and ICU4X formats with the result.

mod calendar;
mod choose;
mod numeric;
mod options;
mod pattern;
mod zone;

use icu::datetime::DateTimeFormatterPreferences;
use icu::locale::Locale;
use icu::locale::extensions::unicode::key;
use serde_json::{Map, Value};

use crate::IntlError;
use crate::locale::set_keyword;
use crate::number::symbols::Symbols;
use crate::part::{Part, join};
use calendar::{CalendarFormat, format_of};
use choose::Chooser;
use options::{DateTimeOptions, DateTimeRequest, ZoneNameWidth};
use pattern::Tokens;

/// The largest distance from 1970 that a JavaScript date can have.
const MAX_MILLISECONDS: f64 = 8.64e15;

const NARROW_NO_BREAK_SPACE: char = '\u{202f}';
const YEAR: [char; 3] = ['y', 'U', 'r'];
const MONTH: [char; 2] = ['M', 'L'];
const WEEKDAY: [char; 3] = ['E', 'c', 'e'];
const HOUR: [char; 3] = ['h', 'H', 'K'];

/// A date formatter of one locale and time zone.
#[derive(Debug)]
pub struct DateTimeFormat {
    options: DateTimeOptions,
    tokens: Tokens,
    format: Box<dyn CalendarFormat>,
    numbering_system: String,
}

impl DateTimeFormat {
    /// A formatter from the JSON of its options, with the requested locales in `locales`.
    ///
    /// # Errors
    /// For options that are invalid or not supported.
    pub fn new(options: &str) -> Result<Self, IntlError> {
        let options = DateTimeOptions::read(&crate::read_options::<DateTimeRequest>(options)?)?;
        let preferences = preferences(&options)?;
        let choose = Chooser { options: &options, preferences };
        let tokens = match (options.date_style, options.time_style) {
            (None, None) => choose.by_fields()?,
            (date, time) => choose.by_style(date, time)?,
        };
        let format = format_of(options.calendar, preferences, &tokens.render())?;
        let numbering_system = Symbols::load(&options.locale)?.numbering_system;
        Ok(Self { options, tokens, format, numbering_system })
    }

    /// # Errors
    /// For a moment that is not a date.
    pub fn format(&self, milliseconds: f64) -> Result<String, IntlError> {
        // Node.js writes a plain space here, because too many programs take such texts apart.
        Ok(join(&self.format_to_parts(milliseconds)?).replace(NARROW_NO_BREAK_SPACE, " "))
    }

    /// # Errors
    /// For a moment that is not a date.
    pub fn format_to_parts(&self, milliseconds: f64) -> Result<Vec<Part>, IntlError> {
        if milliseconds.is_nan() || milliseconds.abs() > MAX_MILLISECONDS {
            return Err(IntlError::range("invalid time value"));
        }
        let mut parts = self
            .format
            .parts(milliseconds.trunc() as i64, &self.options.zone)
            .ok_or_else(|| IntlError::range("no names for this date in the chosen calendar"))?;
        if self.options.fields.zone == Some(ZoneNameWidth::Short) {
            // Greenwich has its name in every locale, where ICU4X writes the offset.
            for part in parts.iter_mut().filter(|part| part.kind == "timeZoneName" && part.value == "GMT+0") {
                "GMT".clone_into(&mut part.value);
            }
        }
        Ok(parts)
    }

    #[must_use]
    pub fn resolved_options(&self) -> Value {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("locale", self.options.locale.to_string().into());
        set("calendar", self.options.calendar.as_str().into());
        set("numberingSystem", self.numbering_system.as_str().into());
        set("timeZone", self.options.zone.name.as_str().into());
        if let Some((symbol, _)) = self.tokens.field(&HOUR) {
            let cycle = match symbol {
                'H' => "h23",
                'K' => "h11",
                _ => "h12",
            };
            set("hourCycle", cycle.into());
            set("hour12", (symbol != 'H').into());
        }
        if let Some(style) = self.options.date_style {
            set("dateStyle", style.as_str().into());
        }
        if let Some(style) = self.options.time_style {
            set("timeStyle", style.as_str().into());
        }
        if self.options.date_style.is_some() || self.options.time_style.is_some() {
            return Value::Object(fields);
        }
        let numeric = |length: usize| if length == 2 { "2-digit" } else { "numeric" };
        let text = |length: usize| match length {
            4 => "long",
            5 => "narrow",
            _ => "short",
        };
        if let Some((_, length)) = self.tokens.field(&WEEKDAY) {
            set("weekday", text(length).into());
        }
        if let Some((_, length)) = self.tokens.field(&['G']) {
            set("era", text(length).into());
        }
        if let Some((_, length)) = self.tokens.field(&YEAR) {
            set("year", numeric(length).into());
        }
        if let Some((_, length)) = self.tokens.field(&MONTH) {
            set("month", if length < 3 { numeric(length) } else { text(length) }.into());
        }
        for (name, symbols) in
            [("day", &['d'][..]), ("hour", &HOUR[..]), ("minute", &['m'][..]), ("second", &['s'][..])]
        {
            if let Some((_, length)) = self.tokens.field(symbols) {
                set(name, numeric(length).into());
            }
        }
        if let Some(digits) = self.options.fields.fraction {
            set("fractionalSecondDigits", digits.into());
        }
        if let Some(width) = self.options.fields.zone {
            set("timeZoneName", width.as_str().into());
        }
        Value::Object(fields)
    }
}

fn preferences(options: &DateTimeOptions) -> Result<DateTimeFormatterPreferences, IntlError> {
    let mut locale: Locale = options.locale.clone();
    set_keyword(&mut locale, key!("hc"), options.hour_keyword.as_deref())?;
    Ok(DateTimeFormatterPreferences::from(&locale))
}

/// The calendars that dates can be written in.
pub(crate) fn calendars() -> Vec<String> {
    ["buddhist", "gregory", "japanese", "persian", "roc"].map(str::to_owned).to_vec()
}

/// The canonical names of all time zones.
pub(crate) fn time_zones() -> Vec<String> {
    let mut names: Vec<String> = jiff::tz::TimeZoneDatabase::bundled()
        .available()
        .map(|name| name.as_str().to_owned())
        .filter(|name| name.contains('/') && zone::Zone::find(name).is_ok_and(|zone| zone.name == *name))
        .collect();
    names.push("UTC".to_owned());
    names.sort();
    names.dedup();
    names
}
