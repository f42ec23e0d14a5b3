//! Values that leave the sandbox, as JSON: results of tools and arguments of `tgp.*` calls.
//!
//! What JSON cannot hold is refused with its path, where `JSON.stringify` would write `{}` or `null` for it. The walk is
//! native, so that nothing a tool puts in the place of a built-in changes what is read.

use std::ffi::c_void;
use std::fmt::Write as _;
use std::rc::Rc;

use rquickjs::object::Filter;
use rquickjs::{Array, Atom, Ctx, Error, Exception, Function, Object, Result, String as JsString, Value};

use super::value_kinds::{Bytes, Special, bytes_of, is_list, json_text, shown_key, special};
use crate::worker::host::Host;

/// Lists and objects inside each other. The kernel's parser takes 128 levels, its own around the value included.
const MAX_DEPTH: usize = 100;

/// Characters of a path in a message.
const LONGEST_PATH: usize = 80;

/// What a parameter of a statement may be in addition to JSON.
const BYTES_KEY: &str = "$base64";
const BIGINT_KEY: &str = "$bigint";
const DATE_KEY: &str = "$date";

/// What a value may be where it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// JSON only.
    Json,
    /// The parameters of a statement: its elements may be bytes, dates and integers of any size, and none is missing.
    Parameters,
    Parameter,
}

/// The arguments of the functions of `tgp`, by name. What is not listed has the names of its positions.
const ARGUMENTS: [(&str, &[(&str, Place)]); 9] = [
    ("read_file", &[("path", Place::Json), ("encoding", Place::Json)]),
    ("write_file", &[("path", Place::Json), ("content", Place::Json)]),
    ("list_files", &[("directory", Place::Json)]),
    ("exec_tool", &[("path", Place::Json), ("args", Place::Json)]),
    ("exec_sql", &[("sql", Place::Json), ("params", Place::Parameters), ("options", Place::Json)]),
    ("query", &[("sql", Place::Json), ("params", Place::Parameters), ("options", Place::Json)]),
    ("fetch", &[("request", Place::Json)]),
    ("call_upstream", &[("server", Place::Json), ("tool", Place::Json), ("args", Place::Json)]),
    ("call_host", &[("module", Place::Json), ("name", Place::Json), ("args", Place::Json)]),
];

pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, host: &Rc<Host>) -> Result<()> {
    let owner = Rc::clone(host);
    natives.set(
        "resultJson",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, value: Value<'js>| result_json(&ctx, value, &owner))?,
    )?;
    let owner = Rc::clone(host);
    natives.set(
        "argumentsJson",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>, name: String, values: Array<'js>, dates: Function<'js>| {
                arguments_json(&ctx, &name, &values, dates, &owner)
            },
        )?,
    )
}

/// The result of a tool. No result is `null`.
fn result_json<'js>(ctx: &Ctx<'js>, value: Value<'js>, host: &Host) -> Result<String> {
    if value.is_undefined() {
        return Ok("null".to_owned());
    }
    let mut encoder = Encoder::new(ctx, host);
    match encoder.write(value, Place::Json) {
        Ok(()) => Ok(encoder.text),
        Err(Refusal::Thrown(error)) => Err(error),
        Err(Refusal::TooLarge) => {
            let cap = encoder.cap;
            host.violate(format!("the result has more bytes than the output cap of {cap}"));
            Err(Exception::throw_range(ctx, "the result is too large"))
        }
        Err(Refusal::Value(refused)) => {
            let text = match refused.path().as_str() {
                "" => format!("a tool's result must be JSON, not {}", refused.sentence("", "return")),
                path => {
                    format!("a tool's result must be JSON: {}", refused.sentence(path, "return"))
                }
            };
            Err(Exception::throw_type(ctx, &text))
        }
    }
}

