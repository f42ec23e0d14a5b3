//! A conversation in the form that all wires start from, and the words that each of them accepts.

use serde_json::{Map, Value, json};
use tgp_contract::{Block, Message, Role};

/// The longest name of a tool that every provider accepts.
const MAX_NAME: usize = 64;

/// All that one side said before the other side answered.
#[derive(Debug)]
pub(super) struct RoleRun {
    pub(super) role: Role,
    pub(super) blocks: Vec<Block>,
}

/// Merges messages of one role that follow each other, joins the pieces of a text, drops what is empty and what is not
/// allowed on its side, and puts results before other words: they must follow their calls at once. Of the opaque blocks
/// only those stay that the wire `keeps`, and only where something follows them: without its answer a thought is
/// refused.
pub(super) fn sides(messages: &[Message], keeps: impl Fn(&str, &Value) -> bool) -> Vec<RoleRun> {
    let said = |message: &Message| RoleRun { role: message.role, blocks: said_in(message, &keeps) };
    let mut sides = merged(messages.iter().map(said));
    for side in &mut sides {
        while matches!(side.blocks.last(), Some(Block::Opaque { .. })) {
            side.blocks.pop();
        }
    }
    // A side that had nothing else is gone, and its neighbours are now one.
    let mut sides = merged(sides.into_iter());
    for side in sides.iter_mut().filter(|side| side.role == Role::User) {
        // The sort is stable: within each kind the order stays.
        side.blocks.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
    }
    sides
}

fn merged(parts: impl Iterator<Item = RoleRun>) -> Vec<RoleRun> {
    let mut sides: Vec<RoleRun> = Vec::new();
    for part in parts.filter(|part| !part.blocks.is_empty()) {
        match sides.last_mut() {
            Some(last) if last.role == part.role => last.blocks.extend(part.blocks),
            _ => sides.push(part),
        }
    }
    sides
}

fn said_in(message: &Message, keeps: impl Fn(&str, &Value) -> bool) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for block in &message.blocks {
        match (message.role, block, blocks.last_mut()) {
            // A model's text comes in pieces that are one text.
            (Role::Assistant, Block::Text { text }, Some(Block::Text { text: last })) => last.push_str(text),
            (Role::Assistant, Block::ToolResult { .. }, _)
            | (Role::User, Block::ToolCall { .. } | Block::Opaque { .. }, _) => {}
            _ => blocks.push(block.clone()),
        }
    }
    blocks.retain(|block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Opaque { provider, value } => keeps(provider, value),
        Block::ToolCall { .. } | Block::ToolResult { .. } => true,
    });
    blocks
}

/// Arguments as an object, which is all that every server accepts. What was none is put into one, so that the model
/// sees what it wrote.
pub(super) fn argument_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => Value::Object(Map::new()),
        other => json!({ "unparsed_arguments": other }),
    }
}

/// A model can ask for a tool by a name that its provider then does not accept in the history.
pub(super) fn tool_name(name: &str) -> String {
    let fitting = fit(name);
    if fitting.is_empty() { "unknown".to_owned() } else { fitting.chars().take(MAX_NAME).collect() }
}

/// Every character that is none of `[a-zA-Z0-9_-]` becomes `_`. Ids of another provider may have some.
pub(super) fn fit(word: &str) -> String {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    word.chars().map(|character| if fits(character) { character } else { '_' }).collect()
}
