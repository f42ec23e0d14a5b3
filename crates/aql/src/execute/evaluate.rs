//! The value of an expression. It is plain and total: whatever a step has answered, this gives a value or says where
//! and why there is none.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::{Map, Value};
use tgp_contract::{Code, ToolError};

use super::bounds::{self, MAX_TEXT_BYTES, MAX_VALUE_BYTES};
use super::compare::{order, same};
use super::frame::Frame;
use crate::types::{found, names};
use crate::{Comparison, Expression, ExpressionForm, Merge, Part};

type Answer<'f> = Result<Cow<'f, Value>, ToolError>;

/// The value of an expression, as large as may be kept.
pub(super) fn evaluate(expression: &Expression, frame: &Frame<'_>) -> Result<Value, ToolError> {
    let work = Work { frame, left: Cell::new(MAX_VALUE_BYTES) };
    let value = work.value(expression)?;
    let value = work.own(value, expression)?;
    bounds::check(&value).map_err(|error| error.place(&expression.place))?;
    Ok(value)
}

/// The value of an expression that is a text.
pub(super) fn text(expression: &Expression, frame: &Frame<'_>) -> Result<String, ToolError> {
    match evaluate(expression, frame)? {
        Value::String(text) if text.len() <= MAX_TEXT_BYTES => Ok(text),
        Value::String(text) => Err(too_long(expression, text.len())),
        other => Err(unfit(expression, "a text", &other)),
    }
}

/// The value of an expression that is true or false.
pub(super) fn truth(expression: &Expression, frame: &Frame<'_>) -> Result<bool, ToolError> {
    Work { frame, left: Cell::new(MAX_VALUE_BYTES) }.truth(expression)
}

/// Several values in one.
pub(super) fn merge(how: Merge, parts: &[Part], frame: &Frame<'_>) -> Result<Value, ToolError> {
    let work = Work { frame, left: Cell::new(MAX_VALUE_BYTES) };
    let mut values = Vec::with_capacity(parts.len());
    for part in parts {
        let value = work.value(&part.value)?;
        values.push((part, work.own(value, &part.value)?));
    }
    let is_left_out = |value: &Value| value.is_null() && !matches!(how, Merge::Same | Merge::Record);
    let values = values.into_iter().filter(|(_, value)| !is_left_out(value));
    let merged = match how {
        Merge::Same => values.map(|(_, value)| value).next().unwrap_or_default(),
        Merge::Record => Value::Object(values.map(|(part, value)| (part.name.clone(), value)).collect()),
        Merge::Text => {
            let mut texts = Vec::new();
            for (part, value) in values {
                match value {
                    Value::String(text) => texts.push(text),
                    other => return Err(unfit(&part.value, "a text", &other)),
                }
            }
            Value::String(texts.join("\n\n"))
        }
        Merge::List => {
            let mut all = Vec::new();
            for (part, value) in values {
                match value {
                    Value::Array(items) => all.extend(items),
                    other => return Err(unfit(&part.value, "a list", &other)),
                }
            }
            Value::Array(all)
        }
        Merge::Object => {
            let mut all = Map::new();
            for (part, value) in values {
                match value {
                    Value::Object(fields) => all.extend(fields),
                    other => return Err(unfit(&part.value, "an object", &other)),
                }
            }
            Value::Object(all)
        }
    };
    bounds::check(&merged)?;
    Ok(merged)
}

struct Work<'a, 'p> {
    frame: &'a Frame<'p>,
    /// Bytes that may still be copied: one expression can name a large value a thousand times.
    left: Cell<usize>,
}

