//! `Intl.NumberFormat`.

mod compact;
mod currency;
pub(crate) mod digits;
mod layout;
mod options;
pub(crate) mod symbols;
pub(crate) mod units;

use std::str::FromStr;

use fixed_decimal::{Decimal, Sign as DecimalSign};
use icu::experimental::dimension::provider::percent::DecimalPercentV1;
use icu::experimental::provider::Baked;
use icu::locale::Locale;
use icu::locale::preferences::LocalePreferences;
use icu::plurals::{PluralOperands, PluralRules};
use icu_pattern::{DoublePlaceholderKey, PatternItem};
use icu_provider::prelude::*;

use crate::IntlError;
use crate::choice::shown;
use crate::part::{Part, join, push};
use compact::CompactLayout;
use currency::CurrencyLayout;
use layout::{Layout, Sign, Slot};
use options::{Notation, NumberOptions, NumberRequest, SignDisplay, Style};
use symbols::{Grouping, Symbols};
use units::UnitLayout;

pub(crate) fn plural_rules(locale: &Locale) -> Result<PluralRules, IntlError> {
    PluralRules::try_new_cardinal(locale.into())
        .map_err(|error| IntlError::missing_data("plurals", locale, &error))
}

/// Longer texts of numbers are refused: ICU4X counts digits in sixteen bits.
const MAX_NUMBER_BYTES: usize = 32_000;

/// A number as a formatter takes it.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberValue {
    NotANumber,
    Infinite { negative: bool },
    Finite(Box<Decimal>),
}

impl FromStr for NumberValue {
    type Err = IntlError;

    /// Reads what JavaScript's `String` gives for a number or a bigint.
    fn from_str(text: &str) -> Result<Self, IntlError> {
        let invalid = || IntlError::range(format!("cannot format the number `{}`", shown(text)));
        match text {
            "NaN" => return Ok(Self::NotANumber),
            "Infinity" => return Ok(Self::Infinite { negative: false }),
            "-Infinity" => return Ok(Self::Infinite { negative: true }),
            _ if text.len() > MAX_NUMBER_BYTES => return Err(invalid()),
            _ => {}
        }
        // Rust writes a float without an exponent and with as many digits as it takes to read it back.
        let plain = match text.contains(['e', 'E']) {
            true => {
                text.parse::<f64>().ok().filter(|float| float.is_finite()).ok_or_else(invalid)?.to_string()
            }
            false => text.to_owned(),
        };
        Decimal::try_from_str(&plain).map(|number| Self::Finite(Box::new(number))).map_err(|_| invalid())
    }
}

#[derive(Debug)]
enum StyleLayout {
    Plain,
    Percent(DataPayload<DecimalPercentV1>),
    Currency(CurrencyLayout),
    Unit(UnitLayout),
}

/// A number formatter of one locale.
#[derive(Debug)]
pub struct NumberFormat {
    options: NumberOptions,
    symbols: Symbols,
    style: StyleLayout,
    compact: Option<CompactLayout>,
}

/// What is left of a number when its power of ten is shown apart.
struct Scaled {
    number: Decimal,
    exponent: i16,
}

impl NumberFormat {
    /// A formatter from the JSON of its options, with the requested locales in `locales`.
    ///
    /// # Errors
    /// For options that are invalid or not supported.
    pub fn new(options: &str) -> Result<Self, IntlError> {
        Self::with_request(&crate::read_options::<NumberRequest>(options)?)
    }

