//! `Intl.Collator`.

use std::cmp::Ordering;

use icu::collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu::collator::{CollatorBorrowed, CollatorPreferences};
use icu::locale::Locale;
use icu::locale::extensions::unicode::key;
use icu::locale::preferences::extensions::unicode::keywords::CollationNumericOrdering;
use serde::Deserialize;
use serde_json::json;

use crate::IntlError;
use crate::choice::choice;
use crate::locale::{keyword, negotiate, set_keyword};

choice! { Usage { Sort = "sort", Search = "search" } }
choice! { Sensitivity { Base = "base", Accent = "accent", Case = "case", Variant = "variant" } }
choice! { CaseFirst { Upper = "upper", Lower = "lower", Off = "false" } }

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CollatorRequest {
    locales: Vec<String>,
    usage: Option<String>,
    sensitivity: Option<String>,
    ignore_punctuation: Option<bool>,
    numeric: Option<bool>,
    case_first: Option<String>,
    collation: Option<String>,
}

/// A comparison of texts in the order of a language.
#[derive(Debug)]
pub struct Collator {
    collator: CollatorBorrowed<'static>,
    locale: Locale,
    sensitivity: Sensitivity,
}

impl Collator {
    /// A collator from the JSON of its options, with the requested locales in `locales`.
    ///
    /// # Errors
    /// For options that are invalid or not supported.
    pub fn new(options: &str) -> Result<Self, IntlError> {
        let request: CollatorRequest = crate::read_options(options)?;
        if Usage::read("usage", request.usage.as_deref(), Usage::Sort)? == Usage::Search {
            return Err(IntlError::range(
                "usage `search` is not supported: use `usage: 'sort'` with `sensitivity: 'base'` or `'accent'`",
            ));
        }
        let mut locale = negotiate(&request.locales, &[key!("co"), key!("kn"), key!("kf")])?;
        let case_first = CaseFirst::read_optional("caseFirst", request.case_first.as_deref())?;
        set_keyword(&mut locale, key!("kf"), case_first.map(CaseFirst::as_str))?;
        let numeric = request.numeric.map(|on| if on { "true" } else { "false" });
        set_keyword(&mut locale, key!("kn"), numeric)?;
        set_keyword(&mut locale, key!("co"), request.collation.as_deref())?;
        let sensitivity =
            Sensitivity::read("sensitivity", request.sensitivity.as_deref(), Sensitivity::Variant)?;
        let mut options = CollatorOptions::default();
        options.strength = Some(match sensitivity {
            Sensitivity::Base | Sensitivity::Case => Strength::Primary,
            Sensitivity::Accent => Strength::Secondary,
            Sensitivity::Variant => Strength::Tertiary,
        });
        options.case_level = (sensitivity == Sensitivity::Case).then_some(CaseLevel::On);
        options.alternate_handling = request
            .ignore_punctuation
            .map(|ignore| if ignore { AlternateHandling::Shifted } else { AlternateHandling::NonIgnorable });
        let collator = CollatorBorrowed::try_new(CollatorPreferences::from(&locale), options)
            .map_err(|error| IntlError::missing_data("comparison", &locale, &error))?;
        Ok(Self { collator, locale, sensitivity })
    }

    #[must_use]
    pub fn compare(&self, left: &str, right: &str) -> Ordering {
        self.collator.compare(left, right)
    }

    #[must_use]
    pub fn resolved_options(&self) -> serde_json::Value {
        let resolved = self.collator.resolved_options();
        let ignores = resolved.alternate_handling == AlternateHandling::Shifted;
        let collation = keyword(&self.locale, &key!("co")).unwrap_or_else(|| "default".to_owned());
        let case_first = keyword(&self.locale, &key!("kf")).unwrap_or_else(|| "false".to_owned());
        json!({
            "locale": self.locale.id.to_string(),
            "usage": Usage::Sort.as_str(),
            "sensitivity": self.sensitivity.as_str(),
            "ignorePunctuation": ignores,
            "collation": collation,
            "numeric": resolved.numeric == CollationNumericOrdering::True,
            "caseFirst": case_first,
        })
    }
}
