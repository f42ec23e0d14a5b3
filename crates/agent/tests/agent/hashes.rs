//! The hash of a request, made of what was sent and of nothing that the loop keeps.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tgp_agent::TranscriptLineKind;
use tgp_contract::{ChatOptions, canonical};

use crate::support::Fixture;

/// The hash that the line of a turn has, by its definition.
fn request_hash(request: &ChatOptions) -> String {
    let digest = |value: &Value| canonical::hash(&in_digits(value)).unwrap();
    let messages: Vec<String> =
        request.messages.iter().map(|message| digest(&serde_json::to_value(message).unwrap())).collect();
    digest(&json!({
        "model": request.model,
        "limits": { "maxOutputTokens": request.max_output_tokens, "temperature": request.temperature },
        "turn": request.turn,
        "system": digest(&json!(request.system)),
        "tools": digest(&json!(request.tools)),
        "messages": messages,
    }))
}

/// Integers that canonical JSON cannot hold count as their digits.
fn in_digits(value: &Value) -> Value {
    match value {
        Value::Number(_) if canonical::check(value).is_err() => json!(value.to_string()),
        Value::Array(items) => items.iter().map(in_digits).collect(),
        Value::Object(fields) => fields.iter().map(|(name, item)| (name.clone(), in_digits(item))).collect(),
        other => other.clone(),
    }
}

/// Each turn's line has the hash of a request that was sent.
pub(crate) fn check_hashes(world: &Fixture) {
    let sent: BTreeSet<String> = world.requests().iter().map(request_hash).collect();
    let lines = world.lines();
    let hashes = lines.iter().filter_map(|line| match &line.kind {
        TranscriptLineKind::Turn { request, .. } => Some(request),
        _ => None,
    });
    for (turn, hash) in hashes.enumerate() {
        assert!(sent.contains(hash), "turn {turn} was not asked so");
    }
}
