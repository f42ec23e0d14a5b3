//! The choice of a pattern for styles and fields.

use icu::datetime::DateTimeFormatterPreferences;
use icu::datetime::fieldsets::builder::{DateFields, FieldSetBuilder, ZoneStyle};
use icu::datetime::options::{Length, SubsecondDigits, TimePrecision, YearStyle};

use super::calendar::pattern_of;
use super::numeric;
use super::options::{
    DateTimeOptions, Fields, FormatStyle, MonthWidth, NumberWidth, TextWidth, ZoneNameWidth,
};
use super::pattern::Tokens;
use super::{HOUR, MONTH, WEEKDAY};
use crate::IntlError;

/// Chooses among the patterns of ICU4X.
pub(super) struct Chooser<'a> {
    pub(super) options: &'a DateTimeOptions,
    pub(super) preferences: DateTimeFormatterPreferences,
}

impl Chooser<'_> {
    fn pattern_with(
        &self,
        preferences: DateTimeFormatterPreferences,
        builder: FieldSetBuilder,
    ) -> Result<Tokens, IntlError> {
        let fields = builder
            .build_composite()
            .map_err(|error| IntlError::range(format!("these fields cannot be shown together: {error}")))?;
        Ok(Tokens::parse(&pattern_of(self.options.calendar, preferences, fields)?))
    }

    fn pattern(&self, builder: FieldSetBuilder) -> Result<Tokens, IntlError> {
        self.pattern_with(self.preferences, builder)
    }

    pub(super) fn by_style(
        &self,
        date: Option<FormatStyle>,
        time: Option<FormatStyle>,
    ) -> Result<Tokens, IntlError> {
        let mut builder = FieldSetBuilder::new();
        if let Some(style) = date {
            builder.date_fields =
                Some(if style == FormatStyle::Full { DateFields::YMDE } else { DateFields::YMD });
            builder.length = Some(match style {
                FormatStyle::Full | FormatStyle::Long => Length::Long,
                FormatStyle::Medium => Length::Medium,
                FormatStyle::Short => Length::Short,
            });
        }
        if let Some(style) = time {
            builder.time_precision =
                Some(if style == FormatStyle::Short { TimePrecision::Minute } else { TimePrecision::Second });
            builder.zone_style = match style {
                FormatStyle::Full => Some(ZoneStyle::SpecificLong),
                FormatStyle::Long => Some(ZoneStyle::SpecificShort),
                FormatStyle::Medium | FormatStyle::Short => None,
            };
        }
        self.pattern(builder)
    }

    pub(super) fn by_fields(&self) -> Result<Tokens, IntlError> {
        let fields = &self.options.fields;
        let date = date_fields(fields)?;
        let time = time_precision(fields)?;
        let zone = fields.zone.map(zone_style);
        let length = self.length(date)?;
        let base = |date: Option<DateFields>, time: Option<TimePrecision>, zone: Option<ZoneStyle>| {
            let mut builder = FieldSetBuilder::new();
            // A time zone alone and a year alone have one form each.
            let has_lengths = date.map_or(time.is_some(), |date| date != DateFields::Y);
            builder.length = has_lengths.then_some(length);
            builder.date_fields = date;
            builder.time_precision = time;
            builder.zone_style = zone;
            if date.is_some_and(has_year) {
                builder.year_style =
                    Some(if fields.era.is_some() { YearStyle::WithEra } else { YearStyle::Full });
            }
            builder
        };
        let alone = |date| match numeric::pattern(self.options) {
            Some(pattern) => Ok(Tokens::parse(pattern)),
            None => self.pattern(base(Some(date), None, None)),
        };
        let mut tokens = match date {
            // Node.js joins a time zone to a date as it joins a time of day.
            Some(date) if time.is_none() && zone.is_some() => {
                let hour = Some(TimePrecision::Hour);
                let clock = self.pattern(base(None, hour, None))?;
                let whole = self.pattern(base(Some(DateFields::YMD), hour, None))?;
                let day = self.pattern(base(Some(DateFields::YMD), None, None))?;
                let name = self.pattern(base(None, None, zone))?;
                let date = alone(date)?;
                match replaced(&whole, &day, &date).and_then(|joined| replaced(&joined, &clock, &name)) {
                    Some(joined) => joined,
                    None => date.and(&name),
                }
            }
            Some(date) if time.is_some() => {
                let own = if date.is_calendar_period() || numeric::pattern(self.options).is_some() {
                    None
                } else {
                    Some(self.pattern(base(Some(date), time, zone))?)
                };
                let clock = self.pattern(base(None, time, zone))?;
                // For a weekday with a time ICU4X has a pattern in the other hour cycle in some locales.
                match own.filter(|own| {
                    own.field(&HOUR).map(|hour| hour.0) == clock.field(&HOUR).map(|hour| hour.0)
                }) {
                    Some(own) => own,
                    // The pattern of a whole date shows how a date and a time are joined.
                    None => {
                        let whole = self.pattern(base(Some(DateFields::YMD), time, zone))?;
                        let day = self.pattern(base(Some(DateFields::YMD), None, None))?;
                        let date = alone(date)?;
                        replaced(&whole, &day, &date).unwrap_or_else(|| date.and(&clock))
                    }
                }
            }
            Some(date) => alone(date)?,
            None => self.pattern(base(None, time, zone))?,
        };
        if fields.has_time() && fields.hour.is_none() {
            tokens = without_hour(&tokens, fields)?;
        }
        let exact_hour = self.has_exact_hour()?;
        tokens.adjust(|symbol, width| match symbol {
            'H' if exact_hour => 1,
            _ => adjusted(fields, symbol, width),
        });
        Ok(tokens)
    }

    /// The length of ICU4X whose pattern has the nearest widths.
    fn length(&self, date: Option<DateFields>) -> Result<Length, IntlError> {
        let fields = &self.options.fields;
        let text = !matches!(fields.month, Some(MonthWidth::Numeric | MonthWidth::TwoDigit));
        let length = match (fields.month, fields.weekday) {
            _ if !text => Length::Short,
            (_, Some(TextWidth::Long)) => Length::Long,
            (Some(MonthWidth::Long), None) => Length::Long,
            _ => Length::Medium,
        };
        // The medium length is numeric in some locales; their long one has the words that the caller asks for.
        if let (Length::Medium, Some(_), Some(date)) = (length, fields.month, date) {
            let month = |length| -> Result<usize, IntlError> {
                let mut builder = FieldSetBuilder::new();
                builder.length = Some(length);
                builder.date_fields = Some(date);
                Ok(self.pattern(builder)?.field(&MONTH).map_or(0, |(_, width)| width))
            };
            if month(Length::Medium)? < 3 && (month(Length::Long)? >= 3 || fields.weekday.is_none()) {
                return Ok(Length::Long);
            }
        }
        Ok(length)
    }

    /// With an hour of one digit and minutes or seconds of two, Node.js does not pad the hour of a locale whose own clock
    /// has 24 hours.
    fn has_exact_hour(&self) -> Result<bool, IntlError> {
        let fields = &self.options.fields;
        let padded = [fields.minute, fields.second].contains(&Some(NumberWidth::TwoDigit));
        if fields.hour != Some(NumberWidth::Numeric) || !padded {
            return Ok(false);
        }
        let mut builder = FieldSetBuilder::new();
        builder.time_precision = Some(TimePrecision::Minute);
        let own =
            self.pattern_with(DateTimeFormatterPreferences::from(&self.options.plain_locale()), builder)?;
        Ok(own.field(&['H']).is_some())
    }
}

