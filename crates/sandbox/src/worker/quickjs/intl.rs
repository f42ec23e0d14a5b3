//! The natives of `Intl`. Nothing of it is made before a tool first uses it.
#![expect(clippy::needless_pass_by_value, reason = "the engine hands natives owned values")]

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::{Ctx, Exception, Function, Object, Result};
use serde_json::json;
use tgp_intl::{
    Collator, DateTimeFormat, DisplayNames, IntlError, ListFormat, NumberFormat, PluralSelector,
    RelativeTimeFormat, Segmenter, join,
};

/// Formatters of one kind that a run may keep; a tool that uses more makes the oldest again.
const MAX_KEPT: usize = 16;

/// Formatters by the JSON of their options, the latest used first.
struct Kept<T>(RefCell<Vec<(String, Rc<T>)>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T> Kept<T> {
    fn get(
        &self,
        options: &str,
        make: impl FnOnce(&str) -> std::result::Result<T, IntlError>,
    ) -> std::result::Result<Rc<T>, IntlError> {
        let mut kept = self.0.borrow_mut();
        if let Some(at) = kept.iter().position(|(known, _)| known == options) {
            let entry = kept.remove(at);
            let formatter = Rc::clone(&entry.1);
            kept.insert(0, entry);
            return Ok(formatter);
        }
        let made = Rc::new(make(options)?);
        kept.truncate(MAX_KEPT - 1);
        kept.insert(0, (options.to_owned(), Rc::clone(&made)));
        Ok(made)
    }
}

#[derive(Default)]
struct Formatters {
    numbers: Kept<NumberFormat>,
    dates: Kept<DateTimeFormat>,
    collators: Kept<Collator>,
    plurals: Kept<PluralSelector>,
    lists: Kept<ListFormat>,
    relatives: Kept<RelativeTimeFormat>,
    segmenters: Kept<Segmenter>,
    names: Kept<DisplayNames>,
}

type Answer<T> = std::result::Result<T, IntlError>;

impl Formatters {
    fn number(&self, options: &str) -> Answer<Rc<NumberFormat>> {
        self.numbers.get(options, NumberFormat::new)
    }

    fn date(&self, options: &str) -> Answer<Rc<DateTimeFormat>> {
        self.dates.get(options, DateTimeFormat::new)
    }

    fn list(&self, options: &str) -> Answer<Rc<ListFormat>> {
        self.lists.get(options, ListFormat::new)
    }

    fn plural(&self, options: &str) -> Answer<Rc<PluralSelector>> {
        self.plurals.get(options, PluralSelector::new)
    }

    fn relative(&self, options: &str) -> Answer<Rc<RelativeTimeFormat>> {
        self.relatives.get(options, RelativeTimeFormat::new)
    }

    /// Makes the formatter, or says why it cannot be made.
    fn check(&self, kind: &str, options: &str) -> Answer<()> {
        match kind {
            "number" => self.number(options).map(drop),
            "date" => self.date(options).map(drop),
            "collator" => self.collators.get(options, Collator::new).map(drop),
            "plural" => self.plural(options).map(drop),
            "list" => self.list(options).map(drop),
            "relative" => self.relative(options).map(drop),
            "segmenter" => self.segmenters.get(options, Segmenter::new).map(drop),
            _ => self.names.get(options, DisplayNames::new).map(drop),
        }
    }

    fn resolve(&self, kind: &str, options: &str) -> Answer<String> {
        let resolved = match kind {
            "number" => self.number(options)?.resolved_options(),
            "date" => self.date(options)?.resolved_options(),
            "collator" => self.collators.get(options, Collator::new)?.resolved_options(),
            "plural" => self.plural(options)?.resolved_options(),
            "list" => self.list(options)?.resolved_options(),
            "relative" => self.relative(options)?.resolved_options(),
            "segmenter" => self.segmenters.get(options, Segmenter::new)?.resolved_options(),
            _ => self.names.get(options, DisplayNames::new)?.resolved_options(),
        };
        Ok(resolved.to_string())
    }

    fn segment(&self, options: &str, text: &str) -> Answer<String> {
        let segmenter = self.segmenters.get(options, Segmenter::new)?;
        let ends: Vec<(usize, u8)> =
            segmenter.ends(text)?.into_iter().map(|end| (end.index, u8::from(end.is_word_like))).collect();
        Ok(json!({ "ends": ends, "words": segmenter.has_words() }).to_string())
    }
}

/// Installs what the part `intl` of the prelude calls.
pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set("intl", natives_of(ctx.clone())?)
}

fn thrown<T>(ctx: &Ctx<'_>, answer: Answer<T>) -> Result<T> {
    answer.map_err(|error| match error {
        IntlError::Range(text) => Exception::throw_range(ctx, &text),
        IntlError::Type(text) => Exception::throw_type(ctx, &text),
    })
}

fn texts(json: &str) -> Answer<Vec<String>> {
    serde_json::from_str(json).map_err(|error| IntlError::Type(format!("expected a list of texts: {error}")))
}

