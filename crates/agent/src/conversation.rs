//! What was said so far, as exchanges: a turn of the model, the results of its calls, and what was said to it then.

use std::collections::VecDeque;

use tgp_contract::{Block, Message, Role};

use crate::past::Past;
use crate::render;

/// What a block or a message takes besides its text, in the wire format of most providers.
const FRAME_BYTES: usize = 24;

/// What the model reads after its turn and the results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Note {
    /// From the loop.
    Loop(String),
    /// From the user, so it is never dropped.
    User(String),
}

/// What came of one call.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) id: String,
    pub(crate) call_id: String,
    pub(crate) content: String,
    pub(crate) is_error: bool,
    /// The call and its outcome in one line.
    pub(crate) line: String,
}

/// One turn of the model and what followed it.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    step: u64,
    said: Vec<Block>,
    replies: Vec<Reply>,
    notes: Vec<Note>,
    bytes: usize,
    is_short: bool,
}

/// The conversation. Every call in it has its result, and both leave it together.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    task: String,
    past: Past,
    exchanges: VecDeque<Exchange>,
}

impl Exchange {
    pub(crate) fn new(step: u64, said: Vec<Block>) -> Self {
        let bytes = said.iter().map(block_bytes).sum();
        Self { step, said, replies: Vec::new(), notes: Vec::new(), bytes, is_short: false }
    }

    /// The ids of the calls as they stand on the wire.
    fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.said.iter().filter_map(|block| match block {
            Block::ToolCall { call_id, .. } => Some(call_id.as_str()),
            Block::Text { .. } | Block::ToolResult { .. } | Block::Opaque { .. } => None,
        })
    }

    fn note(&mut self, note: Note) {
        let (Note::Loop(text) | Note::User(text)) = &note;
        self.bytes += text.len() + FRAME_BYTES;
        self.notes.push(note);
    }

    fn reply(&mut self, reply: Reply) {
        self.bytes += reply.content.len() + reply.call_id.len() + FRAME_BYTES;
        self.replies.push(reply);
    }

    /// Shortens the results; answers how many.
    fn shorten(&mut self) -> u64 {
        self.is_short = true;
        let mut count = 0;
        for reply in &mut self.replies {
            if let Some(short) = render::shortened(&reply.content, &reply.id) {
                self.bytes = (self.bytes + short.len()).saturating_sub(reply.content.len());
                reply.content = short;
                count += 1;
            }
        }
        count
    }

    fn text(&self) -> String {
        self.said.iter().filter_map(as_text).collect::<Vec<_>>().join(" ")
    }
}

impl Conversation {
    /// `summary_bytes` bounds what is said of exchanges that are no longer here.
    pub(crate) fn new(task: String, summary_bytes: usize) -> Self {
        Self { task, past: Past::new(summary_bytes), exchanges: VecDeque::new() }
    }

    /// Another bound for what is said of exchanges that are no longer here.
    pub(crate) fn resize(&mut self, summary_bytes: usize) {
        self.past.resize(summary_bytes);
    }

    pub(crate) fn push(&mut self, exchange: Exchange) {
        self.exchanges.push_back(exchange);
    }

    /// Says something after the last turn.
    pub(crate) fn note(&mut self, note: Note) {
        match (self.exchanges.back_mut(), note) {
            (Some(last), note) => last.note(note),
            // Nothing was said yet, so it belongs to the task.
            (None, Note::User(text) | Note::Loop(text)) => self.past.hear(text),
        }
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        if let Some(last) = self.exchanges.back_mut() {
            last.reply(reply);
        }
    }

    pub(crate) fn has_call_id(&self, id: &str) -> bool {
        self.exchanges.iter().any(|exchange| exchange.call_ids().any(|known| known == id))
    }

    pub(crate) fn bytes(&self) -> usize {
        let said: usize = self.exchanges.iter().map(|exchange| exchange.bytes + 2 * FRAME_BYTES).sum();
        self.task.len() + self.past.bytes() + said + FRAME_BYTES
    }

    /// Shortens the results of the oldest exchange that still has them whole, but for the last `kept`. Answers how many
    /// results that were; `None` when there is no such exchange.
    pub(crate) fn shorten_oldest(&mut self, kept: usize) -> Option<u64> {
        let old = self.exchanges.len().saturating_sub(kept);
        self.exchanges.iter_mut().take(old).find(|exchange| !exchange.is_short).map(Exchange::shorten)
    }

    /// Makes lines of the oldest exchange, but for the last `kept`. Answers whether there was one.
    pub(crate) fn summarise_oldest(&mut self, kept: usize) -> bool {
        if self.exchanges.len() <= kept {
            return false;
        }
        let Some(oldest) = self.exchanges.pop_front() else { return false };
        if oldest.replies.is_empty() {
            self.past.remember(oldest.step, &oldest.text());
        }
        for reply in oldest.replies {
            self.past.list(reply.line);
        }
        for note in oldest.notes {
            if let Note::User(text) = note {
                self.past.hear(text);
            }
        }
        true
    }

    /// The messages as a provider wants them: roles alternate, each call has its result in the message after it, and no
    /// message is empty. `aside` is said at the end and not kept.
    pub(crate) fn messages(&self, aside: Option<String>) -> Vec<Message> {
        let mut messages = Vec::new();
        let text = |text: &str| Block::Text { text: text.to_owned() };
        say(&mut messages, Role::User, std::iter::once(text(&self.task)).chain(self.past.blocks()));
        for exchange in &self.exchanges {
            say(&mut messages, Role::Assistant, exchange.said.iter().cloned());
            let replies = exchange.replies.iter().map(|reply| Block::ToolResult {
                call_id: reply.call_id.clone(),
                content: reply.content.clone(),
                is_error: reply.is_error,
            });
            let notes = exchange.notes.iter().map(|(Note::Loop(words) | Note::User(words))| text(words));
            say(&mut messages, Role::User, replies.chain(notes));
        }
        say(&mut messages, Role::User, aside.map(|text| Block::Text { text }));
        messages
    }
}

fn say(messages: &mut Vec<Message>, role: Role, blocks: impl IntoIterator<Item = Block>) {
    let blocks: Vec<Block> = blocks.into_iter().collect();
    match messages.last_mut() {
        _ if blocks.is_empty() => {}
        Some(last) if last.role == role => last.blocks.extend(blocks),
        _ => messages.push(Message { role, blocks }),
    }
}

fn as_text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Opaque { .. } => None,
    }
}

fn block_bytes(block: &Block) -> usize {
    FRAME_BYTES
        + match block {
            Block::Text { text } => text.len(),
            Block::ToolCall { call_id, tool_name, arguments } => {
                call_id.len() + tool_name.len() + arguments.to_string().len()
            }
            Block::ToolResult { call_id, content, .. } => call_id.len() + content.len(),
            Block::Opaque { provider, value } => provider.len() + value.to_string().len(),
        }
}
