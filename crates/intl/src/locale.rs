//! Language tags: canonical form, and the choice among those requested.

use icu::locale::extensions::unicode::{Key, Value, key};
use icu::locale::{Locale, LocaleCanonicalizer, LocaleExpander};

use crate::IntlError;
use crate::choice::shown;

/// The locale of everything that does not name one. It does not depend on the machine, so that a run can be repeated.
pub const DEFAULT_LOCALE: &str = "en-US";

/// Longer tags are refused before they are parsed; the longest in use have some forty characters.
const MAX_TAG_BYTES: usize = 255;
/// A list of more locales than this is a mistake or an attack.
const MAX_TAGS: usize = 100;

/// The languages of CLDR with modern coverage: ICU4X has numbers, dates and lists for all of them.
const LANGUAGES: [&str; 104] = [
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "br", "bs", "ca", "cs", "cy", "da", "de", "el", "en",
    "es", "et", "eu", "fa", "fi", "fil", "fo", "fr", "ga", "gd", "gl", "gu", "ha", "he", "hi", "hr", "hu",
    "hy", "id", "ig", "is", "it", "ja", "jv", "ka", "kk", "km", "kn", "ko", "ky", "lb", "lo", "lt", "lv",
    "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "no", "or", "pa", "pcm", "pl", "ps",
    "pt", "qu", "rm", "ro", "ru", "sc", "sd", "si", "sk", "sl", "so", "sq", "sr", "sv", "sw", "ta", "te",
    "tg", "th", "ti", "tk", "to", "tr", "tt", "ug", "uk", "ur", "uz", "vi", "wo", "xh", "yo", "yue", "zh",
    "zu", "und",
];

/// A locale from its text, in canonical form.
pub(crate) fn parse(tag: &str) -> Result<Locale, IntlError> {
    let invalid = || IntlError::range(format!("invalid language tag: `{}`", shown(tag)));
    if tag.len() > MAX_TAG_BYTES {
        return Err(invalid());
    }
    let mut locale = Locale::try_from_str(tag).map_err(|_| invalid())?;
    // `root` is parsed, but is not a BCP 47 tag.
    if tag.eq_ignore_ascii_case("root") {
        return Err(invalid());
    }
    LocaleCanonicalizer::new_extended().canonicalize(&mut locale);
    Ok(locale)
}

fn parse_all(tags: &[String]) -> Result<Vec<Locale>, IntlError> {
    if tags.len() > MAX_TAGS {
        return Err(IntlError::range(format!("too many locales: {}, at most {MAX_TAGS}", tags.len())));
    }
    let mut locales: Vec<Locale> = Vec::new();
    for tag in tags.iter().filter(|tag| !has_reserved_language(tag)) {
        let locale = parse(tag)?;
        if !locales.contains(&locale) {
            locales.push(locale);
        }
    }
    Ok(locales)
}

/// Languages of five to eight letters are well-formed, and none exists. Programs write `default` for their own locale.
fn has_reserved_language(tag: &str) -> bool {
    let (language, rest) = tag.split_once('-').map_or((tag, None), |(language, rest)| (language, Some(rest)));
    (5..=8).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphabetic())
        && rest.is_none_or(|rest| parse(&format!("und-{rest}")).is_ok())
}

fn is_supported(locale: &Locale) -> bool {
    LANGUAGES.contains(&locale.id.language.as_str()) && !locale.id.language.is_unknown()
}

/// `Intl.getCanonicalLocales`.
///
/// # Errors
/// For a tag that is not well-formed.
pub fn canonical_locales(tags: &[String]) -> Result<Vec<String>, IntlError> {
    Ok(parse_all(tags)?.iter().map(ToString::to_string).collect())
}

/// `supportedLocalesOf`: those of `tags` that have data of their own.
///
/// # Errors
/// For a tag that is not well-formed.
pub fn supported_locales(tags: &[String]) -> Result<Vec<String>, IntlError> {
    Ok(parse_all(tags)?.iter().filter(|locale| is_supported(locale)).map(ToString::to_string).collect())
}

/// A tag with the script and region that are likely for its language.
///
/// # Errors
/// For a tag that is not well-formed.
pub fn maximize(tag: &str) -> Result<String, IntlError> {
    let mut locale = parse(tag)?;
    LocaleExpander::new_extended().maximize(&mut locale.id);
    Ok(locale.to_string())
}

/// A tag without the script and region that are likely for its language.
///
/// # Errors
/// For a tag that is not well-formed.
pub fn minimize(tag: &str) -> Result<String, IntlError> {
    let mut locale = parse(tag)?;
    LocaleExpander::new_extended().minimize(&mut locale.id);
    Ok(locale.to_string())
}

/// The first supported locale of `tags`, or the default, with only the Unicode extension keys in `keys`.
pub(crate) fn negotiate(tags: &[String], keys: &[Key]) -> Result<Locale, IntlError> {
    let mut locale = match parse_all(tags)?.into_iter().find(is_supported) {
        Some(locale) => locale,
        None => parse(DEFAULT_LOCALE)?,
    };
    locale.extensions.unicode.attributes.clear();
    locale.extensions.unicode.keywords.retain_by_key(|key| keys.contains(key));
    locale.extensions.transform.clear();
    locale.extensions.private.clear();
    locale.extensions.other.clear();
    Ok(locale)
}

/// Sets an extension key that an option decides. `None` leaves what the tag says.
pub(crate) fn set_keyword(locale: &mut Locale, key: Key, value: Option<&str>) -> Result<(), IntlError> {
    if let Some(value) = value {
        let parsed = Value::try_from_str(value)
            .map_err(|_| IntlError::range(format!("invalid value `{}` of `{key}`", shown(value))))?;
        locale.extensions.unicode.keywords.set(key, parsed);
    }
    Ok(())
}

/// The value of an extension key.
pub(crate) fn keyword(locale: &Locale, key: &Key) -> Option<String> {
    locale.extensions.unicode.keywords.get(key).map(ToString::to_string)
}

/// The key of the numbering system.
pub(crate) const NUMBERS: Key = key!("nu");
