//! JSON values as AQL writes them.

use serde_json::Value;

/// The value as an expression. Whatever a text holds, it is a text and no hole.
pub(super) fn expression(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(expression).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(_) => object(value),
        other => other.to_string(),
    }
}

/// The fields of an object in braces; of anything else none.
pub(super) fn object(value: &Value) -> String {
    let fields = value.as_object().into_iter().flatten();
    let fields: Vec<String> =
        fields.map(|(name, value)| format!("{}: {}", quoted(name), expression(value))).collect();
    format!("{{ {} }}", fields.join(", "))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '{' => quoted.push_str("\\{"),
            ' '..='~' => quoted.push(letter),
            other => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(other))),
        }
    }
    quoted.push('"');
    quoted
}