    pub(crate) fn with_request(request: &NumberRequest) -> Result<Self, IntlError> {
        let options = NumberOptions::read(request)?;
        let locale = &options.locale;
        let mut symbols = Symbols::load(locale)?;
        if options.style == Style::Currency {
            symbols = symbols.for_currency(locale);
        }
        let style = match (options.style, options.currency, &options.unit) {
            (Style::Percent, _, _) => {
                let data_locale = DecimalPercentV1::make_locale(LocalePreferences::from(locale));
                let id = DataIdentifierBorrowed::for_locale(&data_locale);
                let response = Baked
                    .load(DataRequest { id, ..Default::default() })
                    .map_err(|error| IntlError::missing_data("percentages", locale, &error))?;
                StyleLayout::Percent(response.payload)
            }
            (Style::Currency, Some(currency), _) => StyleLayout::Currency(CurrencyLayout::load(
                locale,
                currency,
                options.currency_display,
                options.currency_sign,
            )?),
            (Style::Unit, _, Some(unit)) => {
                StyleLayout::Unit(UnitLayout::load(locale, unit, options.unit_display)?)
            }
            _ => StyleLayout::Plain,
        };
        let compact = match options.notation {
            Notation::Compact => Some(CompactLayout::load(locale, options.compact_display)?),
            _ => None,
        };
        Ok(Self { options, symbols, style, compact })
    }

    #[must_use]
    pub fn resolved_options(&self) -> serde_json::Value {
        serde_json::Value::Object(self.options.describe(&self.symbols.numbering_system))
    }

    /// # Errors
    /// For a number whose pattern is damaged, which no data in use is.
    pub fn format(&self, value: &NumberValue) -> Result<String, IntlError> {
        Ok(join(&self.format_to_parts(value)?))
    }

    /// # Errors
    /// As [`Self::format`].
    pub fn format_to_parts(&self, value: &NumberValue) -> Result<Vec<Part>, IntlError> {
        let mut number = match value {
            NumberValue::NotANumber => {
                let sign =
                    if self.options.sign_display == SignDisplay::Always { Sign::Plus } else { Sign::None };
                return self.assemble(
                    &Decimal::from(0),
                    0,
                    sign,
                    &[Part::new("nan", nan(&self.options.locale))],
                );
            }
            NumberValue::Infinite { negative } => {
                let number = Decimal::from(if *negative { -1 } else { 1 });
                let sign = self.sign(&number);
                return self.assemble(&number, 0, sign, &[Part::new("infinity", "∞")]);
            }
            NumberValue::Finite(number) => (**number).clone(),
        };
        if self.options.style == Style::Percent {
            number.absolute.multiply_pow10(2);
        }
        let Scaled { number, exponent } = self.scale(number);
        let sign = self.sign(&number);
        let mut digits = Vec::new();
        let grouping = match self.options.notation {
            Notation::Scientific | Notation::Engineering => Grouping::Never,
            _ => self.options.grouping(),
        };
        self.symbols.write(&number.absolute, grouping, &mut digits);
        if matches!(self.options.notation, Notation::Scientific | Notation::Engineering) {
            self.write_exponent(exponent, &mut digits);
            return self.assemble(&number, 0, sign, &digits);
        }
        self.assemble(&number, exponent, sign, &digits)
    }

    /// Divides the number by the power of ten that its notation shows apart, and rounds it.
    fn scale(&self, number: Decimal) -> Scaled {
        let exponent_of = |number: &Decimal| -> i16 {
            if number.absolute.is_zero() {
                return 0;
            }
            let magnitude = number.absolute.nonzero_magnitude_start();
            match (self.options.notation, &self.compact) {
                (Notation::Scientific, _) => magnitude,
                (Notation::Engineering, _) => magnitude.div_euclid(3) * 3,
                (Notation::Compact, Some(compact)) => i16::from(compact.exponent(magnitude)),
                _ => 0,
            }
        };
        let mut exponent = exponent_of(&number);
        // Rounding may carry the number over the next power of ten, once.
        let mut rounded = number.clone();
        rounded.absolute.multiply_pow10(-exponent);
        self.options.digits.round(&mut rounded);
        rounded.absolute.multiply_pow10(exponent);
        exponent = exponent_of(&rounded).max(exponent);
        let mut scaled = number;
        scaled.absolute.multiply_pow10(-exponent);
        self.options.digits.apply(&mut scaled);
        Scaled { number: scaled, exponent }
    }

