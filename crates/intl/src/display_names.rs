//! `Intl.DisplayNames`.

use icu::experimental::dimension::provider::currency::displayname::CurrencyDisplaynameV1;
use icu::experimental::displaynames::multi::{
    LocaleDisplayNamesFormatter, RegionDisplayNames, ScriptDisplayNames,
};
use icu::experimental::displaynames::{DisplayNamesOptions, LanguageDisplay, Style as IcuStyle};
use icu::experimental::provider::Baked;
use icu::locale::Locale;
use icu::locale::preferences::LocalePreferences;
use icu::locale::subtags::{Region, Script};
use icu_provider::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::IntlError;
use crate::choice::{choice, shown};
use crate::locale::{negotiate, parse};

choice! {
    NameKind {
        Language = "language", Region = "region", Script = "script", Currency = "currency", Calendar = "calendar",
        DateTimeField = "dateTimeField",
    }
}
choice! { Style { Narrow = "narrow", Short = "short", Long = "long" } }
choice! { Fallback { Code = "code", None = "none" } }
choice! { LanguageStyle { Dialect = "dialect", Standard = "standard" } }

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NamesRequest {
    locales: Vec<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    style: Option<String>,
    fallback: Option<String>,
    language_display: Option<String>,
}

#[derive(Debug)]
enum Names {
    Language(Box<LocaleDisplayNamesFormatter>),
    Region(RegionDisplayNames),
    Script(ScriptDisplayNames),
    Currency,
}

/// The names of languages, regions, scripts and currencies in one language.
#[derive(Debug)]
pub struct DisplayNames {
    names: Names,
    locale: Locale,
    kind: NameKind,
    style: Style,
    fallback: Fallback,
    language_style: LanguageStyle,
}

impl DisplayNames {
    /// The names from the JSON of their options, with the requested locales in `locales`.
    ///
    /// # Errors
    /// For options that are invalid or not supported.
    pub fn new(options: &str) -> Result<Self, IntlError> {
        let request: NamesRequest = crate::read_options(options)?;
        let locale = negotiate(&request.locales, &[])?;
        let style = Style::read("style", request.style.as_deref(), Style::Long)?;
        let Some(kind) = NameKind::read_optional("type", request.kind.as_deref())? else {
            return Err(IntlError::kind("option `type` is required"));
        };
        let fallback = Fallback::read("fallback", request.fallback.as_deref(), Fallback::Code)?;
        let language_style = LanguageStyle::read(
            "languageDisplay",
            request.language_display.as_deref(),
            LanguageStyle::Dialect,
        )?;
        let mut options = DisplayNamesOptions::default();
        options.style = match style {
            Style::Long => None,
            Style::Short => Some(IcuStyle::Short),
            Style::Narrow => Some(IcuStyle::Narrow),
        };
        options.language_display = match language_style {
            LanguageStyle::Dialect => LanguageDisplay::Dialect,
            LanguageStyle::Standard => LanguageDisplay::Standard,
        };
        let missing = |error: DataError| IntlError::missing_data("names", &locale, &error);
        let names = match kind {
            NameKind::Language => Names::Language(Box::new(
                LocaleDisplayNamesFormatter::try_new((&locale).into(), options).map_err(missing)?,
            )),
            NameKind::Region => {
                Names::Region(RegionDisplayNames::try_new((&locale).into(), options).map_err(missing)?)
            }
            NameKind::Script => {
                Names::Script(ScriptDisplayNames::try_new((&locale).into(), options).map_err(missing)?)
            }
            NameKind::Currency => Names::Currency,
            NameKind::Calendar | NameKind::DateTimeField => {
                return Err(IntlError::range(format!(
                    "type `{}` is not supported: expected language, region, script or currency",
                    kind.as_str()
                )));
            }
        };
        Ok(Self { names, locale, kind, style, fallback, language_style })
    }

    /// The name of a code; `None` when there is none and the code is not to be shown instead.
    ///
    /// # Errors
    /// For a code that is not well-formed.
    pub fn of(&self, code: &str) -> Result<Option<String>, IntlError> {
        let invalid = || IntlError::range(format!("invalid {} code `{}`", self.kind.as_str(), shown(code)));
        let (canonical, name) = match &self.names {
            Names::Language(names) => {
                let locale = parse(code).map_err(|_| invalid())?;
                (locale.to_string(), Some(names.of(&locale).into_owned()))
            }
            Names::Region(names) => {
                let region = Region::try_from_str(code).map_err(|_| invalid())?;
                (region.to_string(), names.of(region).map(str::to_owned))
            }
            Names::Script(names) => {
                let script = Script::try_from_str(code).map_err(|_| invalid())?;
                (script.to_string(), names.of(script).map(str::to_owned))
            }
            Names::Currency => {
                if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                    return Err(invalid());
                }
                let code = code.to_ascii_uppercase();
                let name = self.currency(&code);
                (code, name)
            }
        };
        let name = name.filter(|name| *name != canonical || self.fallback == Fallback::Code);
        Ok(name.or_else(|| (self.fallback == Fallback::Code).then_some(canonical)))
    }

    fn currency(&self, code: &str) -> Option<String> {
        let attributes = DataMarkerAttributes::try_from_str(code).ok()?;
        let locale = CurrencyDisplaynameV1::make_locale(LocalePreferences::from(&self.locale));
        let id = DataIdentifierBorrowed::for_marker_attributes_and_locale(attributes, &locale);
        let response =
            DataProvider::<CurrencyDisplaynameV1>::load(&Baked, DataRequest { id, ..Default::default() });
        Some(response.ok()?.payload.get().to_string())
    }

    #[must_use]
    pub fn resolved_options(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("locale".into(), self.locale.to_string().into());
        fields.insert("style".into(), self.style.as_str().into());
        fields.insert("type".into(), self.kind.as_str().into());
        fields.insert("fallback".into(), self.fallback.as_str().into());
        if self.kind == NameKind::Language {
            fields.insert("languageDisplay".into(), self.language_style.as_str().into());
        }
        Value::Object(fields)
    }
}