impl<'f> Work<'f, '_> {
    fn value(&self, expression: &'f Expression) -> Answer<'f> {
        match &expression.form {
            ExpressionForm::Value(value) => Ok(Cow::Borrowed(value)),
            ExpressionForm::Input(index) => known(self.frame.input(*index), expression),
            ExpressionForm::Step { up, index } => known(self.frame.step(*up, *index), expression),
            ExpressionForm::Item { up } => known(self.frame.item(*up), expression),
            ExpressionForm::Field(of, name) => {
                let subject = self.value(of)?;
                self.field(of, subject, name, expression)
            }
            ExpressionForm::Element(of, key) => self.element(of, key, expression),
            ExpressionForm::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    render(&mut text, self.value(part)?.as_ref());
                    if text.len() > MAX_TEXT_BYTES {
                        return Err(too_long(expression, text.len()));
                    }
                }
                Ok(Cow::Owned(Value::String(text)))
            }
            ExpressionForm::List(parts) => {
                let mut items = Vec::with_capacity(parts.len());
                for part in parts {
                    items.push(self.own(self.value(part)?, part)?);
                }
                Ok(Cow::Owned(Value::Array(items)))
            }
            ExpressionForm::Object(parts) => {
                let mut fields = Map::new();
                for (name, part) in parts {
                    fields.insert(name.clone(), self.own(self.value(part)?, part)?);
                }
                Ok(Cow::Owned(Value::Object(fields)))
            }
            ExpressionForm::Or(first, second) => match self.value(first)? {
                value if value.is_null() => self.value(second),
                value => Ok(value),
            },
            ExpressionForm::Compare(how, left, right) => self.compare(*how, left, right),
            ExpressionForm::All(parts) => self.until(parts, false),
            ExpressionForm::Some(parts) => self.until(parts, true),
            ExpressionForm::Not(of) => Ok(Cow::Owned(Value::Bool(!self.truth(of)?))),
            ExpressionForm::Length(of) => {
                let value = self.value(of)?;
                let length = match value.as_ref() {
                    Value::String(text) => text.chars().count(),
                    Value::Array(items) => items.len(),
                    Value::Object(fields) => fields.len(),
                    other => return Err(unfit(of, "a text, a list or an object", other)),
                };
                Ok(Cow::Owned(Value::from(length)))
            }
            ExpressionForm::Join(list, between) => self.join(list, between, expression),
            ExpressionForm::Contains(whole, part) => {
                let (whole_value, part_value) = (self.value(whole)?, self.value(part)?);
                let is_there = match (whole_value.as_ref(), part_value.as_ref()) {
                    (Value::Array(items), sought) => items.iter().any(|item| same(item, sought)),
                    (Value::String(text), Value::String(sought)) => text.contains(sought.as_str()),
                    (Value::String(_), other) => return Err(unfit(part, "a text", other)),
                    (other, _) => return Err(unfit(whole, "a text or a list", other)),
                };
                Ok(Cow::Owned(Value::Bool(is_there)))
            }
        }
    }

    fn own(&self, value: Cow<'f, Value>, expression: &Expression) -> Result<Value, ToolError> {
        let Cow::Borrowed(shared) = value else { return Ok(value.into_owned()) };
        let bytes = bounds::check(shared).map_err(|error| error.place(&expression.place))?;
        let Some(left) = self.left.get().checked_sub(bytes) else {
            let all = MAX_VALUE_BYTES - self.left.get() + bytes;
            return Err(bounds::too_large(all).place(&expression.place));
        };
        self.left.set(left);
        Ok(shared.clone())
    }

    fn truth(&self, expression: &'f Expression) -> Result<bool, ToolError> {
        match self.value(expression)?.as_ref() {
            Value::Bool(truth) => Ok(*truth),
            other => Err(unfit(expression, "true or false", other)),
        }
    }

    /// `and` and `or`: what decides ends it.
    fn until(&self, parts: &'f [Expression], decisive: bool) -> Answer<'f> {
        for part in parts {
            if self.truth(part)? == decisive {
                return Ok(Cow::Owned(Value::Bool(decisive)));
            }
        }
        Ok(Cow::Owned(Value::Bool(!decisive)))
    }

    /// What has no value has no parts either: a field of null is null, so that `??` can replace it.
    fn field(&self, of: &Expression, subject: Cow<'f, Value>, name: &str, whole: &Expression) -> Answer<'f> {
        let part = match subject {
            Cow::Borrowed(Value::Object(fields)) => {
                fields.get(name).map(Cow::Borrowed).ok_or_else(|| fields.clone())
            }
            Cow::Owned(Value::Object(mut fields)) => fields.swap_remove(name).map(Cow::Owned).ok_or(fields),
            Cow::Borrowed(Value::Null) | Cow::Owned(Value::Null) => return Ok(Cow::Owned(Value::Null)),
            other => return Err(unfit(whole, &format!("an object with the field `{name}`"), other.as_ref())),
        };
        match part {
            Ok(value) => Ok(value),
            Err(_) if self.frame.may_miss(of, name) => Ok(Cow::Owned(Value::Null)),
            Err(fields) => {
                let there = if fields.is_empty() { "no fields".to_owned() } else { names(fields.keys()) };
                Err(wrong(whole, format!("there is no field `{name}`: the object has {there}"))
                    .detail("found", found(&Value::Object(fields)))
                    .help("use a field that is there, or have the step answer with this one"))
            }
        }
    }

    fn element(&self, of: &'f Expression, key: &'f Expression, whole: &Expression) -> Answer<'f> {
        let subject = self.value(of)?;
        match self.value(key)?.as_ref() {
            Value::String(name) => self.field(of, subject, name, whole),
            Value::Number(number) => {
                let index = number.as_u64().and_then(|index| usize::try_from(index).ok());
                let length = match subject.as_ref() {
                    Value::Array(items) => items.len(),
                    Value::Null => return Ok(Cow::Owned(Value::Null)),
                    other => return Err(unfit(whole, "a list", other)),
                };
                let item = index.filter(|index| *index < length).and_then(|index| match subject {
                    Cow::Borrowed(Value::Array(items)) => items.get(index).map(Cow::Borrowed),
                    Cow::Owned(Value::Array(mut items)) => Some(Cow::Owned(items.swap_remove(index))),
                    _ => None,
                });
                item.ok_or_else(|| {
                    wrong(
                        whole,
                        format!("there is no element {number}: the list has {length}, counted from 0"),
                    )
                    .detail("found", format!("a list of {length} values"))
                    .help("ask for `length(…)` with `when` before")
                })
            }
            other => Err(unfit(key, "a number or the name of a field", other)),
        }
    }

    fn compare(&self, how: Comparison, left: &'f Expression, right: &'f Expression) -> Answer<'f> {
        let (first, second) = (self.value(left)?, self.value(right)?);
        let holds = match how {
            Comparison::Equal => same(&first, &second),
            Comparison::Different => !same(&first, &second),
            Comparison::In => match second.as_ref() {
                Value::Array(items) => items.iter().any(|item| same(item, &first)),
                other => return Err(unfit(right, "a list", other)),
            },
            Comparison::Less | Comparison::LessOrEqual | Comparison::Greater | Comparison::GreaterOrEqual => {
                let Some(order) = order(&first, &second) else {
                    let (first, second) = (found(&first), found(&second));
                    let message = format!("{first} and {second} have no order");
                    return Err(wrong(left, message)
                        .detail("found", second)
                        .help("compare numbers with numbers and texts with texts"));
                };
                match how {
                    Comparison::Less => order == Ordering::Less,
                    Comparison::LessOrEqual => order != Ordering::Greater,
                    Comparison::Greater => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }
            }
        };
        Ok(Cow::Owned(Value::Bool(holds)))
    }

    fn join(&self, list: &'f Expression, between: &'f Expression, whole: &Expression) -> Answer<'f> {
        let (items, separator) = (self.value(list)?, self.value(between)?);
        let items = match items.as_ref() {
            Value::Array(items) => items,
            other => return Err(unfit(list, "a list", other)),
        };
        let separator = match separator.as_ref() {
            Value::String(text) => text,
            other => return Err(unfit(between, "a text", other)),
        };
        let mut text = String::new();
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push_str(separator);
            }
            render(&mut text, item);
            if text.len() > MAX_TEXT_BYTES {
                return Err(too_long(whole, text.len()));
            }
        }
        Ok(Cow::Owned(Value::String(text)))
    }
}

fn render(text: &mut String, value: &Value) {
    match value {
        Value::String(inner) => text.push_str(inner),
        other => text.push_str(&other.to_string()),
    }
}

fn known<'f>(value: Option<&'f Value>, expression: &Expression) -> Answer<'f> {
    value.map(Cow::Borrowed).ok_or_else(|| {
        ToolError::new(Code::Internal, "a value was asked for that the plan does not give here")
            .place(&expression.place)
    })
}

fn wrong(expression: &Expression, message: String) -> ToolError {
    ToolError::new(Code::Validation, message).place(&expression.place)
}

fn unfit(expression: &Expression, expected: &str, value: &Value) -> ToolError {
    let what = found(value);
    wrong(expression, format!("expected {expected}, found {what}"))
        .detail("expected", expected)
        .detail("found", what)
        .help("say with `as` what the step before answers with, or use `??` where it can be null")
}

fn too_long(expression: &Expression, bytes: usize) -> ToolError {
    wrong(expression, format!("a text of {bytes} bytes is too long: at most {MAX_TEXT_BYTES} are taken"))
        .help("put a part of the value into the text")
}