fn natives_of(ctx: Ctx<'_>) -> Result<Object<'_>> {
    let natives = super::natives::object(&ctx)?;
    let formatters = Rc::new(Formatters::default());
    let add = |name: &str, function: fn(&Formatters, &str, &str) -> Answer<String>| -> Result<()> {
        let formatters = Rc::clone(&formatters);
        let native = Function::new(ctx.clone(), move |ctx: Ctx<'_>, options: String, input: String| {
            thrown(&ctx, function(&formatters, &options, &input))
        })?;
        natives.set(name, native)
    };
    add("resolve", Formatters::resolve)?;
    add("check", |formatters, kind, options| formatters.check(kind, options).map(|()| String::new()))?;
    add("number", |formatters, options, value| formatters.number(options)?.format(&value.parse()?))?;
    add("numberParts", |formatters, options, value| {
        Ok(json!(formatters.number(options)?.format_to_parts(&value.parse()?)?).to_string())
    })?;
    add("plural", |formatters, options, value| {
        Ok(formatters.plural(options)?.select(&value.parse()?).to_owned())
    })?;
    add("list", |formatters, options, items| Ok(formatters.list(options)?.format(&texts(items)?)))?;
    add("listParts", |formatters, options, items| {
        Ok(json!(formatters.list(options)?.format_to_parts(&texts(items)?)).to_string())
    })?;
    add("segment", Formatters::segment)?;
    add("upperCase", |_, text, locales| tgp_intl::upper_case(text, &texts(locales)?))?;
    add("lowerCase", |_, text, locales| tgp_intl::lower_case(text, &texts(locales)?))?;
    add_with_three(&ctx, &natives, &formatters)?;
    add_lists(&ctx, &natives)?;
    Ok(natives)
}

/// The natives whose arguments are not two texts.
fn add_with_three<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, formatters: &Rc<Formatters>) -> Result<()> {
    let owner = Rc::clone(formatters);
    let date = move |ctx: Ctx<'_>, options: String, time: f64| {
        thrown(&ctx, owner.date(&options).and_then(|date| date.format(time)))
    };
    natives.set("date", Function::new(ctx.clone(), date)?)?;
    let owner = Rc::clone(formatters);
    let parts = move |ctx: Ctx<'_>, options: String, time: f64| {
        let parts = owner.date(&options).and_then(|date| date.format_to_parts(time));
        thrown(&ctx, parts.map(|parts| json!(parts).to_string()))
    };
    natives.set("dateParts", Function::new(ctx.clone(), parts)?)?;
    let owner = Rc::clone(formatters);
    let compare = move |ctx: Ctx<'_>, options: String, left: String, right: String| {
        let collator = owner.collators.get(&options, Collator::new);
        thrown(&ctx, collator.map(|collator| collator.compare(&left, &right) as i32))
    };
    natives.set("compare", Function::new(ctx.clone(), compare)?)?;
    let owner = Rc::clone(formatters);
    let range = move |ctx: Ctx<'_>, options: String, start: String, end: String| {
        let category = owner
            .plural(&options)
            .and_then(|rules| rules.select_range(&start.parse()?, &end.parse()?).map(str::to_owned));
        thrown(&ctx, category)
    };
    natives.set("pluralRange", Function::new(ctx.clone(), range)?)?;
    let owner = Rc::clone(formatters);
    let relative = move |ctx: Ctx<'_>, options: String, value: String, unit: String| {
        let parts =
            owner.relative(&options).and_then(|formatter| formatter.format_to_parts(&value.parse()?, &unit));
        thrown(&ctx, parts.map(|(parts, _)| join(&parts)))
    };
    natives.set("relative", Function::new(ctx.clone(), relative)?)?;
    let owner = Rc::clone(formatters);
    let relative_parts = move |ctx: Ctx<'_>, options: String, value: String, unit: String| {
        let parts =
            owner.relative(&options).and_then(|formatter| formatter.format_to_parts(&value.parse()?, &unit));
        thrown(&ctx, parts.map(|(parts, unit)| json!({ "parts": parts, "unit": unit }).to_string()))
    };
    natives.set("relativeParts", Function::new(ctx.clone(), relative_parts)?)?;
    let owner = Rc::clone(formatters);
    let name = move |ctx: Ctx<'_>, options: String, code: String| {
        thrown(&ctx, owner.names.get(&options, DisplayNames::new).and_then(|names| names.of(&code)))
    };
    natives.set("name", Function::new(ctx.clone(), name)?)
}

/// The natives that take one text.
fn add_lists<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    let add = |name: &str, function: fn(&str) -> Answer<String>| -> Result<()> {
        let native =
            Function::new(ctx.clone(), move |ctx: Ctx<'_>, input: String| thrown(&ctx, function(&input)))?;
        natives.set(name, native)
    };
    add("canonicalLocales", |tags| Ok(json!(tgp_intl::canonical_locales(&texts(tags)?)?).to_string()))?;
    add("supportedLocales", |tags| Ok(json!(tgp_intl::supported_locales(&texts(tags)?)?).to_string()))?;
    add("supportedValues", |key| Ok(json!(tgp_intl::supported_values(key)?).to_string()))?;
    add("maximize", tgp_intl::maximize)?;
    add("minimize", tgp_intl::minimize)
}
