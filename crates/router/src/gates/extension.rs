//! Extension rules: small functions in TypeScript that are asked after the rules of files.

use serde_json::{Value, json};
use tgp_contract::ToolError;
use tgp_policy::{ExtensionVerdict, PolicyRequest};

use super::Predicate;

/// Longer reasons are cut.
const MAX_REASON: usize = 500;

/// Asks one of them. Whatever it does but answer clearly, it denies.
pub(super) async fn ask(extension: &dyn Predicate, question: &PolicyRequest<'_>) -> ExtensionVerdict {
    match extension.decide(document(question)).await {
        Ok(answer) => read(&answer),
        Err(ToolError { message, .. }) => ExtensionVerdict::Failed { reason: cut(&message) },
    }
}

/// What an extension is given.
fn document(question: &PolicyRequest<'_>) -> Value {
    json!({
        "tool": question.tool,
        "effect": question.effect,
        "arguments": question.arguments,
        "targets": question.targets,
        "actor": question.actor,
        "session": question.session,
        "mode": question.mode,
        "state": question.state,
    })
}

/// Nothing, null, true and `'allow'` leave the decision to the others; `'ask'` and `'deny'` tighten it, alone or as
/// `{effect, reason}`.
fn read(answer: &Value) -> ExtensionVerdict {
    let (word, reason) = match answer {
        Value::Null | Value::Bool(true) => return ExtensionVerdict::Pass,
        Value::Bool(false) => ("deny", None),
        Value::String(word) => (word.as_str(), None),
        Value::Object(fields) => (
            fields.get("effect").and_then(Value::as_str).unwrap_or_default(),
            fields.get("reason").and_then(Value::as_str),
        ),
        Value::Number(_) | Value::Array(_) => ("", None),
    };
    let reason = cut(reason.unwrap_or("the extension rule says so"));
    match word {
        "allow" => ExtensionVerdict::Pass,
        "ask" => ExtensionVerdict::Ask { reason },
        "deny" => ExtensionVerdict::Deny { reason },
        _ => ExtensionVerdict::Failed { reason: format!("it answered {}", cut(&answer.to_string())) },
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_REASON).collect()
}
