//! What the model is asked, and the hash that the transcript keeps of it.
//!
//! The hash is that of `{ model, limits, turn, system, tools, messages }` in canonical JSON, where the prompt, the tools
//! and each message are represented by the hash of their own canonical JSON. So a turn costs what is new in it, and not
//! what was said before; and whatever changes anywhere in the conversation still changes the hash.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Value, json};
use tgp_contract::Message;

use crate::routing;

/// The hash of one message, kept beside it until it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageHash(OnceLock<String>);

impl MessageHash {
    pub(crate) fn of(&self, message: impl FnOnce() -> Message) -> String {
        self.0.get_or_init(|| digest(&message())).clone()
    }

    /// The message has changed.
    pub(crate) fn forget(&mut self) {
        self.0.take();
    }
}

/// What a request is made of, each text or list by its hash.
pub(crate) struct RequestFingerprint<'a> {
    pub(crate) model: &'a str,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) temperature: Option<f64>,
    pub(crate) turn: u64,
    pub(crate) system: &'a str,
    pub(crate) tools: &'a str,
    pub(crate) messages: Vec<String>,
}

impl RequestFingerprint<'_> {
    pub(crate) fn hash(self) -> String {
        let mut outline = json!({
            "model": self.model,
            "limits": { "maxOutputTokens": self.max_output_tokens, "temperature": self.temperature },
            "turn": self.turn,
            "system": self.system,
            "tools": self.tools,
        });
        if let Value::Object(fields) = &mut outline {
            // By hand, so that a long list is not copied once more.
            let messages = self.messages.into_iter().map(Value::String).collect();
            fields.insert("messages".to_owned(), Value::Array(messages));
        }
        routing::hash(&outline)
    }
}

/// The hash of something's canonical JSON.
pub(crate) fn digest(value: &impl Serialize) -> String {
    // Every key of these types is a text, so there is nothing that JSON could not say.
    routing::hash(&serde_json::to_value(value).unwrap_or_default())
}
