//! `Intl.RelativeTimeFormat`.

use fixed_decimal::Sign;
use icu::experimental::relativetime::options::Numeric as IcuNumeric;
use icu::experimental::relativetime::{RelativeTimeFormatter, RelativeTimeFormatterOptions};
use icu::locale::Locale;
use serde::Deserialize;
use serde_json::json;

use crate::IntlError;
use crate::NumberValue;
use crate::choice::{choice, shown};
use crate::locale::{NUMBERS, negotiate, set_keyword};
use crate::number::symbols::Symbols;
use crate::part::{Part, collect};

choice! { Style { Long = "long", Short = "short", Narrow = "narrow" } }
choice! { Numeric { Always = "always", Auto = "auto" } }

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RelativeRequest {
    locales: Vec<String>,
    numbering_system: Option<String>,
    style: Option<String>,
    numeric: Option<String>,
}

/// A formatter of distances in time such as "3 days ago".
#[derive(Debug)]
pub struct RelativeTimeFormat {
    locale: Locale,
    style: Style,
    numeric: Numeric,
    numbering_system: String,
}

/// Digits of the fraction that are shown, as with plain numbers.
const FRACTION_DIGITS: i16 = 3;

impl RelativeTimeFormat {
    /// A formatter from the JSON of its options, with the requested locales in `locales`.
    ///
    /// # Errors
    /// For options that are invalid.
    pub fn new(options: &str) -> Result<Self, IntlError> {
        let request: RelativeRequest = crate::read_options(options)?;
        let mut locale = negotiate(&request.locales, &[NUMBERS])?;
        set_keyword(&mut locale, NUMBERS, request.numbering_system.as_deref())?;
        let style = Style::read("style", request.style.as_deref(), Style::Long)?;
        let numeric = Numeric::read("numeric", request.numeric.as_deref(), Numeric::Always)?;
        let numbering_system = Symbols::load(&locale)?.numbering_system;
        Ok(Self { locale, style, numeric, numbering_system })
    }

    /// The parts, and the unit in the singular, which number parts carry.
    ///
    /// # Errors
    /// For a value that is not finite, or an unknown unit.
    pub fn format_to_parts(
        &self,
        value: &NumberValue,
        unit: &str,
    ) -> Result<(Vec<Part>, &'static str), IntlError> {
        let NumberValue::Finite(number) = value else {
            return Err(IntlError::range("the value of a relative time must be a finite number"));
        };
        let mut number = (**number).clone();
        number.round(-FRACTION_DIGITS);
        number.absolute.trim_end();
        if self.numeric == Numeric::Auto && number.absolute.is_zero() {
            number.sign = Sign::None;
        }
        let unit = singular(unit)?;
        let formatter = self.formatter(unit)?;
        let parts = collect(&formatter.format(number), |part, _| {
            (part.category == "decimal").then_some(match part.value {
                "group" => "group",
                "decimal" => "decimal",
                "fraction" => "fraction",
                "minusSign" => "minusSign",
                _ => "integer",
            })
        });
        Ok((parts, unit))
    }

    fn formatter(&self, unit: &str) -> Result<RelativeTimeFormatter, IntlError> {
        type Formatter = RelativeTimeFormatter;
        let preferences = (&self.locale).into();
        let mut options = RelativeTimeFormatterOptions::default();
        options.numeric = Some(match self.numeric {
            Numeric::Always => IcuNumeric::Always,
            Numeric::Auto => IcuNumeric::Auto,
        });
        match (self.style, unit) {
            (Style::Long, "second") => Formatter::try_new_long_second(preferences, options),
            (Style::Long, "minute") => Formatter::try_new_long_minute(preferences, options),
            (Style::Long, "hour") => Formatter::try_new_long_hour(preferences, options),
            (Style::Long, "day") => Formatter::try_new_long_day(preferences, options),
            (Style::Long, "week") => Formatter::try_new_long_week(preferences, options),
            (Style::Long, "month") => Formatter::try_new_long_month(preferences, options),
            (Style::Long, "quarter") => Formatter::try_new_long_quarter(preferences, options),
            (Style::Long, _) => Formatter::try_new_long_year(preferences, options),
            (Style::Short, "second") => Formatter::try_new_short_second(preferences, options),
            (Style::Short, "minute") => Formatter::try_new_short_minute(preferences, options),
            (Style::Short, "hour") => Formatter::try_new_short_hour(preferences, options),
            (Style::Short, "day") => Formatter::try_new_short_day(preferences, options),
            (Style::Short, "week") => Formatter::try_new_short_week(preferences, options),
            (Style::Short, "month") => Formatter::try_new_short_month(preferences, options),
            (Style::Short, "quarter") => Formatter::try_new_short_quarter(preferences, options),
            (Style::Short, _) => Formatter::try_new_short_year(preferences, options),
            (Style::Narrow, "second") => Formatter::try_new_narrow_second(preferences, options),
            (Style::Narrow, "minute") => Formatter::try_new_narrow_minute(preferences, options),
            (Style::Narrow, "hour") => Formatter::try_new_narrow_hour(preferences, options),
            (Style::Narrow, "day") => Formatter::try_new_narrow_day(preferences, options),
            (Style::Narrow, "week") => Formatter::try_new_narrow_week(preferences, options),
            (Style::Narrow, "month") => Formatter::try_new_narrow_month(preferences, options),
            (Style::Narrow, "quarter") => Formatter::try_new_narrow_quarter(preferences, options),
            (Style::Narrow, _) => Formatter::try_new_narrow_year(preferences, options),
        }
        .map_err(|error| IntlError::missing_data("relative times", &self.locale, &error))
    }

    #[must_use]
    pub fn resolved_options(&self) -> serde_json::Value {
        json!({
            "locale": self.locale.to_string(),
            "style": self.style.as_str(),
            "numeric": self.numeric.as_str(),
            "numberingSystem": self.numbering_system,
        })
    }
}

fn singular(unit: &str) -> Result<&'static str, IntlError> {
    const UNITS: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    let name = unit.strip_suffix('s').unwrap_or(unit);
    UNITS.into_iter().find(|known| *known == name).ok_or_else(|| {
        IntlError::range(format!("invalid unit `{}`: expected {}", shown(unit), UNITS.join(", ")))
    })
}
