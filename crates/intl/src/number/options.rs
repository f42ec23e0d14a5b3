//! The options of `Intl.NumberFormat`.

use icu::experimental::dimension::currency::CurrencyType;
use icu::locale::Locale;
use serde::Deserialize;

use super::digits::{DigitRequest, Digits, FractionDefaults};
use super::symbols::Grouping;
use super::{currency, units};
use crate::IntlError;
use crate::choice::{choice, shown};
use crate::locale::{NUMBERS, negotiate, set_keyword};

choice! { Style { Decimal = "decimal", Percent = "percent", Currency = "currency", Unit = "unit" } }
choice! {
    CurrencyDisplay { Code = "code", Symbol = "symbol", NarrowSymbol = "narrowSymbol", Name = "name" }
}
choice! { CurrencySign { Standard = "standard", Accounting = "accounting" } }
choice! { UnitDisplay { Short = "short", Narrow = "narrow", Long = "long" } }
choice! {
    Notation {
        Standard = "standard", Scientific = "scientific", Engineering = "engineering", Compact = "compact",
    }
}
choice! { CompactDisplay { Short = "short", Long = "long" } }
choice! {
    SignDisplay {
        Auto = "auto", Never = "never", Always = "always", ExceptZero = "exceptZero", Negative = "negative",
    }
}
choice! { UseGrouping { Min2 = "min2", Auto = "auto", Always = "always" } }

/// `useGrouping` is a word or a truth value.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum GroupingRequest {
    Flag(bool),
    Word(String),
}

/// The options as the caller gives them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NumberRequest {
    locales: Vec<String>,
    numbering_system: Option<String>,
    style: Option<String>,
    currency: Option<String>,
    currency_display: Option<String>,
    currency_sign: Option<String>,
    unit: Option<String>,
    unit_display: Option<String>,
    notation: Option<String>,
    compact_display: Option<String>,
    use_grouping: Option<GroupingRequest>,
    sign_display: Option<String>,
    #[serde(flatten)]
    digits: DigitRequest,
}

/// Resolved options.
#[derive(Clone, Debug)]
pub(crate) struct NumberOptions {
    pub(crate) locale: Locale,
    pub(crate) style: Style,
    pub(crate) currency: Option<CurrencyType>,
    pub(crate) currency_display: CurrencyDisplay,
    pub(crate) currency_sign: CurrencySign,
    pub(crate) unit: Option<String>,
    pub(crate) unit_display: UnitDisplay,
    pub(crate) notation: Notation,
    pub(crate) compact_display: CompactDisplay,
    pub(crate) grouping: Option<UseGrouping>,
    pub(crate) sign_display: SignDisplay,
    pub(crate) digits: Digits,
}

