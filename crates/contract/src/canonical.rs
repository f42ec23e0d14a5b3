//! RFC 8785 canonical JSON: the only bytes that are ever hashed.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Beyond this magnitude a JSON number no longer names one integer, so it would be rounded without a word.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

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
/// When an integer is beyond 2^53.
pub fn to_string(value: &Value) -> Result<String, CanonicalError> {
    refuse_inexact_integers(value)?;
    Ok(serde_json_canonicalizer::to_string(value)?)
}

/// Lower-case hex SHA-256 of the canonical text of `value`.
///
/// # Errors
/// As [`to_string`].
pub fn hash(value: &Value) -> Result<String, CanonicalError> {
    Ok(sha256_hex(to_string(value)?.as_bytes()))
}

/// Lower-case hex SHA-256 of some bytes.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn refuse_inexact_integers(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => {
            let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            match magnitude {
                Some(magnitude) if magnitude > MAX_EXACT_INTEGER => {
                    Err(CanonicalError::InexactInteger(number.to_string()))
                }
                _ => Ok(()),
            }
        }
        Value::Array(items) => items.iter().try_for_each(refuse_inexact_integers),
        Value::Object(fields) => fields.values().try_for_each(refuse_inexact_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}