fn has_year(fields: DateFields) -> bool {
    matches!(fields, DateFields::Y | DateFields::YM | DateFields::YMD | DateFields::YMDE)
}

fn date_fields(fields: &Fields) -> Result<Option<DateFields>, IntlError> {
    let year = fields.year.is_some() || fields.era.is_some();
    Ok(Some(match (year, fields.month.is_some(), fields.day.is_some(), fields.weekday.is_some()) {
        (false, false, false, false) => return Ok(None),
        (true, false, false, false) => DateFields::Y,
        (false, true, false, false) => DateFields::M,
        (true, true, false, false) => DateFields::YM,
        (false, false, true, false) => DateFields::D,
        (false, true, true, false) => DateFields::MD,
        (true, true, true, false) => DateFields::YMD,
        (false, false, false, true) => DateFields::E,
        (false, false, true, true) => DateFields::DE,
        (false, true, true, true) => DateFields::MDE,
        (true, true, true, true) => DateFields::YMDE,
        _ => {
            return Err(IntlError::range(
                "unsupported combination of date fields: between `year`, `month`, `day` and `weekday` none may be missing; \
                 ask for all of them, or take the wanted ones from formatToParts",
            ));
        }
    }))
}

fn time_precision(fields: &Fields) -> Result<Option<TimePrecision>, IntlError> {
    Ok(Some(
        match (fields.fraction, fields.second.is_some(), fields.minute.is_some(), fields.hour.is_some()) {
            (Some(_), false, _, _) => {
                return Err(IntlError::range(
                    "option `fractionalSecondDigits` is supported only with `second`",
                ));
            }
            (Some(1), ..) => TimePrecision::Subsecond(SubsecondDigits::S1),
            (Some(2), ..) => TimePrecision::Subsecond(SubsecondDigits::S2),
            (Some(_), ..) => TimePrecision::Subsecond(SubsecondDigits::S3),
            (None, true, ..) => TimePrecision::Second,
            (None, false, true, _) => TimePrecision::Minute,
            (None, false, false, true) => TimePrecision::Hour,
            (None, false, false, false) => return Ok(None),
        },
    ))
}

