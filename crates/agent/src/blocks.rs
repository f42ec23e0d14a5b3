//! Long texts of a result, shown line by line below its JSON: escapes cost tokens and hide structure.
//!
//! Where a text is cut, the line there says where it continues in the result's own JSON, by which `recall`
//! counts.

use serde_json::{Map, Value};
use tgp_contract::ToolResult;

use crate::render::{bounded, ends, json_of};

/// A shorter text is as easily read in its JSON.
const MIN_TEXT_BYTES: usize = 80;
/// Characters that JSON would escape; with fewer its JSON is as good.
const MIN_ESCAPES: usize = 4;
/// Texts of one result that are shown so. Tools answer two or three.
const MAX_BLOCKS: usize = 8;
/// What a name may have, so that it fits into a line and cannot be mistaken for anything else.
const MAX_NAME_BYTES: usize = 40;
/// The longest run of backticks that a fence goes round; a text with a longer one was made to break out.
pub(crate) const MAX_BACKTICKS: usize = 16;
/// The least fence that a reader takes for one.
pub(crate) const MIN_FENCE: usize = 3;
/// Name, fences and the line about what is left out, of one block.
const BLOCK_BYTES: usize = 320;

/// One text of a result.
struct Block<'a> {
    name: &'a str,
    text: &'a str,
    /// Where its characters begin in the JSON of the result.
    offset: usize,
}

/// What the model reads of a result: its JSON, with the long texts of `data` or of an error's details below it.
pub(crate) fn render(result: &ToolResult, room: usize, id: &str) -> String {
    let json = json_of(result);
    let blocks = match result {
        ToolResult::Done(Value::Object(fields)) => blocks_of(fields, &json, "}"),
        ToolResult::Failed(error) => blocks_of(&error.details, &json, "}}"),
        ToolResult::Done(_) => Vec::new(),
    };
    if blocks.is_empty() {
        return bounded(&json, room, id);
    }
    let frame = json_of(&without(result, &blocks));
    let whole = show(&frame, &blocks, &vec![usize::MAX; blocks.len()], id);
    if whole.len() <= room {
        return whole;
    }
    let fixed = frame.len() + blocks.len() * BLOCK_BYTES;
    if fixed > room / 2 {
        // Little of the texts could be shown, so the JSON is cut as it is.
        return bounded(&json, room, id);
    }
    show(&frame, &blocks, &shares(&blocks, room - fixed), id)
}

/// The fields that are shown below the JSON. `after` is what follows the fields in it.
fn blocks_of<'a>(fields: &'a Map<String, Value>, json: &str, after: &str) -> Vec<Block<'a>> {
    let length = |value: &Value| value.to_string().len();
    let lengths: Vec<(usize, usize)> =
        fields.iter().map(|(name, value)| (length(&Value::from(name.as_str())), length(value))).collect();
    // Each field has a colon and a comma; the last one has the brace instead of the comma.
    let inside: usize = lengths.iter().map(|(name, value)| name + value + 2).sum();
    let mut at = json.len().saturating_sub(after.len() + inside);
    let mut blocks = Vec::new();
    for ((name, value), (name_length, value_length)) in fields.iter().zip(lengths) {
        at += name_length + 1;
        if let Some(text) = value.as_str().filter(|text| blocks.len() < MAX_BLOCKS && is_fit(name, text)) {
            blocks.push(Block { name, text, offset: at + 1 });
        }
        at += value_length + 1;
    }
    blocks
}

/// Whether a text is better read as it is, and can be shown exactly.
fn is_fit(name: &str, text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let is_break = |one: char| matches!(one, '\n' | '\r' | '\t');
    let escapes = text.chars().filter(|&one| is_break(one) || matches!(one, '"' | '\\')).count();
    text.len() >= MIN_TEXT_BYTES
        && escapes >= MIN_ESCAPES
        && (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_plain)
        && text.chars().all(|one| is_break(one) || !one.is_control())
        && longest_backticks(text) <= MAX_BACKTICKS
}

pub(crate) fn longest_backticks(text: &str) -> usize {
    text.split(|one| one != '`').map(str::len).max().unwrap_or(0)
}

/// The result without the texts that are below it.
fn without(result: &ToolResult, blocks: &[Block<'_>]) -> ToolResult {
    let is_kept = |name: &String| !blocks.iter().any(|block| block.name == name);
    let mut result = result.clone();
    match &mut result {
        ToolResult::Done(Value::Object(fields)) => fields.retain(|name, _| is_kept(name)),
        ToolResult::Failed(error) => error.details.retain(|name, _| is_kept(name)),
        ToolResult::Done(_) => {}
    }
    result
}

/// How much of each text is shown. What a short one does not need is for the longer ones.
fn shares(blocks: &[Block<'_>], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    let length = |at: usize| blocks.get(at).map_or(0, |block| block.text.len());
    order.sort_by_key(|&at| length(at));
    let mut shares = vec![0; blocks.len()];
    let mut left = room;
    for (done, &at) in order.iter().enumerate() {
        let share = length(at).min(left / (blocks.len() - done));
        left -= share;
        if let Some(of) = shares.get_mut(at) {
            *of = share;
        }
    }
    shares
}

fn show(frame: &str, blocks: &[Block<'_>], shares: &[usize], id: &str) -> String {
    let shown = blocks.iter().zip(shares).map(|(block, share)| block.show(*share, id));
    std::iter::once(frame.to_owned()).chain(shown).collect::<Vec<_>>().join("\n")
}

impl Block<'_> {
    fn show(&self, share: usize, id: &str) -> String {
        let Self { name, text, offset } = self;
        let fence = "`".repeat(MIN_FENCE.max(longest_backticks(text) + 1));
        let note = if text.ends_with('\n') { "" } else { " (without a line break at its end)" };
        if text.len() <= share {
            return format!("{name}{note}:\n{}", fenced(text, &fence));
        }
        let (start, end) = ends(text, share);
        let (start, end) = (whole_lines(start), after_first_break(end));
        let left_out = text.len() - start.len() - end.len();
        let next = offset + escaped_bytes(start);
        format!(
            "{name}{note}:\n{}\n[{left_out} of the {} bytes of `{name}` are left out here; recall {{\"id\": \"{id}\", \"offset\": {next}}} reads them]\n{}",
            fenced(start, &fence),
            text.len(),
            fenced(end, &fence)
        )
    }
}

pub(crate) fn fenced(text: &str, fence: &str) -> String {
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

/// Without the line that it breaks off in, unless that is most of it.
fn whole_lines(text: &str) -> &str {
    let end = text.rfind('\n').map_or(0, |at| at + 1);
    if end > text.len() / 2 { text.get(..end).unwrap_or(text) } else { text }
}

/// Without the line that it begins in the middle of, unless that is most of it.
fn after_first_break(text: &str) -> &str {
    let start = text.find('\n').map_or(text.len(), |at| at + 1);
    if start <= text.len() / 2 { text.get(start..).unwrap_or(text) } else { text }
}

/// Bytes of a text within the quotes of its JSON.
fn escaped_bytes(text: &str) -> usize {
    Value::from(text).to_string().len().saturating_sub(2)
}