impl NumberOptions {
    pub(crate) fn read(request: &NumberRequest) -> Result<Self, IntlError> {
        let mut locale = negotiate(&request.locales, &[NUMBERS])?;
        set_keyword(&mut locale, NUMBERS, request.numbering_system.as_deref())?;
        let style = Style::read("style", request.style.as_deref(), Style::Decimal)?;
        let currency = request.currency.as_deref().map(read_currency).transpose()?;
        if style == Style::Currency && currency.is_none() {
            return Err(IntlError::kind("option `currency` is required with style `currency`"));
        }
        let currency_display = CurrencyDisplay::read(
            "currencyDisplay",
            request.currency_display.as_deref(),
            CurrencyDisplay::Symbol,
        )?;
        let currency_sign =
            CurrencySign::read("currencySign", request.currency_sign.as_deref(), CurrencySign::Standard)?;
        if let Some(unit) = &request.unit {
            units::check(unit)?;
        }
        if style == Style::Unit && request.unit.is_none() {
            return Err(IntlError::kind("option `unit` is required with style `unit`"));
        }
        let unit_display =
            UnitDisplay::read("unitDisplay", request.unit_display.as_deref(), UnitDisplay::Short)?;
        let notation = Notation::read("notation", request.notation.as_deref(), Notation::Standard)?;
        let compact_display = CompactDisplay::read(
            "compactDisplay",
            request.compact_display.as_deref(),
            CompactDisplay::Short,
        )?;
        let defaults = match (style, currency) {
            (Style::Currency, Some(currency)) if notation == Notation::Standard => {
                let digits = currency::fraction_digits(currency)?;
                FractionDefaults { minimum: digits, maximum: digits, compact: false }
            }
            (Style::Percent, _) => {
                FractionDefaults { minimum: 0, maximum: 0, compact: notation == Notation::Compact }
            }
            _ => FractionDefaults { minimum: 0, maximum: 3, compact: notation == Notation::Compact },
        };
        let digits = Digits::read(&request.digits, defaults)?;
        let default_grouping =
            if notation == Notation::Compact { UseGrouping::Min2 } else { UseGrouping::Auto };
        let grouping = match &request.use_grouping {
            None => Some(default_grouping),
            Some(GroupingRequest::Flag(true)) => Some(UseGrouping::Always),
            Some(GroupingRequest::Flag(false)) => None,
            Some(GroupingRequest::Word(word)) => match word.as_str() {
                "true" | "false" => Some(default_grouping),
                "" => None,
                word => Some(UseGrouping::read("useGrouping", Some(word), default_grouping)?),
            },
        };
        let sign_display =
            SignDisplay::read("signDisplay", request.sign_display.as_deref(), SignDisplay::Auto)?;
        Ok(Self {
            locale,
            style,
            currency,
            currency_display,
            currency_sign,
            unit: request.unit.clone(),
            unit_display,
            notation,
            compact_display,
            grouping,
            sign_display,
            digits,
        })
    }

    pub(crate) fn grouping(&self) -> Grouping {
        match self.grouping {
            None => Grouping::Never,
            Some(UseGrouping::Always) => Grouping::From(1),
            Some(UseGrouping::Min2) => Grouping::From(2),
            Some(UseGrouping::Auto) => Grouping::Locale,
        }
    }

    /// The fields of `resolvedOptions`, in the order of the specification.
    pub(crate) fn describe(&self, numbering_system: &str) -> serde_json::Map<String, serde_json::Value> {
        let mut fields = serde_json::Map::new();
        fields.insert("locale".into(), self.locale.to_string().into());
        fields.insert("numberingSystem".into(), numbering_system.into());
        fields.insert("style".into(), self.style.as_str().into());
        if let (Style::Currency, Some(currency)) = (self.style, &self.currency) {
            fields.insert("currency".into(), currency.iso_code().as_str().into());
            fields.insert("currencyDisplay".into(), self.currency_display.as_str().into());
            fields.insert("currencySign".into(), self.currency_sign.as_str().into());
        }
        if let (Style::Unit, Some(unit)) = (self.style, &self.unit) {
            fields.insert("unit".into(), unit.as_str().into());
            fields.insert("unitDisplay".into(), self.unit_display.as_str().into());
        }
        self.digits.describe(&mut fields);
        let grouping = self.grouping.map_or(serde_json::Value::Bool(false), |word| word.as_str().into());
        fields.insert("useGrouping".into(), grouping);
        fields.insert("notation".into(), self.notation.as_str().into());
        if self.notation == Notation::Compact {
            fields.insert("compactDisplay".into(), self.compact_display.as_str().into());
        }
        fields.insert("signDisplay".into(), self.sign_display.as_str().into());
        self.digits.describe_rounding(&mut fields);
        fields
    }
}

fn read_currency(code: &str) -> Result<CurrencyType, IntlError> {
    let well_formed = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic());
    let parsed = well_formed.then(|| CurrencyType::try_from_str(code).ok()).flatten();
    parsed.ok_or_else(|| IntlError::range(format!("invalid currency code `{}`", shown(code))))
}