/// The list of a call's arguments. A missing one is `null`, which the kernel reads as missing.
fn arguments_json<'js>(
    ctx: &Ctx<'js>,
    function: &str,
    values: &Array<'js>,
    dates: Function<'js>,
    host: &Host,
) -> Result<String> {
    let known = ARGUMENTS.iter().find(|(name, _)| *name == function);
    let names = known.map_or(&[][..], |(_, names)| names);
    let mut encoder = Encoder { dates: Some(dates), ..Encoder::new(ctx, host) };
    encoder.text.push('[');
    for at in 0..values.len() {
        if at > 0 {
            encoder.text.push(',');
        }
        let value: Value<'js> = values.get(at)?;
        if value.is_undefined() {
            encoder.text.push_str("null");
            continue;
        }
        let (name, place) = names.get(at).copied().unwrap_or(("argument", Place::Json));
        match encoder.write(value, place) {
            Ok(()) => {}
            Err(Refusal::Thrown(error)) => return Err(error),
            Err(Refusal::TooLarge) => {
                host.violate(format!("the arguments of `{function}` are larger than the output cap"));
                return Err(Exception::throw_range(ctx, "the arguments are too large"));
            }
            Err(Refusal::Value(refused)) => {
                let path = format!("{name}{}", refused.path());
                let text = format!("tgp.{function}: {}", refused.sentence(&path, "pass"));
                return Err(Exception::throw_type(ctx, &text));
            }
        }
    }
    encoder.text.push(']');
    Ok(encoder.text)
}

/// Why a value cannot leave.
enum Refusal {
    Value(Box<RefusedValue>),
    TooLarge,
    /// A getter or `toJSON` of the tool threw.
    Thrown(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Thrown(error)
    }
}

struct RefusedValue {
    what: String,
    /// With `{}` for the name of the value; begins after `return` or `pass`.
    advice: &'static str,
    /// From the inside out.
    path: Vec<String>,
}

impl RefusedValue {
    /// The whole path, or the end of a long one: the engine cuts its messages off.
    fn path(&self) -> String {
        let path: String = self.path.iter().rev().map(String::as_str).collect();
        match path.char_indices().rev().nth(LONGEST_PATH) {
            Some((at, _)) => format!("…{}", path.get(at..).unwrap_or_default()),
            None => path,
        }
    }

    /// `.total is a bigint: return String(total)`.
    fn sentence(&self, path: &str, verb: &str) -> String {
        let last = self.path.first().and_then(|last| last.strip_prefix('.')).unwrap_or("value");
        let advice = self.advice.replace("{}", last);
        let subject = if path.is_empty() { String::new() } else { format!("{path} is ") };
        format!("{subject}{}: {verb} {advice}", self.what)
    }
}

fn refused(what: impl Into<String>, advice: &'static str) -> Refusal {
    Refusal::Value(Box::new(RefusedValue { what: what.into(), advice, path: Vec::new() }))
}

/// Adds a step to the path of a refusal on its way out.
fn within(refusal: Refusal, step: impl FnOnce() -> String) -> Refusal {
    match refusal {
        Refusal::Value(mut refused) => {
            refused.path.push(step());
            Refusal::Value(refused)
        }
        other => other,
    }
}

type Written = std::result::Result<(), Refusal>;

struct Encoder<'a, 'js> {
    ctx: &'a Ctx<'js>,
    text: String,
    cap: usize,
    /// The lists and objects around the value that is being written.
    ancestors: Vec<*mut c_void>,
    /// The ISO text of a date, as the engine has it.
    dates: Option<Function<'js>>,
}

impl<'a, 'js> Encoder<'a, 'js> {
    fn new(ctx: &'a Ctx<'js>, host: &Host) -> Self {
        let cap = usize::try_from(host.output_bytes.get()).unwrap_or(usize::MAX);
        Self { ctx, text: String::new(), cap, ancestors: Vec::new(), dates: None }
    }

    fn write(&mut self, value: Value<'js>, place: Place) -> Written {
        if self.text.len() > self.cap {
            return Err(Refusal::TooLarge);
        }
        if let Some(number) = value.as_int() {
            // Writing to a text cannot fail.
            let _ = write!(self.text, "{number}");
        } else if let Some(number) = value.as_float() {
            self.number(number)?;
        } else if let Some(text) = value.as_string() {
            self.string(text)?;
        } else if let Some(flag) = value.as_bool() {
            self.text.push_str(if flag { "true" } else { "false" });
        } else if value.is_null() {
            self.text.push_str("null");
        } else if value.is_undefined() {
            return Err(match place {
                // Without it the statement would have a parameter without a value.
                Place::Parameter => {
                    refused("undefined", "null instead for an SQL NULL, or see why it has no value")
                }
                Place::Json | Place::Parameters => refused("undefined", "null instead, or leave it out"),
            });
        } else if value.is_symbol() {
            return Err(refused("a symbol", "{}.description"));
        } else {
            return self.composite(value, place);
        }
        if self.text.len() > self.cap { Err(Refusal::TooLarge) } else { Ok(()) }
    }

