//! The pieces of an answer that are only of use when they are whole: calls, and thoughts that are sent back.

use std::collections::{HashSet, VecDeque};

use serde_json::{Map, Value};
use tgp_contract::StreamEvent;

use crate::failure::Failure;
use crate::limits::{MAX_ARGUMENT_BYTES, MAX_BLOCKS, MAX_OPAQUE_BYTES};

#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// What the provider wants to see beside this call when it is sent back.
    pub(super) companion: Option<Value>,
}

impl Call {
    pub(super) fn write(&mut self, fragment: &str) -> Result<(), Failure> {
        extend(&mut self.arguments, fragment, "the arguments of a call", MAX_ARGUMENT_BYTES)
    }

    /// Puts the whole arguments in the place of the fragments.
    pub(super) fn rewrite(&mut self, whole: &str) -> Result<(), Failure> {
        self.arguments.clear();
        self.write(whole)
    }
}

#[derive(Debug)]
pub(super) enum Content {
    Call(Call),
    Opaque(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// It has ended without content. Whether it was cut off is known when something follows it.
    EndedEmpty,
    Complete,
    Cut,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: Option<u64>,
    pub(super) content: Content,
    pub(super) state: State,
}

/// The pieces in the order in which they began. They leave in this order, too.
#[derive(Debug)]
pub(super) struct Blocks {
    label: String,
    turn: u64,
    slots: VecDeque<Slot>,
    begun: usize,
    calls: usize,
    ids: HashSet<String>,
}

impl Blocks {
    /// `label` marks what only the same model is to get back.
    pub(super) fn new(label: &str, turn: u64) -> Self {
        Self {
            label: label.to_owned(),
            turn,
            slots: VecDeque::new(),
            begun: 0,
            calls: 0,
            ids: HashSet::new(),
        }
    }

    /// Returns the position of the new piece.
    pub(super) fn begin(
        &mut self,
        key: Option<u64>,
        content: Content,
        state: State,
    ) -> Result<usize, Failure> {
        self.begun += 1;
        if self.begun > MAX_BLOCKS {
            return Err(Failure::TooLarge {
                what: "the number of calls and blocks",
                limit: MAX_BLOCKS as u64,
            });
        }
        self.slots.push_back(Slot { key, content, state });
        Ok(self.slots.len() - 1)
    }

    /// The position of the newest piece that fits.
    pub(super) fn position(&self, fits: impl Fn(&Slot) -> bool) -> Option<usize> {
        self.slots.iter().rposition(fits)
    }

    pub(super) fn at(&mut self, position: usize) -> Option<&mut Slot> {
        self.slots.get_mut(position)
    }

    /// The newest piece of this key.
    pub(super) fn of_key(&mut self, key: Option<u64>) -> Option<&mut Slot> {
        self.slots.iter_mut().rev().find(|slot| slot.key == key)
    }

    pub(super) fn discard(&mut self, is_useless: impl Fn(&Slot) -> bool) {
        self.slots.retain(|slot| !is_useless(slot));
    }

    /// Something follows, so what had ended before was not cut off.
    pub(super) fn settle(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.state == State::EndedEmpty) {
            slot.state = State::Complete;
        }
    }

    /// Lets go of what is whole, up to the first piece that is not.
    pub(super) fn release(&mut self, said: &mut Vec<StreamEvent>) {
        while self.slots.front().is_some_and(|slot| matches!(slot.state, State::Complete | State::Cut)) {
            if let Some(slot) = self.slots.pop_front() {
                self.emit(slot, said);
            }
        }
    }

    /// The answer has ended: everything leaves. After a cut, what had not ended before may be incomplete.
    pub(super) fn finish(&mut self, is_cut: bool, said: &mut Vec<StreamEvent>) {
        while let Some(mut slot) = self.slots.pop_front() {
            if is_cut && matches!(slot.state, State::Open | State::EndedEmpty) {
                slot.state = State::Cut;
            }
            self.emit(slot, said);
        }
    }

    fn emit(&mut self, slot: Slot, said: &mut Vec<StreamEvent>) {
        let call = match slot.content {
            Content::Call(call) => call,
            Content::Opaque(value) => return self.opaque(value, said),
        };
        let call_id = self.call_id(call.id);
        if let Some(companion) = call.companion {
            self.opaque(companion, said);
        }
        said.push(StreamEvent::ToolCall {
            tool_name: call.name,
            call_id,
            arguments: arguments(call.arguments, slot.state == State::Cut),
        });
    }

    /// Says at once what is sent back.
    pub(super) fn opaque(&self, value: Value, said: &mut Vec<StreamEvent>) {
        said.push(StreamEvent::Opaque { provider: self.label.clone(), value });
    }

    /// A call without an id, or with that of another one, gets one that a replay would give it too.
    fn call_id(&mut self, given: String) -> String {
        let mut id = given;
        while id.is_empty() || self.ids.contains(&id) {
            self.calls += 1;
            id = format!("call_{}_{}", self.turn, self.calls);
        }
        self.ids.insert(id.clone());
        id
    }
}

/// What the model wrote, read. A call that was cut off keeps its raw text unless that is whole after all, and
/// "nothing" is only then no argument at all when it was meant.
fn arguments(raw: String, is_cut: bool) -> Value {
    if raw.trim().is_empty() && !is_cut {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(&raw) {
        Ok(value @ Value::Object(_)) => value,
        Ok(value) if !is_cut => value,
        _ => Value::String(raw),
    }
}

/// Adds a fragment to one text of an opaque block.
pub(super) fn extend_opaque(block: &mut Value, field: &str, fragment: &str) -> Result<(), Failure> {
    let Some(object) = block.as_object_mut() else { return Ok(()) };
    match object.entry(field).or_insert_with(|| Value::String(String::new())) {
        Value::String(text) => extend(text, fragment, "a block", MAX_OPAQUE_BYTES),
        _ => Ok(()),
    }
}

fn extend(text: &mut String, fragment: &str, what: &'static str, limit: usize) -> Result<(), Failure> {
    if fragment.len() > limit.saturating_sub(text.len()) {
        return Err(Failure::TooLarge { what, limit: limit as u64 });
    }
    text.push_str(fragment);
    Ok(())
}
