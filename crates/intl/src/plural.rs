//! `Intl.PluralRules`.

use icu::locale::Locale;
use icu::plurals::{PluralCategory, PluralRuleType, PluralRulesOptions, PluralRulesWithRanges};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::IntlError;
use crate::NumberValue;
use crate::choice::choice;
use crate::locale::negotiate;
use crate::number::digits::{DigitRequest, Digits, FractionDefaults};
use crate::number::units::category_name;

choice! { RuleKind { Cardinal = "cardinal", Ordinal = "ordinal" } }

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PluralRequest {
    locales: Vec<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(flatten)]
    digits: DigitRequest,
}

/// The plural rules of a language.
#[derive(Debug)]
pub struct PluralSelector {
    rules: PluralRulesWithRanges<icu::plurals::PluralRules>,
    locale: Locale,
    kind: RuleKind,
    digits: Digits,
}

impl PluralSelector {
    /// The rules from the JSON of their options, with the requested locales in `locales`.
    ///
    /// # Errors
    /// For options that are invalid.
    pub fn new(options: &str) -> Result<Self, IntlError> {
        let request: PluralRequest = crate::read_options(options)?;
        let locale = negotiate(&request.locales, &[])?;
        let kind = RuleKind::read("type", request.kind.as_deref(), RuleKind::Cardinal)?;
        let digits =
            Digits::read(&request.digits, FractionDefaults { minimum: 0, maximum: 3, compact: false })?;
        let rule_type = match kind {
            RuleKind::Cardinal => PluralRuleType::Cardinal,
            RuleKind::Ordinal => PluralRuleType::Ordinal,
        };
        let rules = PluralRulesWithRanges::try_new((&locale).into(), PluralRulesOptions::from(rule_type))
            .map_err(|error| IntlError::missing_data("plurals", &locale, &error))?;
        Ok(Self { rules, locale, kind, digits })
    }

    fn category(&self, value: &NumberValue) -> PluralCategory {
        match value {
            NumberValue::Finite(number) => {
                let mut number = (**number).clone();
                self.digits.apply(&mut number);
                self.rules.rules().category_for(&number)
            }
            NumberValue::NotANumber | NumberValue::Infinite { .. } => PluralCategory::Other,
        }
    }

    /// The category of a number, such as `one` or `few`.
    #[must_use]
    pub fn select(&self, value: &NumberValue) -> &'static str {
        category_name(self.category(value))
    }

    /// The category of a range of numbers.
    ///
    /// # Errors
    /// For a bound that is not a number.
    pub fn select_range(&self, start: &NumberValue, end: &NumberValue) -> Result<&'static str, IntlError> {
        if matches!(start, NumberValue::NotANumber) || matches!(end, NumberValue::NotANumber) {
            return Err(IntlError::range("a bound of the range is not a number"));
        }
        Ok(category_name(self.rules.resolve_range(self.category(start), self.category(end))))
    }

    #[must_use]
    pub fn resolved_options(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("locale".into(), self.locale.to_string().into());
        fields.insert("type".into(), self.kind.as_str().into());
        self.digits.describe(&mut fields);
        let present: Vec<PluralCategory> = self.rules.rules().categories().collect();
        // In the order that Node.js has.
        let names: Vec<&str> = [
            PluralCategory::Few,
            PluralCategory::Many,
            PluralCategory::One,
            PluralCategory::Two,
            PluralCategory::Zero,
            PluralCategory::Other,
        ]
        .into_iter()
        .filter(|category| present.contains(category))
        .map(category_name)
        .collect();
        fields.insert("pluralCategories".into(), names.into());
        self.digits.describe_rounding(&mut fields);
        Value::Object(fields)
    }
}
