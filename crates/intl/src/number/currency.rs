//! Patterns, symbols and names of currencies.

use fixed_decimal::Decimal;
use icu::experimental::dimension::currency::CurrencyType;
use icu::experimental::dimension::provider::currency::essentials::CurrencyEssentialsV1;
use icu::experimental::dimension::provider::currency::extended::CurrencyExtendedDataV1;
use icu::experimental::dimension::provider::currency::fractions::CurrencyFractionsV1;
use icu::experimental::dimension::provider::currency::patterns::CurrencyPatternsDataV1;
use icu::experimental::dimension::provider::currency::symbols::CurrencySymbolsV1;
use icu::experimental::provider::Baked;
use icu::locale::Locale;
use icu::locale::preferences::LocalePreferences;
use icu::plurals::{PluralOperands, PluralRules};
use icu_pattern::{DoublePlaceholderKey, DoublePlaceholderPattern, PatternItem};
use icu_provider::prelude::*;

use super::layout::{Layout, Sign, Slot};
use super::options::{CurrencyDisplay, CurrencySign};
use super::symbols::Symbols;
use crate::IntlError;
use crate::part::Part;

const CODES: &str = include_str!("../../data/currencies.tsv");

/// True when the locale writes the code of a currency although others have a symbol for it.
fn prefers_code(locale: &Locale, code: &str) -> bool {
    let language = locale.id.language.as_str();
    let row = |name: &str| CODES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
    let region = locale.id.region.map(|region| format!("{language}-{region}"));
    let codes = region.as_deref().and_then(row).or_else(|| row(language));
    codes.is_some_and(|codes| codes.split(' ').any(|listed| listed == code))
}

/// The digits after the decimal point that a currency has.
pub(crate) fn fraction_digits(currency: CurrencyType) -> Result<u8, IntlError> {
    let response = DataProvider::<CurrencyFractionsV1>::load(&Baked, DataRequest::default())
        .map_err(|error| IntlError::range(format!("no data for currencies: {error}")))?;
    Ok(response.payload.get().resolve(currency).digits)
}

/// How amounts of one currency are written in one locale.
#[derive(Debug)]
pub(crate) enum CurrencyLayout {
    /// Beside a symbol or a code.
    Symbol {
        essentials: DataPayload<CurrencyEssentialsV1>,
        symbol: String,
        starts_with_letter: bool,
        ends_with_letter: bool,
        accounting: bool,
    },
    /// Beside a name that depends on the number.
    Name {
        patterns: DataPayload<CurrencyPatternsDataV1>,
        names: Option<DataPayload<CurrencyExtendedDataV1>>,
        code: String,
        rules: PluralRules,
    },
}

impl CurrencyLayout {
    pub(crate) fn load(
        locale: &Locale,
        currency: CurrencyType,
        display: CurrencyDisplay,
        sign: CurrencySign,
    ) -> Result<Self, IntlError> {
        let missing = |error: DataError| IntlError::missing_data("currencies", locale, &error);
        let preferences = LocalePreferences::from(locale);
        let code = currency.iso_code().to_string();
        if display == CurrencyDisplay::Name {
            let data_locale = CurrencyPatternsDataV1::make_locale(preferences);
            let patterns = DataProvider::<CurrencyPatternsDataV1>::load(&Baked, plain(&data_locale));
            let data_locale = CurrencyExtendedDataV1::make_locale(preferences);
            let names = DataMarkerAttributes::try_from_str(&code).ok().and_then(|attributes| {
                DataProvider::<CurrencyExtendedDataV1>::load(&Baked, with(attributes, &data_locale)).ok()
            });
            return Ok(Self::Name {
                patterns: patterns.map_err(missing)?.payload,
                names: names.map(|response| response.payload),
                code,
                rules: super::plural_rules(locale)?,
            });
        }
        let data_locale = CurrencyEssentialsV1::make_locale(preferences);
        let essentials =
            DataProvider::<CurrencyEssentialsV1>::load(&Baked, plain(&data_locale)).map_err(missing)?.payload;
        let symbol_of = |width| {
            let mut buffer = Default::default();
            let attributes = CurrencySymbolsV1::make_attributes(currency, width, &mut buffer);
            let data_locale = CurrencySymbolsV1::make_locale(preferences);
            DataProvider::<CurrencySymbolsV1>::load(&Baked, with(attributes, &data_locale)).ok()
        };
        let found = match display {
            CurrencyDisplay::Symbol if prefers_code(locale, &code) => None,
            CurrencyDisplay::Symbol => symbol_of(CurrencySymbolsV1::SHORT),
            CurrencyDisplay::NarrowSymbol => {
                symbol_of(CurrencySymbolsV1::NARROW).or_else(|| symbol_of(CurrencySymbolsV1::SHORT))
            }
            CurrencyDisplay::Code | CurrencyDisplay::Name => None,
        };
        let (symbol, starts_with_letter, ends_with_letter) = match &found {
            Some(response) => {
                let symbol = response.payload.get();
                (symbol.as_str().to_owned(), symbol.starts_with_letter(), symbol.ends_with_letter())
            }
            None => (code, true, true),
        };
        let accounting = sign == CurrencySign::Accounting;
        Ok(Self::Symbol { essentials, symbol, starts_with_letter, ends_with_letter, accounting })
    }

