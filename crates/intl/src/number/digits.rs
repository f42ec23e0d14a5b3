//! How many digits a number shows: the digit options of ECMA-402, and rounding by them.

use fixed_decimal::{Decimal, RoundingIncrement, SignedRoundingMode, UnsignedRoundingMode};
use serde::Deserialize;

use crate::IntlError;
use crate::choice::choice;

choice! {
    RoundingMode {
        Ceil = "ceil", Floor = "floor", Expand = "expand", Trunc = "trunc", HalfCeil = "halfCeil",
        HalfFloor = "halfFloor", HalfExpand = "halfExpand", HalfTrunc = "halfTrunc", HalfEven = "halfEven",
    }
}

choice! {
    RoundingPriority { Auto = "auto", MorePrecision = "morePrecision", LessPrecision = "lessPrecision" }
}

choice! {
    TrailingZeroDisplay { Auto = "auto", StripIfInteger = "stripIfInteger" }
}

/// The increments that ECMA-402 allows.
const INCREMENTS: [u16; 15] = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000];
const MAX_INTEGER_DIGITS: u8 = 21;
const MAX_FRACTION_DIGITS: u8 = 100;
const MAX_SIGNIFICANT_DIGITS: u8 = 21;

/// The digit options as the caller gives them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DigitRequest {
    pub(crate) minimum_integer_digits: Option<f64>,
    pub(crate) minimum_fraction_digits: Option<f64>,
    pub(crate) maximum_fraction_digits: Option<f64>,
    pub(crate) minimum_significant_digits: Option<f64>,
    pub(crate) maximum_significant_digits: Option<f64>,
    pub(crate) rounding_increment: Option<f64>,
    pub(crate) rounding_mode: Option<String>,
    pub(crate) rounding_priority: Option<String>,
    pub(crate) trailing_zero_display: Option<String>,
}

/// What decides how many digits remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    Fraction,
    Significant,
    More,
    Less,
}

/// Digits of the fraction without any option: fewest and most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FractionDefaults {
    pub(crate) minimum: u8,
    pub(crate) maximum: u8,
    /// True for compact notation, which keeps two significant digits.
    pub(crate) compact: bool,
}

/// Resolved digit options.
#[derive(Clone, Debug)]
pub(crate) struct Digits {
    integer: u8,
    fraction: (u8, u8),
    significant: (u8, u8),
    precision: Precision,
    priority: RoundingPriority,
    increment: u16,
    mode: RoundingMode,
    trailing: TrailingZeroDisplay,
}

impl Digits {
    pub(crate) fn read(request: &DigitRequest, defaults: FractionDefaults) -> Result<Self, IntlError> {
        let integer = digits("minimumIntegerDigits", request.minimum_integer_digits, 1, MAX_INTEGER_DIGITS)?
            .unwrap_or(1);
        let increment = request.rounding_increment.unwrap_or(1.0);
        let Some(increment) = INCREMENTS.into_iter().find(|allowed| f64::from(*allowed) == increment.floor())
        else {
            return Err(IntlError::range(format!(
                "invalid value `{increment}` of option `roundingIncrement`"
            )));
        };
        let mode =
            RoundingMode::read("roundingMode", request.rounding_mode.as_deref(), RoundingMode::HalfExpand)?;
        let priority = RoundingPriority::read(
            "roundingPriority",
            request.rounding_priority.as_deref(),
            RoundingPriority::Auto,
        )?;
        let trailing = TrailingZeroDisplay::read(
            "trailingZeroDisplay",
            request.trailing_zero_display.as_deref(),
            TrailingZeroDisplay::Auto,
        )?;
        let has_significant =
            request.minimum_significant_digits.is_some() || request.maximum_significant_digits.is_some();
        let has_fraction =
            request.minimum_fraction_digits.is_some() || request.maximum_fraction_digits.is_some();
        let automatic = priority == RoundingPriority::Auto;
        let need_significant = !automatic || has_significant;
        let need_fraction = !automatic || !(has_significant || (!has_fraction && defaults.compact));
        let default_maximum = if increment == 1 { defaults.maximum } else { defaults.minimum };

        let significant = if need_significant { significant(request)? } else { (1, MAX_SIGNIFICANT_DIGITS) };
        let fraction =
            if need_fraction { fraction(request, defaults.minimum, default_maximum)? } else { (0, 0) };
        let (precision, fraction, significant) = if !need_significant && !need_fraction {
            (Precision::More, (0, 0), (1, 2))
        } else {
            let precision = match priority {
                RoundingPriority::MorePrecision => Precision::More,
                RoundingPriority::LessPrecision => Precision::Less,
                RoundingPriority::Auto if has_significant => Precision::Significant,
                RoundingPriority::Auto => Precision::Fraction,
            };
            (precision, fraction, significant)
        };
        if increment != 1 {
            if precision != Precision::Fraction {
                return Err(IntlError::kind(
                    "roundingIncrement cannot be used with significant digits, roundingPriority or compact notation",
                ));
            }
            if fraction.0 != fraction.1 {
                return Err(IntlError::range(
                    "roundingIncrement needs minimumFractionDigits and maximumFractionDigits to be equal",
                ));
            }
        }
        Ok(Self { integer, fraction, significant, precision, priority, increment, mode, trailing })
    }

