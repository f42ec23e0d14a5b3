//! What a call is about: those of its arguments that are on its line.

use console::measure_text_width;
use serde_json::Value;

use super::TextStyle;
use crate::text::short_line;

/// Arguments that say what a call is about, in the order in which they are shown, for tools whose first words do not.
const KEYS_BY_TOOL: [(&[&str], &[&str]); 5] = [
    (&["exec_tool"], &["path", "args"]),
    (&["fetch"], &["method", "url"]),
    (&["git_commit", "git.commit"], &["branch", "message"]),
    (&["package_install", "package.install"], &["packages", "directory"]),
    (&["search_grep", "search.grep", "Grep", "search_glob", "search.glob", "Glob"], &["pattern", "path"]),
];
/// For all other tools: the first of these that a call has.
const KEYS: [&str; 11] =
    ["path", "command", "query", "sql", "code", "url", "pattern", "name", "id", "dir", "only"];
/// Arguments that are places. Everything else on the line is shortened first.
const PLACES: [&str; 2] = ["path", "dir"];
/// Columns of a place: longer than any that a person has made.
const MAX_PLACE: usize = 400;
/// Arguments without a known name that are shown, and their longest text.
const MAX_SCALARS: usize = 3;
const MAX_SCALAR: usize = 40;
/// Columns that arguments have, however narrow the terminal or long the rest is.
pub const LEAST_COLUMNS: usize = 16;

/// What a call is about, on one line of about so many columns. A place is whole, even where it is wider than that.
pub fn key_arguments(tool: &str, arguments: &Value, columns: usize, manner: TextStyle) -> String {
    let columns = columns.max(LEAST_COLUMNS);
    let cut = |text: &str| short_line(text, columns, manner.charset.dots());
    let Some(fields) = arguments.as_object() else {
        return match arguments {
            Value::Null => String::new(),
            Value::String(text) => cut(text),
            other => cut(&other.to_string()),
        };
    };
    let by_tool = KEYS_BY_TOOL.iter().find(|(tools, _)| tools.contains(&tool)).map(|(_, keys)| *keys);
    let named = |key: &'static str| fields.get(key).map(|value| (key, word(value)));
    let named: Vec<(&str, String)> = match by_tool {
        Some(keys) => keys.iter().filter_map(|key| named(key)).collect(),
        None => KEYS.iter().find_map(|key| named(key)).into_iter().collect(),
    };
    let named: Vec<(&str, String)> = named.into_iter().filter(|(_, word)| !word.is_empty()).collect();
    if !named.is_empty() {
        return fitted(&named, columns, manner);
    }
    let is_short = |value: &Value| match value {
        Value::String(text) => text.chars().nth(MAX_SCALAR).is_none(),
        Value::Bool(_) | Value::Number(_) => true,
        _ => false,
    };
    let scalars = fields.iter().filter(|(_, value)| is_short(value)).take(MAX_SCALARS);
    let scalars: Vec<String> = scalars.map(|(name, value)| format!("{name}={}", word(value))).collect();
    match scalars.is_empty() {
        false => cut(&scalars.join(" ")),
        true if fields.is_empty() => String::new(),
        true => cut(&arguments.to_string()),
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}

/// Places whole, and the rest in what they leave.
fn fitted(named: &[(&str, String)], columns: usize, manner: TextStyle) -> String {
    let dots = manner.charset.dots();
    let is_place = |key: &str| PLACES.contains(&key);
    let places = named.iter().filter(|(key, _)| is_place(key));
    let places: usize =
        places.map(|(_, word)| measure_text_width(&short_line(word, MAX_PLACE, dots)) + 1).sum();
    let mut left = columns.saturating_sub(places);
    let mut words = Vec::new();
    for (key, word) in named {
        if is_place(key) {
            words.push(short_line(word, MAX_PLACE, dots));
        } else {
            let shown = short_line(word, left.max(LEAST_COLUMNS), dots);
            left = left.saturating_sub(measure_text_width(&shown) + 1);
            words.push(shown);
        }
    }
    words.join(" ")
}
