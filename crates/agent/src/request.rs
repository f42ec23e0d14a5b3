//! What the model is asked, and the hash that the transcript keeps of it.
//!
//! The hash is that of `{ model, limits, turn, system, tools, messages }` in canonical JSON, where the prompt, the tools
//! and each message stand by the hash of their own canonical JSON. So a turn costs what is new in it, and not what was
//! said before; and whatever changes anywhere in the conversation still changes the hash.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::json;
use tgp_contract::{Block, ChatOptions, Message, Role};

use crate::routing;

/// A request and its hash.
pub(crate) struct Request {
    pub(crate) options: ChatOptions,
    pub(crate) hash: String,
}

/// The hash of one message, kept beside it until it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digest(OnceLock<String>);

impl Digest {
    fn of(&self, message: &Message) -> String {
        self.0.get_or_init(|| digest(message)).clone()
    }

    /// The message has changed.
    pub(crate) fn forget(&mut self) {
        self.0.take();
    }
}

/// Messages as they are put together: roles alternate, and none is empty.
#[derive(Default)]
pub(crate) struct Messages<'a> {
    messages: Vec<Message>,
    /// What is kept of each; nothing for one that was put together of several.
    kept: Vec<Option<&'a Digest>>,
}

impl<'a> Messages<'a> {
    /// Says something. What the same side has just said goes before it in the same message.
    pub(crate) fn say(
        &mut self,
        role: Role,
        blocks: impl IntoIterator<Item = Block>,
        kept: Option<&'a Digest>,
    ) {
        let blocks: Vec<Block> = blocks.into_iter().collect();
        match (self.messages.last_mut(), self.kept.last_mut()) {
            _ if blocks.is_empty() => {}
            (Some(last), Some(digest)) if last.role == role => {
                last.blocks.extend(blocks);
                *digest = None;
            }
            _ => {
                self.messages.push(Message { role, blocks });
                self.kept.push(kept);
            }
        }
    }

    /// The messages, and the hash of each.
    pub(crate) fn done(self) -> (Vec<Message>, Vec<String>) {
        let hash = |(message, kept): (&Message, &Option<&Digest>)| {
            kept.map_or_else(|| digest(message), |kept| kept.of(message))
        };
        let hashes = self.messages.iter().zip(&self.kept).map(hash).collect();
        (self.messages, hashes)
    }
}

/// Hashes of what every request has.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    pub(crate) system: String,
    pub(crate) tools: String,
}

impl Request {
    pub(crate) fn new(options: ChatOptions, fixed: &Fixed, messages: &[String]) -> Self {
        let limits =
            json!({ "maxOutputTokens": options.max_output_tokens, "temperature": options.temperature });
        let hash = digest(&json!({
            "model": options.model,
            "limits": limits,
            "turn": options.turn,
            "system": fixed.system,
            "tools": fixed.tools,
            "messages": messages,
        }));
        Self { options, hash }
    }
}

/// The hash of something's canonical JSON.
pub(crate) fn digest(value: &impl Serialize) -> String {
    // Every key of these types is a text, so there is nothing that JSON could not say.
    routing::hash(&serde_json::to_value(value).unwrap_or_default())
}
