//! Patterns of measurement units.
//!
//! ICU4X has units of area, duration, length, mass and volume only. The table has all units of ECMA-402 and the common
//! rates, for the locales that `data/units.mjs` lists.

use icu::locale::Locale;
use icu::plurals::{PluralCategory, PluralOperands, PluralRules};
use icu_pattern::SinglePlaceholderPattern;

use super::layout::Layout;
use super::options::UnitDisplay;
use crate::IntlError;
use crate::choice::shown;

const TABLE: &str = include_str!("../../data/units.tsv");

/// The locale whose rows name every unit.
const COMPLETE: &str = "en";

fn known() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter_map(|line| line.strip_prefix(COMPLETE)?.strip_prefix('\t')?.split('\t').next())
}

/// All single units.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = known().filter(|name| !name.contains("-per-")).map(str::to_owned).collect();
    names.dedup();
    names
}

/// Refuses what is not a unit of the table.
pub(crate) fn check(unit: &str) -> Result<(), IntlError> {
    if known().any(|name| name == unit) {
        return Ok(());
    }
    let (unit, hint) = (shown(unit), "use a single unit such as `kilometer`, or `kilometer-per-hour`");
    Err(IntlError::range(format!("unsupported unit `{unit}`: {hint}")))
}

/// The patterns of one unit by plural category.
#[derive(Debug)]
pub(crate) struct UnitLayout {
    other: &'static str,
    special: Vec<(&'static str, &'static str)>,
    rules: PluralRules,
}

impl UnitLayout {
    pub(crate) fn load(locale: &Locale, unit: &str, display: UnitDisplay) -> Result<Self, IntlError> {
        let language = locale.id.language.as_str();
        // Both ways to write Chinese have rows; the other locales differ by region only.
        let script = locale.id.script.is_some_and(|script| script.as_str() == "Hant");
        let region = locale.id.region.map(|region| region.to_string()).unwrap_or_default();
        let traditional = language == "zh" && (script || matches!(region.as_str(), "TW" | "HK" | "MO"));
        let exact = if traditional { "zh-TW".to_owned() } else { format!("{language}-{region}") };
        let row = row(&exact, unit, display).or_else(|| row(language, unit, display)).or_else(|| {
            // `no` is the macrolanguage of `nb`.
            matches!(language, "no" | "nn").then(|| row("nb", unit, display)).flatten()
        });
        let Some(row) = row else {
            return Err(IntlError::range(format!(
                "units have no data for locale `{locale}`: format the number without `style: 'unit'` and append the unit"
            )));
        };
        let mut fields = row.split('\t');
        let other = fields.next().unwrap_or_default();
        let special = fields.filter_map(|field| field.split_once('=')).collect();
        Ok(Self { other, special, rules: super::plural_rules(locale)? })
    }

    pub(crate) fn layout(&self, operands: PluralOperands) -> Result<Layout, IntlError> {
        let category = category_name(self.rules.category_for(operands));
        let pattern = self
            .special
            .iter()
            .find(|(name, _)| *name == category)
            .map_or(self.other, |(_, pattern)| *pattern);
        let pattern = SinglePlaceholderPattern::try_from_str(pattern, Default::default())
            .map_err(|error| IntlError::range(format!("bad pattern `{pattern}`: {error}")))?;
        Ok(Layout::from_pattern(&pattern, "unit"))
    }
}

fn row(locale: &str, unit: &str, display: UnitDisplay) -> Option<&'static str> {
    let start = format!("{locale}\t{unit}\t{}\t", display.as_str());
    TABLE.lines().find_map(|line| line.strip_prefix(start.as_str()))
}

/// The name of a plural category in CLDR and ECMA-402.
pub(crate) fn category_name(category: PluralCategory) -> &'static str {
    match category {
        PluralCategory::Zero => "zero",
        PluralCategory::One => "one",
        PluralCategory::Two => "two",
        PluralCategory::Few => "few",
        PluralCategory::Many => "many",
        PluralCategory::Other => "other",
    }
}
