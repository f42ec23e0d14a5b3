//! `Intl.ListFormat`.

use icu::list::ListFormatter;
use icu::list::options::{ListFormatterOptions, ListLength};
use icu::locale::Locale;
use serde::Deserialize;
use serde_json::json;

use crate::IntlError;
use crate::choice::choice;
use crate::locale::negotiate;
use crate::part::{Part, collect, join};

choice! { ListKind { Conjunction = "conjunction", Disjunction = "disjunction", Unit = "unit" } }
choice! { ListStyle { Long = "long", Short = "short", Narrow = "narrow" } }

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListRequest {
    locales: Vec<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    style: Option<String>,
}

/// A formatter of lists such as "a, b, and c".
#[derive(Debug)]
pub struct ListFormat {
    formatter: ListFormatter,
    locale: Locale,
    kind: ListKind,
    style: ListStyle,
}

impl ListFormat {
    /// A formatter from the JSON of its options, with the requested locales in `locales`.
    ///
    /// # Errors
    /// For options that are invalid.
    pub fn new(options: &str) -> Result<Self, IntlError> {
        let request: ListRequest = crate::read_options(options)?;
        let locale = negotiate(&request.locales, &[])?;
        let kind = ListKind::read("type", request.kind.as_deref(), ListKind::Conjunction)?;
        let style = ListStyle::read("style", request.style.as_deref(), ListStyle::Long)?;
        let length = match style {
            ListStyle::Long => ListLength::Wide,
            ListStyle::Short => ListLength::Short,
            ListStyle::Narrow => ListLength::Narrow,
        };
        let options = ListFormatterOptions::default().with_length(length);
        let formatter = match kind {
            ListKind::Conjunction => ListFormatter::try_new_and((&locale).into(), options),
            ListKind::Disjunction => ListFormatter::try_new_or((&locale).into(), options),
            ListKind::Unit => ListFormatter::try_new_unit((&locale).into(), options),
        }
        .map_err(|error| IntlError::missing_data("lists", &locale, &error))?;
        Ok(Self { formatter, locale, kind, style })
    }

    #[must_use]
    pub fn format(&self, items: &[String]) -> String {
        join(&self.format_to_parts(items))
    }

    #[must_use]
    pub fn format_to_parts(&self, items: &[String]) -> Vec<Part> {
        // An empty element is a part, too, so the elements are not left to the collector.
        let mut parts = Vec::new();
        let mut rest = items.iter();
        let marked = self.formatter.format(items.iter().map(|_| ELEMENT));
        for part in collect(&marked, |part, _| (part.value == "element").then_some("element")) {
            if part.kind == "element" {
                // Neighbours without text between them arrive as one part.
                for _ in 0..part.value.chars().count() {
                    parts.push(Part::new("element", rest.next().cloned().unwrap_or_default()));
                }
            } else {
                parts.push(part);
            }
        }
        if self.depends_on_items() { self.dependent_parts(items) } else { parts }
    }

    /// In Spanish and Hebrew the word before an element depends on how the element begins.
    fn depends_on_items(&self) -> bool {
        matches!(self.locale.id.language.as_str(), "es" | "he")
    }

    fn dependent_parts(&self, items: &[String]) -> Vec<Part> {
        collect(&self.formatter.format(items.iter()), |part, _| {
            (part.value == "element").then_some("element")
        })
    }

    #[must_use]
    pub fn resolved_options(&self) -> serde_json::Value {
        json!({
            "locale": self.locale.to_string(),
            "type": self.kind.as_str(),
            "style": self.style.as_str(),
        })
    }
}

/// The placeholder of an element while the words between elements are found.
const ELEMENT: &str = "\u{1}";
