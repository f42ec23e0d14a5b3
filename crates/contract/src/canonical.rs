//! RFC 8785 canonical JSON: the only bytes that are ever hashed.

use std::cmp::Ordering;

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

/// The largest integer that every JSON reader understands exactly.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// Most texts fit into this.
const FIRST_BYTES: usize = 1024;

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    #[error("integer {0} has no exact canonical form; write it as a string")]
    InexactInteger(String),
    #[error("value has no canonical form: {0}")]
    Unrepresentable(#[from] serde_json::Error),
}

/// The canonical text of `value`.
///
/// # Errors
/// When an integer is too large to be written exactly: canonical JSON would round it silently.
pub fn to_string(value: &Value) -> Result<String, CanonicalError> {
    let mut text = Vec::with_capacity(FIRST_BYTES);
    write(&mut text, value)?;
    into_text(text)
}

/// The canonical text of the object that has these fields, each name once.
///
/// # Errors
/// As [`to_string`].
pub fn object_to_string<'a>(
    fields: impl IntoIterator<Item = (&'a str, &'a Value)>,
) -> Result<String, CanonicalError> {
    let mut text = Vec::with_capacity(FIRST_BYTES);
    write_object(&mut text, fields.into_iter().collect())?;
    into_text(text)
}

fn into_text(text: Vec<u8>) -> Result<String, CanonicalError> {
    String::from_utf8(text).map_err(|error| serde_json::Error::io(std::io::Error::other(error)).into())
}

/// Numbers are the library's, which has the algorithm of RFC 8785 for them. Its objects are not: it writes every name and
/// value into a buffer of its own first, and an audit entry took most of its time there.
fn write(text: &mut Vec<u8>, value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => write_number(text, number),
        Value::Array(items) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write(text, item)?;
            }
            text.push(b']');
            Ok(())
        }
        Value::Object(fields) => {
            write_object(text, fields.iter().map(|(name, value)| (name.as_str(), value)).collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(serde_json::to_writer(text, value)?),
    }
}

fn write_object(text: &mut Vec<u8>, mut fields: Vec<(&str, &Value)>) -> Result<(), CanonicalError> {
    fields.sort_unstable_by(|(one, _), (other, _)| by_utf16(one, other));
    text.push(b'{');
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, name)?;
        text.push(b':');
        write(text, value)?;
    }
    text.push(b'}');
    Ok(())
}

/// The order of names: by UTF-16 units, which is that of their bytes unless one has characters beyond U+FFFF.
fn by_utf16(one: &str, other: &str) -> Ordering {
    if one.is_ascii() && other.is_ascii() {
        one.cmp(other)
    } else {
        one.encode_utf16().cmp(other.encode_utf16())
    }
}

fn write_number(text: &mut Vec<u8>, number: &Number) -> Result<(), CanonicalError> {
    let is_safe = number.as_i64().is_some_and(|number| number.unsigned_abs() <= MAX_SAFE_INTEGER);
    if is_safe {
        return Ok(serde_json::to_writer(text, number)?);
    }
    check_number(number)?;
    Ok(serde_json_canonicalizer::to_writer(number, text)?)
}

/// Lower-case hex SHA-256 of the canonical text of `value`.
///
/// # Errors
/// As [`to_string`].
pub fn hash(value: &Value) -> Result<String, CanonicalError> {
    Ok(sha256_hex(to_string(value)?.as_bytes()))
}

/// The same for texts, which always have a canonical form: that of the array of them.
#[must_use]
#[expect(clippy::expect_used, reason = "strings and arrays of strings always have a canonical form")]
pub fn hash_texts(texts: &[&str]) -> String {
    hash(&serde_json::json!(texts)).expect("texts have a canonical form")
}

/// The same for a value that may hold integers beyond 2^53, for which canonical JSON has no exact form. The sorted text of
/// such a value is hashed as a single string, which no other value can be taken for.
#[must_use]
#[expect(clippy::expect_used, reason = "a string always has a canonical form")]
pub fn hash_exact(mut value: Value) -> String {
    hash(&value).unwrap_or_else(|_| {
        value.sort_all_objects();
        hash(&Value::String(value.to_string())).expect("a string has a canonical form")
    })
}

/// Lower-case hex SHA-256 of some bytes.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex of some bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

/// Whether every integer in `value` survives being a double.
///
/// # Errors
/// As [`to_string`].
pub fn check(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => check_number(number),
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Object(fields) => fields.values().try_for_each(check),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

fn check_number(number: &Number) -> Result<(), CanonicalError> {
    if number.is_f64() {
        return Ok(());
    }
    // Every JSON number is a double in canonical form; the integer is exact when its digits survive that.
    let text = number.to_string();
    let double = number.as_f64().unwrap_or(f64::NAN);
    let canonical = serde_json_canonicalizer::to_string(&double)?;
    if canonical == text { Ok(()) } else { Err(CanonicalError::InexactInteger(text)) }
}