    fn string(&mut self, text: &JsString<'js>) -> Written {
        let room = self.cap.saturating_sub(self.text.len());
        if json_text(&mut self.text, text, room)? { Ok(()) } else { Err(Refusal::TooLarge) }
    }

    fn number(&mut self, number: f64) -> Written {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        const LONGEST_DIGITS: f64 = 1e21;
        if !number.is_finite() {
            let what = if number.is_nan() { "NaN" } else { "infinite" };
            return Err(refused(what, "null or a string in its place"));
        }
        let _ = if number.fract() == 0.0 && number.abs() < EXACT {
            write!(self.text, "{}", number as i64)
        } else if number.fract() == 0.0 && number.abs() < LONGEST_DIGITS {
            write!(self.text, "{number:.0}")
        } else {
            write!(self.text, "{number:?}")
        };
        Ok(())
    }

    /// Objects, functions and integers of any size: what may have a `toJSON`.
    fn composite(&mut self, value: Value<'js>, place: Place) -> Written {
        if place == Place::Parameter && self.parameter(&value)? {
            return Ok(());
        }
        if let Some(bytes) = bytes_of(&value) {
            return Err(match bytes {
                Bytes::Octets { name, .. } => refused(name, "Buffer.from({}).toString('base64')"),
                Bytes::Numbers(name) => refused(name, "[...{}]"),
            });
        }
        let value = match self.to_json(&value)? {
            // What it gives is written as it is, without another `toJSON`.
            Some(Converted::Invalid) => return Err(refused("an invalid Date", "null instead")),
            Some(Converted::Value(json)) if json.is_undefined() => {
                return Err(refused(
                    "an object whose toJSON gives undefined",
                    "null instead, or leave it out",
                ));
            }
            Some(Converted::Value(json)) if !json.is_object() && !json.is_big_int() => {
                return self.write(json, Place::Json);
            }
            Some(Converted::Value(json)) => json,
            None => value,
        };
        if value.is_big_int() {
            return Err(refused("a bigint", "String({})"));
        }
        if value.is_function() {
            return Err(refused("a function", "what it computes"));
        }
        match special(&value) {
            Some(Special::Map) => return Err(refused("a Map", "Object.fromEntries({})")),
            Some(Special::Set) => return Err(refused("a Set", "[...{}]")),
            Some(Special::Promise) => return Err(refused("a Promise", "await {}")),
            Some(Special::Error) => return Err(refused("an Error", "{}.message")),
            Some(Special::RegExp) => return Err(refused("a RegExp", "{}.source")),
            Some(Special::Boxed) => return Err(refused("a boxed primitive", "{}.valueOf()")),
            Some(Special::Date) | None => {}
        }
        let Some(object) = value.as_object() else {
            return Err(refused(format!("a {}", value.type_name()), "a value of JSON"));
        };
        // SAFETY: the value is an object, and the pointer is only compared.
        let identity = unsafe { rquickjs::qjs::JS_VALUE_GET_PTR(value.as_raw()) };
        if self.ancestors.contains(&identity) {
            return Err(refused("an object that contains itself", "a copy without the cycle"));
        }
        if self.ancestors.len() >= MAX_DEPTH {
            let what = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(refused(what, "a flatter value"));
        }
        let Some(is_list) = is_list(&value) else {
            return Err(refused("a proxy of more than 8 proxies", "a copy such as {...{}} or [...{}]"));
        };
        self.ancestors.push(identity);
        let inner = if place == Place::Parameters { Place::Parameter } else { Place::Json };
        let written = if is_list { self.list(object, inner) } else { self.object(object, inner) };
        self.ancestors.pop();
        written
    }

    /// Writes bytes, dates and integers as the parameters of a statement carry them. False for everything else.
    fn parameter(&mut self, value: &Value<'js>) -> std::result::Result<bool, Refusal> {
        if value.is_big_int() {
            let Some(digits) = sixty_four_bits(self.ctx, value)? else {
                return Err(refused("a bigint beyond 64 bits", "String({})"));
            };
            let _ = write!(self.text, "{{\"{BIGINT_KEY}\":\"{digits}\"}}");
            return Ok(true);
        }
        if let Some(Special::Date) = special(value) {
            let Some(dates) = self.dates.clone() else { return Ok(false) };
            let iso: Option<String> = dates.call((value.clone(),))?;
            let Some(iso) = iso else { return Err(refused("an invalid Date", "null instead")) };
            let _ = write!(self.text, "{{\"{DATE_KEY}\":\"{iso}\"}}");
            return Ok(true);
        }
        match bytes_of(value) {
            Some(Bytes::Octets { content, .. }) => {
                use base64::Engine as _;
                let room = self.cap.saturating_sub(self.text.len());
                if content.len() > room {
                    return Err(Refusal::TooLarge);
                }
                let encoded = base64::engine::general_purpose::STANDARD.encode(content);
                let _ = write!(self.text, "{{\"{BYTES_KEY}\":\"{encoded}\"}}");
                Ok(true)
            }
            Some(Bytes::Numbers(name)) => {
                Err(refused(name, "[...{}] for its numbers, or new Uint8Array({}.buffer) for its bytes"))
            }
            None => Ok(false),
        }
    }

