//! The digits and signs of a locale.

use fixed_decimal::UnsignedDecimal;
use icu::decimal::provider::{Baked, DecimalDigitsV1, DecimalSymbolsV1};
use icu::locale::Locale;
use icu::locale::preferences::LocalePreferences;
use icu_provider::prelude::*;

use crate::IntlError;
use crate::locale::{NUMBERS, keyword};
use crate::part::{Part, push};

/// When a number is divided into groups of digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    Never,
    /// As the locale prefers.
    Locale,
    /// From this many digits before the first separator.
    From(u8),
}

#[derive(Debug)]
pub(crate) struct Symbols {
    digits: [char; 10],
    pub(crate) minus: (String, String),
    pub(crate) plus: (String, String),
    decimal: String,
    group: String,
    primary: u8,
    secondary: u8,
    min_grouping: u8,
    pub(crate) numbering_system: String,
}

impl Symbols {
    /// The symbols of `locale` in the numbering system that its `nu` key asks for, or in its own.
    pub(crate) fn load(locale: &Locale) -> Result<Self, IntlError> {
        let data_locale = DecimalSymbolsV1::make_locale(LocalePreferences::from(locale));
        let requested = keyword(locale, &NUMBERS);
        let load = |attributes: &DataMarkerAttributes| {
            DataProvider::<DecimalSymbolsV1>::load(
                &Baked,
                DataRequest {
                    id: DataIdentifierBorrowed::for_marker_attributes_and_locale(attributes, &data_locale),
                    ..Default::default()
                },
            )
        };
        let symbols = requested
            .as_deref()
            .and_then(|name| DataMarkerAttributes::try_from_str(name).ok())
            .and_then(|attributes| load(attributes).ok())
            .map_or_else(|| load(DataMarkerAttributes::empty()), Ok)
            .map_err(|error| IntlError::missing_data("numbers", locale, &error))?
            .payload;
        let symbols = symbols.get();
        let mut system = symbols.numsys().to_owned();
        let digits_of = |name: &str| -> Option<[char; 10]> {
            let attributes = DataMarkerAttributes::try_from_str(name).ok()?;
            let request = DataRequest {
                id: DataIdentifierBorrowed::for_marker_attributes(attributes),
                ..Default::default()
            };
            Some(*DataProvider::<DecimalDigitsV1>::load(&Baked, request).ok()?.payload.get())
        };
        // A system without symbols of its own in this locale still has its digits.
        let digits = match requested.as_deref().and_then(|name| Some((name, digits_of(name)?))) {
            Some((name, digits)) => {
                name.clone_into(&mut system);
                digits
            }
            None => digits_of(&system)
                .ok_or_else(|| IntlError::range(format!("no digits of the numbering system `{system}`")))?,
        };
        Ok(Self {
            digits,
            minus: (symbols.minus_sign_prefix().to_owned(), symbols.minus_sign_suffix().to_owned()),
            plus: (symbols.plus_sign_prefix().to_owned(), symbols.plus_sign_suffix().to_owned()),
            decimal: symbols.decimal_separator().to_owned(),
            group: symbols.grouping_separator().to_owned(),
            primary: symbols.grouping_sizes.primary,
            secondary: symbols.grouping_sizes.secondary,
            min_grouping: symbols.grouping_sizes.min_grouping,
            numbering_system: system,
        })
    }

    /// Two locales separate the digits of an amount of money in another way; ICU4X does not have that.
    pub(crate) fn for_currency(mut self, locale: &Locale) -> Self {
        let region = locale.id.region.map(|region| region.to_string()).unwrap_or_default();
        match (locale.id.language.as_str(), region.as_str()) {
            ("de" | "en", "AT") => ".".clone_into(&mut self.group),
            ("fr", "CH") => ".".clone_into(&mut self.decimal),
            _ => {}
        }
        self
    }

    fn digit(&self, value: u8) -> char {
        self.digits.get(usize::from(value)).copied().unwrap_or('0')
    }

    /// The digits of an integer, without groups.
    pub(crate) fn plain(&self, text: &str) -> String {
        text.chars()
            .map(|c| {
                c.to_digit(10).and_then(|digit| u8::try_from(digit).ok()).map_or(c, |digit| self.digit(digit))
            })
            .collect()
    }

    /// Writes a number without its sign.
    pub(crate) fn write(&self, number: &UnsignedDecimal, grouping: Grouping, parts: &mut Vec<Part>) {
        let range = number.magnitude_range();
        let highest = *range.end();
        let mut integer = String::new();
        for magnitude in (0..=highest.max(0)).rev() {
            integer.push(self.digit(number.digit_at(magnitude)));
            if self.separates(magnitude, highest, grouping) {
                push(parts, Part::new("integer", std::mem::take(&mut integer)));
                push(parts, Part::new("group", self.group.clone()));
            }
        }
        push(parts, Part::new("integer", integer));
        let lowest = *range.start();
        if lowest < 0 {
            push(parts, Part::new("decimal", self.decimal.clone()));
            let fraction: String =
                (lowest..0).rev().map(|magnitude| self.digit(number.digit_at(magnitude))).collect();
            push(parts, Part::new("fraction", fraction));
        }
    }

    /// True when a separator follows the digit at `magnitude`.
    fn separates(&self, magnitude: i16, highest: i16, grouping: Grouping) -> bool {
        let minimum = match grouping {
            Grouping::Never => return false,
            Grouping::Locale => self.min_grouping.max(1),
            Grouping::From(digits) => digits,
        };
        let primary = i16::from(self.primary);
        let secondary = if self.secondary == 0 { primary } else { i16::from(self.secondary) };
        if primary == 0 || magnitude < primary || highest < primary + i16::from(minimum) - 1 {
            return false;
        }
        (magnitude - primary) % secondary == 0
    }
}
