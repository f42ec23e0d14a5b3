//! What the model reads of a result: its JSON, its long texts line by line, bounded, with the lines that the loop adds.

use serde_json::Value;
use tgp_contract::{CallVerdict, Code, TddState, ToolError, ToolResult};
use tgp_text::{head, tail};

use crate::blocks;

/// The most that a model reads of one result: about eight thousand tokens, more than any result needs to be understood.
pub(crate) const MAX_ANSWER_BYTES: usize = 32 << 10;
/// What is left of a result that is no longer new.
const SHORT_BYTES: usize = 240;
/// Arguments in one line of a summary.
const KEY_ARGUMENT_BYTES: usize = 100;
/// The arguments that say most about a call, in the order in which they do.
const KEY_ARGUMENTS: [&str; 10] =
    ["path", "file", "pattern", "query", "command", "statement", "sql", "url", "only", "id"];

/// What a model reads of a result.
pub(crate) struct Answer<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    /// Whether the arguments end where the model's answer was cut off.
    pub(crate) is_cut: bool,
    pub(crate) result: &'a ToolResult,
    pub(crate) verdict: CallVerdict,
    /// Whether it ran and what it wanted to change was refused.
    pub(crate) unapplied: bool,
    pub(crate) before: TddState,
    pub(crate) after: TddState,
    /// How often this very call has failed so, this time included.
    pub(crate) failures: u32,
    /// Bytes for the result itself.
    pub(crate) room: usize,
}

impl Answer<'_> {
    pub(crate) fn text(&self) -> String {
        // A text where an object was wanted: the router's complaint would repeat it, and the model has it already.
        let (raw, body) = match (self.arguments, self.result.error()) {
            (Value::String(raw), Some(error)) if error.code == Code::Validation => {
                let tool = one_line(self.tool, KEY_ARGUMENT_BYTES);
                let message = format!("the arguments of `{tool}` are a text and no JSON object");
                let error = ToolError::new(Code::Validation, message)
                    .help("write the arguments as one JSON object, in the form that the tool's schema says");
                (Some(raw), json_of(&ToolResult::Failed(error)))
            }
            _ => (None, blocks::render(self.result, self.room, self.id)),
        };
        let mut lines: Vec<String> = self.not_executed().map(str::to_owned).into_iter().collect();
        lines.push(body);
        lines.extend(raw.filter(|_| !self.is_cut).map(|raw| fault_of(raw)));
        if self.before != self.after {
            lines.push(format!("[tdd: {} -> {}]", self.before.as_str(), self.after.as_str()));
        }
        if self.failures == 2 {
            lines.push(
                "[this very call has failed twice in the same way; once more ends the session. Change something first]"
                    .to_owned(),
            );
        }
        lines.join("\n")
    }

    /// What a call that did not happen begins with, so that it is not taken for one that failed half-way.
    fn not_executed(&self) -> Option<&'static str> {
        Some(match self.verdict {
            CallVerdict::Denied | CallVerdict::Refused if self.unapplied => {
                "rolled back: this call ran, but a gate denied its changes, so none of them was kept"
            }
            CallVerdict::Denied => "not executed: a gate denied this call",
            CallVerdict::Refused => "not executed: this call was refused before it began",
            CallVerdict::Invalid if self.is_cut => {
                "not executed: your answer was cut off at its output limit, so this call, its last one, is incomplete; make it again in smaller pieces"
            }
            CallVerdict::Invalid => "not executed: this call is not valid",
            CallVerdict::Allowed
            | CallVerdict::Approved
            | CallVerdict::Cancelled
            | CallVerdict::Recovered => return None,
        })
    }
}

pub(crate) fn json_of(result: &ToolResult) -> String {
    serde_json::to_string(result).unwrap_or_default()
}

/// Where arguments stop being JSON.
fn fault_of(written: &str) -> String {
    match serde_json::from_str::<Value>(written) {
        Ok(_) => {
            "[the arguments are a text; give the JSON object itself, not a text that holds one]".to_owned()
        }
        Err(error) if error.line() == 0 => format!("[the arguments are no JSON: {error}]"),
        Err(error) => format!(
            "[the arguments are no JSON: they break at line {}, column {}]",
            error.line(),
            error.column()
        ),
    }
}

