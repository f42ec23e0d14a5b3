//! What was said so far, as exchanges: a turn of the model, the results of its calls, and what was said to it then.

use std::collections::{BTreeSet, VecDeque};

use tgp_contract::{Block, Message, Role};

use crate::evicted_turns::EvictedTurns;
use crate::render;
use crate::request::{MessageHash, digest};

/// What a block or a message takes in addition to its text, in the wire format of most providers.
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

/// What can be shortened of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Results,
    /// Long texts in the arguments of calls that have ended.
    Arguments,
}

/// One turn of the model and what followed it.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    step: u64,
    said: Vec<Block>,
    replies: Vec<Reply>,
    notes: Vec<Note>,
    bytes: usize,
    are_results_short: bool,
    are_arguments_short: bool,
    /// Of what the model said, and of what it was answered.
    said_digest: MessageHash,
    answer_digest: MessageHash,
}

/// The conversation. Every call in it has its result, and both leave it together.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    task: String,
    past: EvictedTurns,
    exchanges: VecDeque<Exchange>,
    /// What all exchanges take together.
    exchange_bytes: usize,
    /// The ids of the calls as they are on the wire.
    call_ids: BTreeSet<String>,
    /// Of the task and the past.
    opening_digest: MessageHash,
}

impl Exchange {
    pub(crate) fn new(step: u64, said: Vec<Block>) -> Self {
        let bytes = said.iter().map(block_bytes).sum();
        Self {
            step,
            said,
            replies: Vec::new(),
            notes: Vec::new(),
            bytes,
            are_results_short: false,
            are_arguments_short: false,
            said_digest: MessageHash::default(),
            answer_digest: MessageHash::default(),
        }
    }

    /// The ids of the calls as they are on the wire.
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
        self.answer_digest.forget();
    }

    fn reply(&mut self, reply: Reply) {
        self.bytes += reply.content.len() + reply.call_id.len() + FRAME_BYTES;
        self.replies.push(reply);
        self.answer_digest.forget();
    }

    fn is_short(&self, part: Part) -> bool {
        match part {
            Part::Results => self.are_results_short,
            Part::Arguments => self.are_arguments_short,
        }
    }

    /// Shortens a part; answers how many results or calls.
    fn shorten(&mut self, part: Part) -> u64 {
        match part {
            Part::Results => self.shorten_results(),
            Part::Arguments => self.shorten_arguments(),
        }
    }

    fn shorten_results(&mut self) -> u64 {
        self.are_results_short = true;
        let mut count = 0;
        for reply in &mut self.replies {
            if let Some(short) = render::shortened(&reply.content, &reply.id) {
                self.bytes = (self.bytes + short.len()).saturating_sub(reply.content.len());
                reply.content = short;
                count += 1;
            }
        }
        self.answer_digest.forget();
        count
    }

    fn shorten_arguments(&mut self) -> u64 {
        self.are_arguments_short = true;
        let mut count = 0;
        for block in &mut self.said {
            let before = block_bytes(block);
            let Block::ToolCall { call_id, arguments, .. } = block else { continue };
            // Only what has its result has ended.
            let Some(reply) = self.replies.iter().find(|reply| reply.call_id == *call_id) else { continue };
            if let Some(short) = render::shortened_arguments(arguments, &reply.id) {
                *arguments = short;
                self.bytes = (self.bytes + block_bytes(block)).saturating_sub(before);
                count += 1;
            }
        }
        self.said_digest.forget();
        count
    }

    fn text(&self) -> String {
        self.said.iter().filter_map(as_text).collect::<Vec<_>>().join(" ")
    }
}

impl Conversation {
    /// `summary_bytes` bounds what is said of exchanges that are no longer here.
    pub(crate) fn new(task: String, summary_bytes: usize) -> Self {
        Self {
            task,
            past: EvictedTurns::new(summary_bytes),
            exchanges: VecDeque::new(),
            exchange_bytes: 0,
            call_ids: BTreeSet::new(),
            opening_digest: MessageHash::default(),
        }
    }

    /// Another bound for what is said of exchanges that are no longer here.
    pub(crate) fn resize(&mut self, summary_bytes: usize) {
        self.past.resize(summary_bytes);
        self.opening_digest.forget();
    }

    pub(crate) fn push(&mut self, exchange: Exchange) {
        self.exchange_bytes += exchange.bytes;
        self.call_ids.extend(exchange.call_ids().map(str::to_owned));
        self.exchanges.push_back(exchange);
    }

    /// Says something after the last turn.
    pub(crate) fn note(&mut self, note: Note) {
        if self.exchanges.is_empty() {
            // Nothing was said yet, so it belongs to the task.
            let (Note::User(text) | Note::Loop(text)) = note;
            self.past.hear(text);
            self.opening_digest.forget();
        } else {
            self.change_last(|last| last.note(note));
        }
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        self.change_last(|last| last.reply(reply));
    }

