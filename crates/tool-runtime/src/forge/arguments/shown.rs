//! Values, places and types in the words of a message.

use serde_json::Value;
use tgp_contract::{DeclaredObject, DeclaredType, DeclaredTypes};
use tgp_text::truncate;

use super::Step;

/// Bytes of a text or a name that a message shows.
const MAX_TEXT_BYTES: usize = 40;

/// Levels of a type that are spelled out. Types may mention themselves.
const MAX_LEVELS: usize = 8;

/// Members of a type that are spelled out at one level.
const MAX_MEMBERS: usize = 24;

/// Steps of a place that are spelled out at its end.
const MAX_STEPS: usize = 24;

/// `.items[2].price`, or `the argument` for the whole.
pub(super) fn path_of(steps: &[Step<'_>]) -> String {
    if steps.is_empty() {
        return "the argument".to_owned();
    }
    let mut text = String::new();
    let skipped = steps.len().saturating_sub(MAX_STEPS);
    if skipped > 0 {
        text.push('…');
    }
    for step in steps.iter().skip(skipped) {
        match step {
            Step::Index(at) => text.push_str(&format!("[{at}]")),
            Step::Field(name) if is_name(name) => text.push_str(&format!(".{name}")),
            Step::Field(name) => text.push_str(&format!("[{}]", quoted(name))),
        }
    }
    text
}

fn is_name(name: &str) -> bool {
    let is_short = !name.is_empty() && name.len() <= MAX_TEXT_BYTES;
    is_short
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '$'))
}

/// A text as JSON writes it, so that none of it can be taken for something else.
fn quoted(text: &str) -> String {
    Value::from(truncate(text, MAX_TEXT_BYTES).into_owned()).to_string()
}

/// A plain value as JSON writes it, cut off where it is long.
pub(super) fn literal(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), quoted)
}

/// What a value is: `a string`, or the value itself where others were declared.
pub(super) fn kind(types: &DeclaredTypes, declared: &DeclaredType, value: &Value) -> String {
    let is_constant = |ty: &DeclaredType| matches!(types.resolve(ty), DeclaredType::Literal(_));
    let has_constants = match types.resolve(declared) {
        DeclaredType::OneOf(options) => options.iter().any(is_constant),
        ty => is_constant(ty),
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) if has_constants => quoted(text),
        Value::Bool(_) | Value::Number(_) if has_constants => value.to_string(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(items) if matches!(types.resolve(declared), DeclaredType::Tuple { .. }) => {
            format!("a list of {}", items.len())
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// A type as TypeScript writes it, cut off where it is long.
pub(super) fn spell(types: &DeclaredTypes, ty: &DeclaredType, bytes: usize) -> String {
    let mut text = String::new();
    Spelling { types, text: &mut text, most: bytes }.write(ty, 0);
    truncate(&text, bytes).into_owned()
}

struct Spelling<'t> {
    types: &'t DeclaredTypes,
    text: &'t mut String,
    /// Nothing is added to a text that is longer.
    most: usize,
}

impl Spelling<'_> {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn write(&mut self, ty: &DeclaredType, level: usize) {
        if self.text.len() > self.most || level > MAX_LEVELS {
            return self.add("…");
        }
        let level = level + 1;
        match self.types.resolve(ty) {
            DeclaredType::Any | DeclaredType::Named(_) => self.add("unknown"),
            DeclaredType::String => self.add("string"),
            DeclaredType::Number => self.add("number"),
            DeclaredType::Boolean => self.add("boolean"),
            DeclaredType::Null => self.add("null"),
            DeclaredType::Absent => self.add("undefined"),
            DeclaredType::Date => self.add("Date (as text)"),
            DeclaredType::Literal(Value::String(text)) => self.add(&quoted(text)),
            DeclaredType::Literal(value) => self.add(&value.to_string()),
            DeclaredType::List(item) => {
                let is_union = matches!(self.types.resolve(item), DeclaredType::OneOf(_));
                self.add(if is_union { "(" } else { "" });
                self.write(item, level);
                self.add(if is_union { ")[]" } else { "[]" });
            }
            DeclaredType::Tuple { items, rest, .. } => {
                self.add("[");
                self.join(items, ", ", level);
                if let Some(rest) = rest {
                    self.add(if items.is_empty() { "..." } else { ", ..." });
                    self.write(rest, level);
                    self.add("[]");
                }
                self.add("]");
            }
            DeclaredType::Object(object) => self.object(object, level),
            DeclaredType::OneOf(options) if options.is_empty() => self.add("never"),
            DeclaredType::OneOf(options) => self.join(options, " | ", level),
            DeclaredType::AllOf(parts) => self.join(parts, " & ", level),
        }
    }

    fn join(&mut self, types: &[DeclaredType], between: &str, level: usize) {
        for (at, ty) in types.iter().take(MAX_MEMBERS).enumerate() {
            self.add(if at > 0 { between } else { "" });
            self.write(ty, level);
        }
        if types.len() > MAX_MEMBERS {
            self.add(between);
            self.add("…");
        }
    }

    fn object(&mut self, object: &DeclaredObject, level: usize) {
        self.add("{ ");
        let mut between = "";
        for (name, field) in object.fields.iter().take(MAX_MEMBERS) {
            self.add(between);
            between = "; ";
            self.add(&if is_name(name) { name.clone() } else { quoted(name) });
            self.add(if field.optional { "?: " } else { ": " });
            self.write(&field.ty, level);
        }
        if object.fields.len() > MAX_MEMBERS {
            self.add("; …");
        }
        if let Some(others) = &object.others {
            self.add(between);
            self.add("[name: string]: ");
            self.write(others, level);
        }
        self.add(" }");
    }
}