/// The beginning and the end of a long text, and how to read what lies between.
pub(crate) fn bounded(text: &str, room: usize, id: &str) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let (start, end) = ends(text, room);
    let left_out = text.len() - start.len() - end.len();
    format!(
        "{start}\n[{left_out} of {} bytes are left out here; recall {{\"id\": \"{id}\", \"offset\": {}}} reads them]\n{end}",
        text.len(),
        start.len()
    )
}

/// What is left of an answer once newer ones matter more; nothing when it is short already.
pub(crate) fn shortened(content: &str, id: &str) -> Option<String> {
    if content.len() <= SHORT_BYTES * 2 {
        return None;
    }
    let start = head(content, SHORT_BYTES);
    Some(format!(
        "{start}\n[shortened from {} bytes; recall {{\"id\": \"{id}\"}} reads it again]",
        content.len()
    ))
}

/// Arguments of a call that has ended, with their long texts cut; nothing when none is long. Their shape stays, so that
/// they still are what the tool takes.
pub(crate) fn shortened_arguments(arguments: &Value, id: &str) -> Option<Value> {
    match arguments {
        Value::String(text) if text.len() > SHORT_BYTES * 2 => {
            let start = head(text, SHORT_BYTES);
            Some(Value::String(format!(
                "{start}\n[shortened here from {} bytes; the call had all of them, and a file that it wrote can be read again; recall {{\"id\": \"{id}\"}} reads the call's result]",
                text.len()
            )))
        }
        Value::Array(items) => {
            let short: Vec<Option<Value>> = items.iter().map(|item| shortened_arguments(item, id)).collect();
            let whole = |(item, short): (&Value, Option<Value>)| short.unwrap_or_else(|| item.clone());
            short.iter().any(Option::is_some).then(|| items.iter().zip(short).map(whole).collect())
        }
        Value::Object(fields) => {
            let mut changed = fields.clone();
            let mut is_changed = false;
            for (name, value) in fields {
                if let Some(short) = shortened_arguments(value, id) {
                    changed.insert(name.clone(), short);
                    is_changed = true;
                }
            }
            is_changed.then_some(Value::Object(changed))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// A call in one line, for a conversation that no longer holds it.
pub(crate) fn call_line(
    step: u64,
    id: &str,
    tool: &str,
    arguments: &Value,
    error: Option<&ToolError>,
) -> String {
    let shown = key_argument(arguments).map(|(name, value)| format!(" {name}={value}")).unwrap_or_default();
    let outcome = error.map_or("ok", |error| error.code.as_str());
    format!("- step {step}: {id} {}{shown}: {outcome}", one_line(tool, KEY_ARGUMENT_BYTES))
}

/// A call by its id, its tool and what it is about, such as `r3.1 fs_write one.txt`.
pub(crate) fn call_words(id: &str, tool: &str, arguments: &Value) -> String {
    let shown = key_argument(arguments).map(|(_, value)| format!(" {value}")).unwrap_or_default();
    format!("{id} {}{shown}", one_line(tool, KEY_ARGUMENT_BYTES))
}

/// The argument that says most about a call, in one line.
fn key_argument(arguments: &Value) -> Option<(&'static str, String)> {
    let (name, value) = KEY_ARGUMENTS.iter().find_map(|name| Some((*name, arguments.get(name)?)))?;
    let words = match value {
        Value::String(text) => one_line(text, KEY_ARGUMENT_BYTES),
        value => one_line(&value.to_string(), KEY_ARGUMENT_BYTES),
    };
    Some((name, words))
}

/// The text in one line, cut where it is too long.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = head(text, most.saturating_mul(4)).split_whitespace().collect();
    let line: String = words.join(" ").chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
    let start = head(&line, most);
    if start.len() < line.len() || text.len() > most.saturating_mul(4) { format!("{start}…") } else { line }
}

/// The beginning and the end of a text that is longer than `room`; the beginning says more.
pub(crate) fn ends(text: &str, room: usize) -> (&str, &str) {
    (head(text, room / 4 * 3), tail(text, room / 4))
}
