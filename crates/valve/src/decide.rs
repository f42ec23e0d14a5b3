//! From a change to the events and actions that follow from it, within one transaction.

use serde_json::{Map, Value};
use tgp_contract::{ChronicleEvent, EventActor, RelativePath, chronicle_of};
use tgp_text::rfc3339;

use crate::change::{Change, FileChangeKind};
use crate::event::{ACTION_EVENT, PROJECT_CHRONICLE, TRIGGER_EVENT, TriggerCause, TriggerType};
use crate::failure::Failure;
use crate::journal::{Held, JournalTx, MetaKey, NewWork, Waiting};
use crate::personas::{Persona, Personas};
use crate::reconcile::Found;
use crate::{Action, Trigger};

/// Personas of which one wakes the next: so many in a row that each may do something.
pub(crate) const MAX_CHAIN: u32 = 3;
/// Actions that may wait. A first scan that reports a whole project would otherwise silently ask an agent about every
/// file in it.
const MAX_PENDING: u64 = 100_000;

/// Decides about changes that were found at one moment.
pub(crate) struct TriggerMatcher<'a, 't> {
    pub(crate) ledger: &'a JournalTx<'t>,
    pub(crate) personas: &'a Personas,
    pub(crate) now_ms: u64,
    /// The actions that are carried out now.
    pub(crate) suspects: &'a [u64],
    pending: u64,
}

impl<'a, 't> TriggerMatcher<'a, 't> {
    pub(crate) fn new(
        ledger: &'a JournalTx<'t>,
        personas: &'a Personas,
        now_ms: u64,
        suspects: &'a [u64],
    ) -> Result<Self, Failure> {
        Ok(Self { ledger, personas, now_ms, suspects, pending: ledger.pending_works()? })
    }

    /// Reports what has waited for the end of a cooldown.
    pub(crate) fn release(&mut self) -> Result<(), Failure> {
        for held in self.ledger.take_due(self.now_ms)? {
            self.release_one(held)?;
        }
        self.ledger.drop_cooldowns(self.now_ms)
    }

    fn release_one(&mut self, held: Held) -> Result<(), Failure> {
        // Events for a persona that is no longer in the file are dropped.
        let Some(persona) = self.personas.iter().find(|persona| persona.name == held.persona) else {
            return Ok(());
        };
        self.tell(persona, &held.change, held.cause)
    }

    pub(crate) fn decide(&mut self, found: &Found) -> Result<(), Failure> {
        let change = &found.change;
        if self.ledger.made(&change.path, change.after.as_deref())?.is_none() {
            self.ledger.forget_made(&change.path)?;
        }
        for (number, persona) in self.personas.iter().enumerate() {
            if change.kind == FileChangeKind::Renamed {
                // What was gathered of either name belongs before it, and is reported at once.
                for path in change.from.iter().chain([&change.path]) {
                    if let Some(held) = self.ledger.take_held(&persona.name, path)? {
                        self.release_one(held)?;
                    }
                }
            }
            match cause_of(persona, change, found.patterns.get(&number)) {
                Some(cause) => self.tell_or_hold(persona, change, cause)?,
                None => self.bring_up_to_date(persona, change)?,
            }
        }
        Ok(())
    }