    /// Rounds and pads `number`.
    pub(crate) fn apply(&self, number: &mut Decimal) {
        self.round(number);
        let by_significant = match self.precision {
            Precision::Fraction => false,
            Precision::Significant => true,
            Precision::More => self.significant_position(number) <= self.fraction_position(),
            Precision::Less => self.significant_position(number) > self.fraction_position(),
        };
        number.absolute.trim_start();
        number.absolute.trim_end();
        if by_significant {
            let magnitude = number.absolute.nonzero_magnitude_start();
            number
                .absolute
                .pad_end(magnitude.saturating_sub(i16::from(self.significant.0)).saturating_add(1));
        } else {
            number.absolute.pad_end(-i16::from(self.fraction.0));
        }
        if self.trailing == TrailingZeroDisplay::StripIfInteger {
            number.absolute.trim_end_if_integer();
        }
        number.absolute.pad_start(i16::from(self.integer));
    }

    /// Rounds without padding, as often as the caller must look at the result.
    pub(crate) fn round(&self, number: &mut Decimal) {
        let by_significant = self.significant_position(number);
        let by_fraction = self.fraction_position();
        let position = match self.precision {
            Precision::Fraction => by_fraction,
            Precision::Significant => by_significant,
            Precision::More => by_significant.min(by_fraction),
            Precision::Less => by_significant.max(by_fraction),
        };
        let (zeros, increment) = match self.increment {
            1 => (0, RoundingIncrement::MultiplesOf1),
            2 => (0, RoundingIncrement::MultiplesOf2),
            5 => (0, RoundingIncrement::MultiplesOf5),
            10 => (1, RoundingIncrement::MultiplesOf1),
            20 => (1, RoundingIncrement::MultiplesOf2),
            25 => (0, RoundingIncrement::MultiplesOf25),
            50 => (1, RoundingIncrement::MultiplesOf5),
            100 => (2, RoundingIncrement::MultiplesOf1),
            200 => (2, RoundingIncrement::MultiplesOf2),
            250 => (1, RoundingIncrement::MultiplesOf25),
            500 => (2, RoundingIncrement::MultiplesOf5),
            1000 => (3, RoundingIncrement::MultiplesOf1),
            2000 => (3, RoundingIncrement::MultiplesOf2),
            2500 => (2, RoundingIncrement::MultiplesOf25),
            _ => (3, RoundingIncrement::MultiplesOf5),
        };
        number.round_with_mode_and_increment(position.saturating_add(zeros), self.signed_mode(), increment);
    }

    fn significant_position(&self, number: &Decimal) -> i16 {
        let magnitude = if number.absolute.is_zero() { 0 } else { number.absolute.nonzero_magnitude_start() };
        magnitude.saturating_sub(i16::from(self.significant.1)).saturating_add(1)
    }

    fn fraction_position(&self) -> i16 {
        -i16::from(self.fraction.1)
    }