    fn sign(&self, number: &Decimal) -> Sign {
        let zero = number.absolute.is_zero();
        let negative = number.sign == DecimalSign::Negative;
        match self.options.sign_display {
            SignDisplay::Never => Sign::None,
            SignDisplay::ExceptZero | SignDisplay::Negative if zero => Sign::None,
            _ if negative => Sign::Minus,
            SignDisplay::Always | SignDisplay::ExceptZero => Sign::Plus,
            SignDisplay::Auto | SignDisplay::Negative => Sign::None,
        }
    }

    fn write_exponent(&self, exponent: i16, parts: &mut Vec<Part>) {
        let separator = exponent_separator(&self.options.locale, &self.symbols.numbering_system);
        push(parts, Part::new("exponentSeparator", separator));
        if exponent < 0 {
            push(parts, Part::new("exponentMinusSign", self.symbols.minus.0.clone()));
        }
        let digits = self.symbols.plain(&exponent.unsigned_abs().to_string());
        push(parts, Part::new("exponentInteger", digits));
    }

    /// Puts digits, sign, symbols and words together.
    fn assemble(
        &self,
        number: &Decimal,
        exponent: i16,
        sign: Sign,
        digits: &[Part],
    ) -> Result<Vec<Part>, IntlError> {
        let exponent = u8::try_from(exponent).unwrap_or(0);
        let operands = PluralOperands::from_significand_and_exponent(&number.absolute, exponent);
        let inner = match &self.compact {
            Some(compact) if exponent > 0 => compact.layout(&number.absolute, exponent),
            _ => Layout::number(),
        };
        let outer = match &self.style {
            StyleLayout::Plain => Layout::number().with_sign(sign, &self.symbols),
            StyleLayout::Percent(data) => self.percent_layout(data, sign),
            StyleLayout::Currency(currency) => currency.layout(number, exponent, sign, &self.symbols),
            StyleLayout::Unit(unit) => {
                let signed = Layout::number().with_sign(sign, &self.symbols);
                unit.layout(operands)?.around(&signed)
            }
        };
        Ok(outer.around(&inner).fill(digits))
    }

    fn percent_layout(&self, data: &DataPayload<DecimalPercentV1>, sign: Sign) -> Layout {
        let data = data.get();
        let mut layout = Layout::default();
        if sign == Sign::None {
            return Layout::from_pattern(&data.unsigned_pattern, "percentSign");
        }
        for item in data.signed_pattern.iter() {
            match item {
                PatternItem::Placeholder(DoublePlaceholderKey::Place0) => layout.push(Slot::Number),
                PatternItem::Placeholder(DoublePlaceholderKey::Place1) => {
                    layout.push(Slot::Part(sign.part(&self.symbols)));
                }
                PatternItem::Literal(text) => layout.push_words(text, "percentSign"),
            }
        }
        layout
    }
}

/// ICU4X has no text for "not a number"; these are the ones of CLDR that differ from `NaN`.
fn nan(locale: &Locale) -> &'static str {
    match locale.id.language.as_str() {
        "fi" => "epäluku",
        "ru" => "не число",
        "ar" => "ليس رقمًا",
        "lv" => "NS",
        "fa" => "ناعدد",
        "ka" => "არ არის რიცხვი",
        "kk" => "сан емес",
        "zh" => {
            let region = locale.id.region.map(|region| region.to_string()).unwrap_or_default();
            let script = locale.id.script.is_some_and(|script| script.as_str() == "Hant");
            if script || matches!(region.as_str(), "TW" | "HK" | "MO") { "非數值" } else { "NaN" }
        }
        _ => "NaN",
    }
}

/// What separates mantissa and exponent, where CLDR has something other than `E`.
fn exponent_separator(locale: &Locale, numbering_system: &str) -> &'static str {
    match (locale.id.language.as_str(), numbering_system) {
        ("sv" | "lt" | "et", _) => "×10^",
        ("sk" | "el" | "sl", _) => "e",
        ("uk", _) => "Е",
        ("fa", _) => "×۱۰^",
        ("ar", "arab") => "أس",
        _ => "E",
    }
}