    /// A change that a persona does not want still changes what was gathered for it: that must not be reported for a
    /// file that is a different one by then.
    fn bring_up_to_date(&mut self, persona: &Persona, change: &Change) -> Result<(), Failure> {
        let Some(held) = self.ledger.take_held(&persona.name, &change.path)? else { return Ok(()) };
        let Held { persona: name, due_ms, change: gathered, cause } = held;
        match gathered.then(change.clone()) {
            Some(change) if persona.changes.contains(&change.kind) && !persona.wants_contents() => {
                self.ledger.hold(&Held { persona: name, due_ms, change, cause })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn tell_or_hold(
        &mut self,
        persona: &Persona,
        change: &Change,
        cause: TriggerCause,
    ) -> Result<(), Failure> {
        if change.kind == FileChangeKind::Renamed {
            return self.tell(persona, change, cause);
        }
        let Some(until) = self.ledger.cooldown(&persona.name, &change.path, self.now_ms)? else {
            return self.tell(persona, change, cause);
        };
        let change = match self.ledger.take_held(&persona.name, &change.path)? {
            Some(held) => held.change.then(change.clone()),
            None => Some(change.clone()),
        };
        match change {
            Some(change) => {
                self.ledger.hold(&Held { persona: persona.name.clone(), due_ms: until, change, cause })
            }
            None => Ok(()),
        }
    }

    /// Finishes the event, and puts down the action that follows from it.
    fn tell(&mut self, persona: &Persona, change: &Change, cause: TriggerCause) -> Result<(), Failure> {
        let made = self.ledger.made(&change.path, change.after.as_deref())?;
        let depth = made.as_ref().map_or(0, |made| made.depth.saturating_add(1));
        let is_own = made.as_ref().is_some_and(|made| made.persona == persona.name);
        let suppressed = if persona.action == Action::Record || is_own {
            None
        } else if depth >= MAX_CHAIN {
            Some("chain")
        } else if self.pending >= MAX_PENDING {
            Some("full")
        } else {
            None
        };
        let mut fields = Map::new();
        fields.insert("persona".to_owned(), persona.name.clone().into());
        fields.insert("change".to_owned(), change.kind.as_str().into());
        let mut add = |name: &str, value: Option<&str>| {
            fields.extend(value.map(|value| (name.to_owned(), Value::from(value))));
        };
        add("from", change.from.as_ref().map(RelativePath::as_str));
        add("before", change.before.as_deref());
        add("after", change.after.as_deref());
        add("causedBy", made.as_ref().map(|made| made.persona.as_str()));
        add("suppressed", suppressed);
        let trigger = serde_json::to_value(&cause).map_err(|error| Failure::Event(error.to_string()))?;
        fields.insert("trigger".to_owned(), trigger);
        let told = put(self.ledger, TRIGGER_EVENT, &persona.name, &change.path, fields, self.now_ms)?;
        if !persona.cooldown.is_zero() {
            let cooldown = u64::try_from(persona.cooldown.as_millis()).unwrap_or(u64::MAX);
            let until = self.now_ms.saturating_add(cooldown);
            self.ledger.set_cooldown(&persona.name, &change.path, until)?;
        }
        if persona.action == Action::Record || is_own || suppressed.is_some() {
            return Ok(());
        }
        self.pending += 1;
        let trigger = Trigger {
            event_id: told.event.event_id.unwrap_or_default(),
            sequence: told.sequence,
            persona: persona.name.clone(),
            file_path: change.path.clone(),
            change: change.kind,
            from: change.from.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            trigger: cause,
            depth,
            timestamp: told.event.timestamp,
        };
        self.ledger.put_work(&NewWork { trigger: &trigger, suspects: self.suspects })
    }
}

/// Whether a persona wants a change, and by what. A rename also counts as the change of the content that came with it, and
/// as a file that comes into the filters or leaves them.
fn cause_of(persona: &Persona, change: &Change, pattern: Option<&String>) -> Option<TriggerCause> {
    let here = persona.filter_of(&change.path);
    let there = change.from.as_ref().and_then(|from| persona.filter_of(from));
    let filter = here.or(there)?;
    let wants = |kind: FileChangeKind| persona.changes.contains(&kind);
    let is_wanted = wants(change.kind)
        || (change.kind == FileChangeKind::Renamed
            && ((change.before != change.after && wants(FileChangeKind::Changed))
                || (there.is_none() && wants(FileChangeKind::Created))
                || (here.is_none() && wants(FileChangeKind::Deleted))));
    if !is_wanted {
        return None;
    }
    if !persona.wants_contents() {
        return Some(TriggerCause { kind: TriggerType::Filter, details: filter.to_owned() });
    }
    pattern.map(|pattern| TriggerCause { kind: TriggerType::Content, details: pattern.clone() })
}

/// Puts down what came of an action.
pub(crate) fn tell_outcome(
    ledger: &JournalTx<'_>,
    trigger: &Trigger,
    mut outcome: Map<String, Value>,
    now_ms: u64,
) -> Result<(), Failure> {
    let mut fields = Map::new();
    fields.insert("persona".to_owned(), trigger.persona.clone().into());
    fields.insert("trigger".to_owned(), trigger.event_id.clone().into());
    fields.append(&mut outcome);
    put(ledger, ACTION_EVENT, &trigger.persona, &trigger.file_path, fields, now_ms)?;
    Ok(())
}

/// Gives an event its number, its time and so its id, which it keeps whatever happens.
fn put(
    ledger: &JournalTx<'_>,
    kind: &str,
    persona: &str,
    path: &RelativePath,
    mut fields: Map<String, Value>,
    now_ms: u64,
) -> Result<Waiting, Failure> {
    let sequence = ledger.count_up(MetaKey::LastSequence)?;
    fields.insert("sequence".to_owned(), sequence.into());
    let mut event = ChronicleEvent {
        event_id: None,
        kind: kind.to_owned(),
        timestamp: rfc3339(now_ms),
        actor: EventActor { agent: "valve".to_owned(), id: "watcher".to_owned() },
        file_path: Some(path.as_str().to_owned()),
        fields,
    };
    let id = event.compute_id().map_err(|error| Failure::Event(error.to_string()))?;
    event.event_id = Some(id);
    // A name that has no room for the suffix is reported in the project's chronicle.
    let chronicle = chronicle_of(path)
        .or_else(|_| RelativePath::new(PROJECT_CHRONICLE))
        .map_err(|error| Failure::Event(error.to_string()))?;
    let waiting = Waiting { sequence, chronicle, persona: persona.to_owned(), event };
    ledger.put_event(&waiting)?;
    Ok(waiting)
}
