//! From the journal into the chronicles: in order, each event once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tgp_contract::{Code, RelativePath, ToolError};

use crate::engine::{Core, blocking};
use crate::event::{PROJECT_CHRONICLE, TRIGGER_EVENT, ValveEvent};
use crate::failure::Failure;
use crate::journal::Waiting;
use crate::outlet::Outlet;

/// Events that are taken out of the journal at once.
const BATCH: usize = 256;
/// Chronicles whose complaint is remembered; beyond it one is told twice.
const MAX_COMPLAINTS: usize = 1_000;

/// What became of the events that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// Events whose chronicle could not take them for now.
    pub(crate) waiting: u64,
}

/// Gives events to chronicles, and remembers what was said of which.
#[derive(Debug, Default)]
pub(crate) struct Deliverer {
    /// The last complaint about each chronicle, which is told once.
    complaints: BTreeMap<RelativePath, String>,
    /// What cannot take one event gets no later one of the same file, or their order would be lost.
    blocked: BTreeSet<RelativePath>,
}

enum Fate {
    Kept,
    /// The chronicle may not be written at all.
    Refused(String),
    /// With the complaint, where it is a new one.
    Waits(Option<ToolError>),
}

impl Deliverer {
    pub(crate) async fn run(&mut self, core: &Arc<Core>, outlet: &mut Outlet) -> Result<Delivery, Failure> {
        let mut delivery = Delivery::default();
        self.blocked.clear();
        let mut last = 0;
        loop {
            let batch =
                blocking(core, move |core| core.transact(|ledger| ledger.events_after(last, BATCH))).await?;
            let Some(newest) = batch.last() else { return Ok(delivery) };
            last = newest.sequence;
            delivery.waiting += self.give_all(core, outlet, batch).await?;
        }
    }

    /// Gives a batch of events away. Answers how many of them must wait.
    async fn give_all(
        &mut self,
        core: &Arc<Core>,
        outlet: &mut Outlet,
        batch: Vec<Waiting>,
    ) -> Result<u64, Failure> {
        let project =
            RelativePath::new(PROJECT_CHRONICLE).map_err(|error| Failure::Event(error.to_string()))?;
        let mut waiting = 0;
        let mut kept = Vec::new();
        let mut redirected = Vec::new();
        for event in batch {
            if event.chronicle == project {
                redirected.push(event);
                continue;
            }
            let fate = if self.belongs_beside(core, &event).await {
                self.give(core, &event).await
            } else {
                Fate::Refused(String::new())
            };
            match fate {
                Fate::Kept => kept.push(event),
                Fate::Refused(_) => redirected.push(Waiting { chronicle: project.clone(), ..event }),
                Fate::Waits(complaint) => {
                    waiting += 1;
                    complain(outlet, complaint).await;
                }
            }
        }
        // What may not stand beside its file stands with the events of the whole project. That is decided once, before
        // it is written there: a scope that is changed later must not have the same event told twice.
        let redirected = blocking(core, move |core| {
            core.transact(|ledger| {
                redirected
                    .iter()
                    .try_for_each(|event| ledger.redirect_event(event.sequence, &event.chronicle))?;
                Ok(redirected)
            })
        })
        .await?;
        let mut refused = Vec::new();
        for event in redirected {
            match self.give(core, &event).await {
                Fate::Kept => kept.push(event),
                Fate::Refused(reason) => refused.push((event, reason)),
                Fate::Waits(complaint) => {
                    waiting += 1;
                    complain(outlet, complaint).await;
                }
            }
        }
        kept.sort_by_key(|event| event.sequence);
        settle(core, outlet, kept, refused).await?;
        Ok(waiting)
    }

    /// Whether an event can stand beside its file. A folder that was removed is not made again for it, and no chronicle is
    /// begun in a folder that is perhaps being removed.
    async fn belongs_beside(&self, core: &Arc<Core>, event: &Waiting) -> bool {
        if event.event.fields.get("change").and_then(|change| change.as_str()) == Some("deleted") {
            return !matches!(core.chronicle.tail(&event.chronicle, 1).await, Ok(events) if events.is_empty());
        }
        core.tree.at(&event.chronicle.parent()).is_dir()
    }

    async fn give(&mut self, core: &Arc<Core>, event: &Waiting) -> Fate {
        if self.blocked.contains(&event.chronicle) {
            return Fate::Waits(None);
        }
        match core.chronicle.append(&event.chronicle, event.event.clone()).await {
            Ok(_) => {
                self.complaints.remove(&event.chronicle);
                Fate::Kept
            }
            // What the system refuses may be allowed later; what is outside the scope is not.
            Err(refusal) if refusal.code == Code::Permission && !core.tree.is_locked(&event.chronicle) => {
                Fate::Refused(refusal.message)
            }
            Err(refusal) => {
                self.blocked.insert(event.chronicle.clone());
                if self.complaints.len() >= MAX_COMPLAINTS {
                    self.complaints.clear();
                }
                let last = self.complaints.insert(event.chronicle.clone(), refusal.message.clone());
                Fate::Waits((last.as_ref() != Some(&refusal.message)).then_some(refusal))
            }
        }
    }
}

async fn complain(outlet: &mut Outlet, complaint: Option<ToolError>) {
    if let Some(error) = complaint {
        outlet.send(ValveEvent::Problem { error }).await;
    }
}

/// Takes events that are kept or refused for good out of the journal, then tells of them.
async fn settle(
    core: &Arc<Core>,
    outlet: &mut Outlet,
    kept: Vec<Waiting>,
    refused: Vec<(Waiting, String)>,
) -> Result<(), Failure> {
    if kept.is_empty() && refused.is_empty() {
        return Ok(());
    }
    let (kept, refused) = blocking(core, move |core| {
        core.transact(|ledger| {
            for event in &kept {
                ledger.event_is_kept(event, event.event.kind == TRIGGER_EVENT)?;
            }
            for (event, reason) in &refused {
                ledger.event_is_skipped(event, reason)?;
            }
            Ok((kept, refused))
        })
    })
    .await?;
    // The outcome of an action was told when it ended.
    let triggers = kept.into_iter().filter(|waiting| waiting.event.kind == TRIGGER_EVENT);
    for Waiting { chronicle, persona, event, .. } in triggers {
        outlet.send(ValveEvent::Triggered { persona, chronicle, event: Box::new(event) }).await;
    }
    for (Waiting { sequence, chronicle, event, .. }, reason) in refused {
        let file_path = event.file_path.as_deref().and_then(|path| RelativePath::new(path).ok());
        outlet.send(ValveEvent::Skipped { sequence, chronicle, file_path, reason }).await;
    }
    Ok(())
}
