//! A conversation in the form that all wires start from, and the words that each of them accepts.

use serde_json::{Map, Value, json};
use tgp_contract::{Block, Message, Role};

/// The longest name of a tool that every provider accepts.
const MAX_NAME: usize = 64;

/// All that one side said before the other side answered.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) role: Role,
    pub(super) blocks: Vec<Block>,
}

/// Merges messages of one role that follow each other, joins the pieces of a text, drops what is empty and what cannot
/// stand on its side, and puts results before other words: they must follow their calls at once.
pub(super) fn sides(messages: &[Message]) -> Vec<Side> {
    let mut sides: Vec<Side> = Vec::new();
    for message in messages {
        let blocks = said_in(message);
        match sides.last_mut() {
            Some(last) if last.role == message.role => last.blocks.extend(blocks),
            _ => sides.push(Side { role: message.role, blocks }),
        }
    }
    for side in &mut sides {
        // The sort is stable: within each kind the order stays.
        side.blocks
            .sort_by_key(|block| side.role == Role::User && !matches!(block, Block::ToolResult { .. }));
    }
    sides.retain(|side| !side.blocks.is_empty());
    sides
}

fn said_in(message: &Message) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for block in &message.blocks {
        match (message.role, block, blocks.last_mut()) {
            // A model's text comes in pieces that are one text.
            (Role::Assistant, Block::Text { text }, Some(Block::Text { text: last })) => last.push_str(text),
            (Role::Assistant, Block::ToolResult { .. }, _) | (Role::User, Block::ToolCall { .. }, _) => {}
            _ => blocks.push(block.clone()),
        }
    }
    blocks.retain(|block| !matches!(block, Block::Text { text } if text.trim().is_empty()));
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