    fn change_last(&mut self, change: impl FnOnce(&mut Exchange)) {
        if let Some(last) = self.exchanges.len().checked_sub(1) {
            self.change(last, change);
        }
    }

    /// Changes one exchange, and keeps what all take together.
    fn change<T>(&mut self, at: usize, change: impl FnOnce(&mut Exchange) -> T) -> Option<T> {
        let exchange = self.exchanges.get_mut(at)?;
        let before = exchange.bytes;
        let answer = change(exchange);
        self.exchange_bytes = (self.exchange_bytes + exchange.bytes).saturating_sub(before);
        Some(answer)
    }

    pub(crate) fn has_call_id(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }

    pub(crate) fn bytes(&self) -> usize {
        let frames = (2 * self.exchanges.len() + 1) * FRAME_BYTES;
        self.task.len() + self.past.bytes() + self.exchange_bytes + frames
    }

    /// Shortens a part of the oldest exchange that still has it whole, but for the last `kept`. Returns how much that
    /// was; `None` when there is no such exchange.
    pub(crate) fn shorten_oldest(&mut self, part: Part, kept: usize) -> Option<u64> {
        let old = self.exchanges.len().saturating_sub(kept);
        let at = self.exchanges.iter().take(old).position(|exchange| !exchange.is_short(part))?;
        self.change(at, |exchange| exchange.shorten(part))
    }

    /// Makes lines of the oldest exchange, but for the last `kept`. Returns whether there was one.
    pub(crate) fn summarise_oldest(&mut self, kept: usize) -> bool {
        if self.exchanges.len() <= kept {
            return false;
        }
        let Some(oldest) = self.exchanges.pop_front() else { return false };
        self.exchange_bytes = self.exchange_bytes.saturating_sub(oldest.bytes);
        for id in oldest.call_ids() {
            self.call_ids.remove(id);
        }
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
        self.opening_digest.forget();
        true
    }

    /// The messages as a provider wants them: roles alternate, each call has its result in the message after it, and no
    /// message is empty. `aside` is said at the end and not kept.
    pub(crate) fn messages(&self, aside: Option<&str>) -> Vec<Message> {
        let pieces = self.pieces(aside);
        pieces.chunk_by(Piece::is_same_side).map(message).collect()
    }

    /// The hash of each of these messages. Only what has changed is hashed again.
    pub(crate) fn hashes(&self, aside: Option<&str>) -> Vec<String> {
        let pieces = self.pieces(aside);
        let hash = |pieces: &[Piece<'_>]| match pieces {
            [Piece::Opening(of)] => of.opening_digest.of(|| message(pieces)),
            [Piece::Said(of)] => of.said_digest.of(|| message(pieces)),
            [Piece::Answer(of)] => of.answer_digest.of(|| message(pieces)),
            _ => digest(&message(pieces)),
        };
        pieces.chunk_by(Piece::is_same_side).map(hash).collect()
    }

    fn pieces<'a>(&'a self, aside: Option<&'a str>) -> Vec<Piece<'a>> {
        let said = self.exchanges.iter().flat_map(|of| [Piece::Said(of), Piece::Answer(of)]);
        let all = std::iter::once(Piece::Opening(self)).chain(said).chain(aside.map(Piece::Aside));
        all.filter(|piece| !piece.is_empty()).collect()
    }
}

/// What one side says at once.
enum Piece<'a> {
    /// The task and the past.
    Opening(&'a Conversation),
    Said(&'a Exchange),
    /// Results and notes.
    Answer(&'a Exchange),
    Aside(&'a str),
}

impl Piece<'_> {
    fn role(&self) -> Role {
        match self {
            Self::Said(_) => Role::Assistant,
            Self::Opening(_) | Self::Answer(_) | Self::Aside(_) => Role::User,
        }
    }

    fn is_same_side(&self, other: &Self) -> bool {
        self.role() == other.role()
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Said(of) => of.said.is_empty(),
            Self::Answer(of) => of.replies.is_empty() && of.notes.is_empty(),
            Self::Opening(_) | Self::Aside(_) => false,
        }
    }

    fn blocks(&self) -> Vec<Block> {
        let text = |text: &str| Block::Text { text: text.to_owned() };
        match self {
            Self::Opening(of) => std::iter::once(text(&of.task)).chain(of.past.blocks()).collect(),
            Self::Said(of) => of.said.clone(),
            Self::Answer(of) => {
                let replies = of.replies.iter().map(|reply| Block::ToolResult {
                    call_id: reply.call_id.clone(),
                    content: reply.content.clone(),
                    is_error: reply.is_error,
                });
                let notes = of.notes.iter().map(|(Note::Loop(words) | Note::User(words))| text(words));
                replies.chain(notes).collect()
            }
            Self::Aside(words) => vec![text(words)],
        }
    }
}

/// One message of what a side says.
fn message(pieces: &[Piece<'_>]) -> Message {
    let role = pieces.first().map_or(Role::User, Piece::role);
    Message { role, blocks: pieces.iter().flat_map(Piece::blocks).collect() }
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
