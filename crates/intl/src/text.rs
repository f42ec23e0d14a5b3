//! Text without formatting: `Intl.Segmenter` and the case mappings of a language.

use icu::casemap::CaseMapper;
use icu::locale::Locale;
use icu::segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu::segmenter::{GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter};
use serde::Deserialize;
use serde_json::json;

use crate::IntlError;
use crate::choice::choice;
use crate::locale::{negotiate, parse};

choice! { Granularity { Grapheme = "grapheme", Word = "word", Sentence = "sentence" } }

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SegmenterRequest {
    locales: Vec<String>,
    granularity: Option<String>,
}

/// A division of text into characters as people see them, words or sentences.
#[derive(Debug)]
pub struct Segmenter {
    locale: Locale,
    granularity: Granularity,
}

/// Every segment costs some thirty bytes outside of the engine's heap, which a run's cap does not count.
const MAX_SEGMENTED_UNITS: usize = 2_000_000;

/// Where a segment ends, in UTF-16 units, and whether it is a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEnd {
    pub index: usize,
    pub is_word_like: bool,
}

impl Segmenter {
    /// A segmenter from the JSON of its options, with the requested locales in `locales`.
    ///
    /// # Errors
    /// For options that are invalid.
    pub fn new(options: &str) -> Result<Self, IntlError> {
        let request: SegmenterRequest = crate::read_options(options)?;
        let locale = negotiate(&request.locales, &[])?;
        let granularity =
            Granularity::read("granularity", request.granularity.as_deref(), Granularity::Grapheme)?;
        Ok(Self { locale, granularity })
    }

    /// The ends of all segments.
    ///
    /// # Errors
    /// For a text that is too long.
    pub fn ends(&self, text: &str) -> Result<Vec<SegmentEnd>, IntlError> {
        let units: Vec<u16> = text.encode_utf16().collect();
        if units.len() > MAX_SEGMENTED_UNITS {
            return Err(IntlError::range(format!(
                "the text is too long to segment: {} characters, at most {MAX_SEGMENTED_UNITS}; segment it in pieces",
                units.len()
            )));
        }
        let plain = |index| SegmentEnd { index, is_word_like: false };
        let mut ends: Vec<SegmentEnd> = match self.granularity {
            Granularity::Grapheme => {
                GraphemeClusterSegmenter::new().segment_utf16(&units).map(plain).collect()
            }
            Granularity::Sentence => SentenceSegmenter::new(SentenceBreakInvariantOptions::default())
                .segment_utf16(&units)
                .map(plain)
                .collect(),
            Granularity::Word => WordSegmenter::new_auto(WordBreakInvariantOptions::default())
                .segment_utf16(&units)
                .iter_with_word_type()
                .map(|(index, kind)| SegmentEnd { index, is_word_like: kind.is_word_like() })
                .collect(),
        };
        // The first boundary is the start of the text.
        ends.retain(|end| end.index > 0);
        Ok(ends)
    }

    #[must_use]
    pub fn has_words(&self) -> bool {
        self.granularity == Granularity::Word
    }

    #[must_use]
    pub fn resolved_options(&self) -> serde_json::Value {
        json!({ "locale": self.locale.to_string(), "granularity": self.granularity.as_str() })
    }
}

/// `toLocaleUpperCase`.
///
/// # Errors
/// For a locale that is not well-formed.
pub fn upper_case(text: &str, locales: &[String]) -> Result<String, IntlError> {
    let locale = case_locale(locales)?;
    Ok(CaseMapper::new().uppercase_to_string(text, &locale.id).into_owned())
}

/// `toLocaleLowerCase`.
///
/// # Errors
/// For a locale that is not well-formed.
pub fn lower_case(text: &str, locales: &[String]) -> Result<String, IntlError> {
    let locale = case_locale(locales)?;
    Ok(CaseMapper::new().lowercase_to_string(text, &locale.id).into_owned())
}

/// The first locale of the list decides, supported or not.
fn case_locale(locales: &[String]) -> Result<Locale, IntlError> {
    parse(locales.first().map_or(crate::DEFAULT_LOCALE, String::as_str))
}
