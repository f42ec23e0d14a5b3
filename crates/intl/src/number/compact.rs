//! Words and letters for powers of ten: `1.2K`, `1.2 thousand`.

use fixed_decimal::UnsignedDecimal;
use icu::decimal::provider::{Baked, CompactPatterns, DecimalCompactLongV1, DecimalCompactShortV1};
use icu::locale::Locale;
use icu::locale::preferences::LocalePreferences;
use icu::plurals::PluralRules;
use icu_pattern::SinglePlaceholder;
use icu_provider::prelude::*;

use super::layout::Layout;
use super::options::CompactDisplay;
use crate::IntlError;

#[derive(Debug)]
enum Patterns {
    Short(DataPayload<DecimalCompactShortV1>),
    Long(DataPayload<DecimalCompactLongV1>),
}

/// The patterns of compact numbers in one locale.
#[derive(Debug)]
pub(crate) struct CompactLayout {
    patterns: Patterns,
    rules: PluralRules,
}

impl CompactLayout {
    pub(crate) fn load(locale: &Locale, display: CompactDisplay) -> Result<Self, IntlError> {
        let missing = |error: DataError| IntlError::missing_data("compact numbers", locale, &error);
        let preferences = LocalePreferences::from(locale);
        let patterns = match display {
            CompactDisplay::Short => {
                let data_locale = DecimalCompactShortV1::make_locale(preferences);
                let id = DataIdentifierBorrowed::for_locale(&data_locale);
                let response = Baked.load(DataRequest { id, ..Default::default() }).map_err(missing)?;
                Patterns::Short(response.payload)
            }
            CompactDisplay::Long => {
                let data_locale = DecimalCompactLongV1::make_locale(preferences);
                let id = DataIdentifierBorrowed::for_locale(&data_locale);
                let response = Baked.load(DataRequest { id, ..Default::default() }).map_err(missing)?;
                Patterns::Long(response.payload)
            }
        };
        Ok(Self { patterns, rules: super::plural_rules(locale)? })
    }

    fn data(&self) -> &CompactPatterns<'_, SinglePlaceholder> {
        match &self.patterns {
            Patterns::Short(payload) => payload.get(),
            Patterns::Long(payload) => payload.get(),
        }
    }

    /// The power of ten that is shown apart for a number of this magnitude.
    pub(crate) fn exponent(&self, magnitude: i16) -> u8 {
        self.data()
            .0
            .iter()
            .filter(|pattern| magnitude >= i16::from(pattern.sized))
            .last()
            .map_or(0, |pattern| pattern.sized.saturating_sub(pattern.variable.get_default().0.get()))
    }

    /// The layout of the digits that are left when `exponent` is shown apart.
    pub(crate) fn layout(&self, number: &UnsignedDecimal, exponent: u8) -> Layout {
        let magnitude = number.nonzero_magnitude_start().saturating_add(i16::from(exponent));
        let pattern = self.data().0.iter().filter(|pattern| magnitude >= i16::from(pattern.sized)).last();
        pattern.map_or_else(Layout::number, |pattern| {
            Layout::from_pattern(pattern.variable.get(number.into(), &self.rules).1, "compact")
        })
    }
}