    /// The layout of `number`, sign included.
    pub(crate) fn layout(&self, number: &Decimal, exponent: u8, sign: Sign, symbols: &Symbols) -> Layout {
        match self {
            Self::Name { patterns, names, code, rules } => {
                let operands = PluralOperands::from_significand_and_exponent(&number.absolute, exponent);
                let name = names.as_ref().map_or(code.as_str(), |names| names.get().get(operands, rules));
                let pattern = patterns.get().get(operands, rules);
                let mut layout = Layout::default();
                fill(&mut layout, pattern, name, symbols, Sign::None);
                layout.with_sign(sign, symbols)
            }
            Self::Symbol { essentials, symbol, starts_with_letter, ends_with_letter, accounting } => {
                let essentials = essentials.get();
                let (first, last) = (*starts_with_letter, *ends_with_letter);
                let negative = if *accounting {
                    essentials.get_negative_accounting(first, last)
                } else {
                    essentials.get_negative(first, last)
                };
                let mut layout = Layout::default();
                if let Some(pattern) = negative.filter(|pattern| match sign {
                    Sign::Minus => true,
                    // A plus takes the place of the minus, where the pattern has one.
                    Sign::Plus => has_minus(pattern, symbols),
                    Sign::None => false,
                }) {
                    fill(&mut layout, pattern, symbol, symbols, sign);
                    return layout;
                }
                let pattern = if *accounting {
                    essentials.get_positive_accounting(first, last)
                } else {
                    essentials.get_positive(first, last)
                };
                fill(&mut layout, pattern, symbol, symbols, Sign::None);
                layout.with_sign(sign, symbols)
            }
        }
    }
}

fn plain(locale: &DataLocale) -> DataRequest<'_> {
    DataRequest { id: DataIdentifierBorrowed::for_locale(locale), ..Default::default() }
}

fn with<'a>(attributes: &'a DataMarkerAttributes, locale: &'a DataLocale) -> DataRequest<'a> {
    DataRequest {
        id: DataIdentifierBorrowed::for_marker_attributes_and_locale(attributes, locale),
        ..Default::default()
    }
}

/// Where the minus sign is in a literal of a pattern: its start and end.
fn find_minus(literal: &str, symbols: &Symbols) -> Option<(usize, usize)> {
    [symbols.minus.0.as_str(), "-", "\u{2212}"]
        .into_iter()
        .filter(|minus| !minus.is_empty())
        .find_map(|minus| literal.find(minus).map(|start| (start, start + minus.len())))
}

fn has_minus(pattern: &DoublePlaceholderPattern, symbols: &Symbols) -> bool {
    pattern
        .iter()
        .any(|item| matches!(item, PatternItem::Literal(text) if find_minus(text, symbols).is_some()))
}

fn fill(
    layout: &mut Layout,
    pattern: &DoublePlaceholderPattern,
    currency: &str,
    symbols: &Symbols,
    sign: Sign,
) {
    for item in pattern.iter() {
        match item {
            PatternItem::Placeholder(DoublePlaceholderKey::Place0) => layout.push(Slot::Number),
            PatternItem::Placeholder(DoublePlaceholderKey::Place1) => {
                layout.push(Slot::Part(Part::new("currency", currency)));
            }
            PatternItem::Literal(text) => match find_minus(text, symbols).filter(|_| sign != Sign::None) {
                Some((start, end)) => {
                    layout.push(Slot::Part(Part::literal(text.get(..start).unwrap_or_default())));
                    layout.push(Slot::Part(sign.part(symbols)));
                    layout.push(Slot::Part(Part::literal(text.get(end..).unwrap_or_default())));
                }
                None => layout.push(Slot::Part(Part::literal(text))),
            },
        }
    }
}