    fn signed_mode(&self) -> SignedRoundingMode {
        match self.mode {
            RoundingMode::Ceil => SignedRoundingMode::Ceil,
            RoundingMode::Floor => SignedRoundingMode::Floor,
            RoundingMode::HalfCeil => SignedRoundingMode::HalfCeil,
            RoundingMode::HalfFloor => SignedRoundingMode::HalfFloor,
            RoundingMode::Expand => SignedRoundingMode::Unsigned(UnsignedRoundingMode::Expand),
            RoundingMode::Trunc => SignedRoundingMode::Unsigned(UnsignedRoundingMode::Trunc),
            RoundingMode::HalfExpand => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfExpand),
            RoundingMode::HalfTrunc => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfTrunc),
            RoundingMode::HalfEven => SignedRoundingMode::Unsigned(UnsignedRoundingMode::HalfEven),
        }
    }

    /// Adds the fields of `resolvedOptions`.
    pub(crate) fn describe(&self, fields: &mut serde_json::Map<String, serde_json::Value>) {
        fields.insert("minimumIntegerDigits".into(), self.integer.into());
        if self.precision != Precision::Significant {
            fields.insert("minimumFractionDigits".into(), self.fraction.0.into());
            fields.insert("maximumFractionDigits".into(), self.fraction.1.into());
        }
        if self.precision != Precision::Fraction {
            fields.insert("minimumSignificantDigits".into(), self.significant.0.into());
            fields.insert("maximumSignificantDigits".into(), self.significant.1.into());
        }
    }

    /// Adds the fields of `resolvedOptions` that come after those of the notation.
    pub(crate) fn describe_rounding(&self, fields: &mut serde_json::Map<String, serde_json::Value>) {
        let priority = match self.precision {
            Precision::More => RoundingPriority::MorePrecision,
            _ => self.priority,
        };
        fields.insert("roundingIncrement".into(), self.increment.into());
        fields.insert("roundingMode".into(), self.mode.as_str().into());
        fields.insert("roundingPriority".into(), priority.as_str().into());
        fields.insert("trailingZeroDisplay".into(), self.trailing.as_str().into());
    }
}

fn significant(request: &DigitRequest) -> Result<(u8, u8), IntlError> {
    let minimum =
        digits("minimumSignificantDigits", request.minimum_significant_digits, 1, MAX_SIGNIFICANT_DIGITS)?
            .unwrap_or(1);
    let maximum = digits(
        "maximumSignificantDigits",
        request.maximum_significant_digits,
        minimum,
        MAX_SIGNIFICANT_DIGITS,
    )?
    .unwrap_or(MAX_SIGNIFICANT_DIGITS);
    Ok((minimum, maximum))
}

fn fraction(request: &DigitRequest, default_minimum: u8, default_maximum: u8) -> Result<(u8, u8), IntlError> {
    let minimum = digits("minimumFractionDigits", request.minimum_fraction_digits, 0, MAX_FRACTION_DIGITS)?;
    let maximum = digits("maximumFractionDigits", request.maximum_fraction_digits, 0, MAX_FRACTION_DIGITS)?;
    match (minimum, maximum) {
        (None, None) => Ok((default_minimum, default_maximum)),
        (None, Some(maximum)) => Ok((default_minimum.min(maximum), maximum)),
        (Some(minimum), None) => Ok((minimum, default_maximum.max(minimum))),
        (Some(minimum), Some(maximum)) if minimum > maximum => {
            Err(IntlError::range("option `maximumFractionDigits` is smaller than `minimumFractionDigits`"))
        }
        (Some(minimum), Some(maximum)) => Ok((minimum, maximum)),
    }
}

fn digits(name: &str, value: Option<f64>, least: u8, most: u8) -> Result<Option<u8>, IntlError> {
    let Some(value) = value else { return Ok(None) };
    let whole = value.floor();
    if !(value >= f64::from(least) && value <= f64::from(most)) {
        return Err(IntlError::range(format!(
            "invalid value `{value}` of option `{name}`: expected {least} to {most}"
        )));
    }
    // In range, as checked above.
    Ok(Some(whole as u8))
}