fn zone_style(width: ZoneNameWidth) -> ZoneStyle {
    match width {
        ZoneNameWidth::Short => ZoneStyle::SpecificShort,
        ZoneNameWidth::Long => ZoneStyle::SpecificLong,
        ZoneNameWidth::ShortOffset => ZoneStyle::LocalizedOffsetShort,
        ZoneNameWidth::LongOffset => ZoneStyle::LocalizedOffsetLong,
        ZoneNameWidth::ShortGeneric => ZoneStyle::GenericShort,
        ZoneNameWidth::LongGeneric => ZoneStyle::GenericLong,
    }
}

/// The width of a field in the pattern, changed where the caller asks for another.
fn adjusted(fields: &Fields, symbol: char, width: usize) -> usize {
    let number = |asked: Option<NumberWidth>| if asked == Some(NumberWidth::TwoDigit) { 2 } else { width };
    match symbol {
        'G' => match fields.era {
            Some(TextWidth::Long) => 4,
            Some(TextWidth::Narrow) => 5,
            _ => width,
        },
        'y' => number(fields.year),
        'd' => number(fields.day),
        _ if HOUR.contains(&symbol) => number(fields.hour),
        _ if MONTH.contains(&symbol) => match fields.month {
            Some(MonthWidth::TwoDigit) if width < 3 => 2,
            Some(MonthWidth::Short) if width > 3 => 3,
            Some(MonthWidth::Long) if width == 3 => 4,
            Some(MonthWidth::Narrow) if width >= 3 => 5,
            _ => width,
        },
        _ if WEEKDAY.contains(&symbol) => match fields.weekday {
            Some(TextWidth::Short) => 3,
            Some(TextWidth::Long) => 4,
            Some(TextWidth::Narrow) => 5,
            None => width,
        },
        _ => width,
    }
}

/// `whole` with `other` in the place of `part`, when it has that.
fn replaced(whole: &Tokens, part: &Tokens, other: &Tokens) -> Option<Tokens> {
    let (text, part) = (whole.render(), part.render());
    let (before, after) = text.split_once(&part)?;
    Some(Tokens::parse(&format!("{before}{}{after}", other.render())))
}

/// A time without its hour: minutes, seconds or both.
fn without_hour(tokens: &Tokens, fields: &Fields) -> Result<Tokens, IntlError> {
    if fields.has_date() || fields.zone.is_some() {
        return Err(IntlError::range(
            "`minute` and `second` with other fields are supported only with `hour`",
        ));
    }
    let mut kept = match (fields.minute.is_some(), fields.second.is_some()) {
        (true, true) => return Ok(tokens.between(&['m'], &['s', 'S'])),
        (true, false) => tokens.between(&['m'], &['m']),
        _ => tokens.between(&['s'], &['s', 'S']),
    };
    // A minute or second alone has no leading zero.
    kept.adjust(|symbol, width| if matches!(symbol, 'm' | 's') { 1 } else { width });
    Ok(kept)
}