    /// What `toJSON` makes of a value, if it has one.
    fn to_json(&self, value: &Value<'js>) -> std::result::Result<Option<Converted<'js>>, Refusal> {
        let method: Value<'js> = if let Some(object) = value.as_object() {
            object.get("toJSON")?
        } else {
            // Integers of any size have no own properties, but packages give their prototype this one.
            let prototype: Option<Object<'js>> =
                self.ctx.globals().get::<_, Option<Object<'js>>>("BigInt").ok().flatten();
            match prototype.and_then(|class| class.get::<_, Object<'js>>("prototype").ok()) {
                Some(prototype) => prototype.get("toJSON")?,
                None => return Ok(None),
            }
        };
        let Some(method) = method.as_function() else { return Ok(None) };
        let json: Value<'js> = method.call((rquickjs::function::This(value.clone()), ""))?;
        let is_invalid = json.is_null() && matches!(special(value), Some(Special::Date));
        Ok(Some(if is_invalid { Converted::Invalid } else { Converted::Value(json) }))
    }

    fn list(&mut self, list: &Object<'js>, place: Place) -> Written {
        self.text.push('[');
        let length: f64 = list.get("length")?;
        let mut at: u32 = 0;
        while f64::from(at) < length {
            if at > 0 {
                self.text.push(',');
            }
            let value: Value<'js> = list.get(at)?;
            self.write(value, place).map_err(|refusal| within(refusal, || format!("[{at}]")))?;
            at += 1;
        }
        self.text.push(']');
        Ok(())
    }

    fn object(&mut self, object: &Object<'js>, place: Place) -> Written {
        self.text.push('{');
        let mut is_first = true;
        let mut is_empty = true;
        for key in object.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
            let key = key?;
            is_empty = false;
            let value: Value<'js> = object.get(key.clone())?;
            // As in JSON, a field without a value is no field. A parameter without one would be another value.
            if value.is_undefined() && place == Place::Json {
                continue;
            }
            if !is_first {
                self.text.push(',');
            }
            is_first = false;
            let name = key.to_js_string()?;
            self.string(&name)?;
            self.text.push(':');
            self.write(value, place).map_err(|refusal| within(refusal, || shown_key(&name)))?;
        }
        if is_empty && let Some(class) = self.foreign_class(object) {
            return Err(refused(class, "its values as a plain object"));
        }
        self.text.push('}');
        Ok(())
    }

    /// The name of the class of an object whose state is not in its properties: a Response, an iterator, a WeakMap.
    fn foreign_class(&self, object: &Object<'js>) -> Option<String> {
        let prototype = object.get_prototype()?;
        let plain = Object::new(self.ctx.clone()).ok()?.get_prototype()?;
        if prototype == plain {
            return None;
        }
        let class =
            object.get::<_, Object<'js>>("constructor").and_then(|class| class.get::<_, String>("name"));
        match class {
            Ok(name) if !name.is_empty() => {
                Some(format!("a {} without properties of its own", tgp_text::head(&name, 60)))
            }
            _ => {
                // A getter may have thrown.
                self.ctx.catch();
                Some("an object without properties of its own".to_owned())
            }
        }
    }
}

enum Converted<'js> {
    Value(Value<'js>),
    /// A date that is none.
    Invalid,
}

/// The digits of an integer that fits in 64 bits, with or without a sign.
fn sixty_four_bits<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Option<String>> {
    // SAFETY: the value lives as long as the context, and the text is owned by what is made of it.
    let text = unsafe {
        let raw = rquickjs::qjs::JS_ToString(ctx.as_raw().as_ptr(), value.as_raw());
        Value::from_raw(ctx.clone(), raw)
    };
    let Some(digits) = text.as_string() else { return Err(Error::Exception) };
    let digits = digits.to_string()?;
    let fits = digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok();
    Ok(fits.then_some(digits))
}
