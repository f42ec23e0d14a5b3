//! RFC 8785 canonical JSON: the only bytes that are ever hashed.

use serde_json::Value;
use sha2::{Digest, Sha256};

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
    check(value)?;
    Ok(serde_json_canonicalizer::to_string(value)?)
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
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether every integer in `value` survives being a double.
///
/// # Errors
/// As [`to_string`].
pub fn check(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) if number.is_f64() => Ok(()),
        Value::Number(number) => {
            // Every JSON number is a double in canonical form; the integer is exact when its digits survive that.
            let text = number.to_string();
            let double = number.as_f64().unwrap_or(f64::NAN);
            let canonical = serde_json_canonicalizer::to_string(&double)?;
            if canonical == text { Ok(()) } else { Err(CanonicalError::InexactInteger(text)) }
        }
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Object(fields) => fields.values().try_for_each(check),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}
