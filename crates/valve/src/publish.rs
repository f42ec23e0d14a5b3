//! From the journal into the chronicles: in order, each event once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tgp_contract::{ChronicleLayout, Code, RelativePath, ToolError};
use tokio::task::{JoinError, JoinSet};

use crate::engine::{Core, blocking};
use crate::event::{PROJECT_CHRONICLE, TRIGGER_EVENT, ValveEvent};
use crate::failure::Failure;
use crate::journal::Waiting;
use crate::outlet::EventSink;

/// Events that are taken out of the journal at once.
const BATCH: usize = 256;
/// Chronicles that are written at once. Most of the time is waiting for the disk.
const MAX_AT_ONCE: usize = 8;
/// Chronicles whose complaint is remembered; beyond it one is reported twice.
const MAX_COMPLAINTS: usize = 1_000;

/// The results of the events that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PublishResult {
    /// Events whose chronicle could not take them for now.
    pub(crate) waiting: u64,
}

/// Gives events to chronicles, and remembers what was said of which.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    /// The last complaint about each chronicle, which is reported once.
    complaints: BTreeMap<RelativePath, String>,
    /// What cannot take one event gets no later one of the same file, or their order would be lost.
    blocked: BTreeSet<RelativePath>,
}

/// Events with their results; nothing for one that waits behind another one.
type Fates = Vec<(Waiting, Option<Fate>)>;

#[derive(Debug)]
enum Fate {
    Kept,
    /// The chronicle may not be written at all, or is none.
    Refused(ToolError),
    Waits(ToolError),
}

impl Publisher {
    pub(crate) async fn run(
        &mut self,
        core: &Arc<Core>,
        outlet: &mut EventSink,
    ) -> Result<PublishResult, Failure> {
        let mut delivery = PublishResult::default();
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

    /// Publishes a batch of events. Returns how many of them must wait.
    async fn give_all(
        &mut self,
        core: &Arc<Core>,
        outlet: &mut EventSink,
        batch: Vec<Waiting>,
    ) -> Result<u64, Failure> {
        let project =
            RelativePath::new(PROJECT_CHRONICLE).map_err(|error| Failure::Event(error.to_string()))?;
        let mut waiting = 0;
        let mut kept = Vec::new();
        let (mut redirected, beside): (Vec<Waiting>, Vec<Waiting>) =
            batch.into_iter().partition(|event| event.chronicle == project);
        for (event, fate) in self.give(core, beside).await? {
            match fate {
                Some(Fate::Kept) => {
                    self.complaints.remove(&event.chronicle);
                    kept.push(event);
                }
                Some(Fate::Refused(error)) => {
                    // Outside the scope is not new; something else in the chronicle's place is.
                    if error.code != Code::Permission {
                        self.complain(outlet, &event.chronicle, error).await;
                    }
                    redirected.push(Waiting { chronicle: project.clone(), ..event });
                }
                Some(Fate::Waits(error)) => {
                    waiting += 1;
                    self.complain(outlet, &event.chronicle, error).await;
                }
                None => waiting += 1,
            }
        }
        redirected.sort_by_key(|event| event.sequence);
        // An event that may not be beside its file goes to the events of the whole project. That is decided once,
        // before it is written there: a scope that is changed later must not cause the same event to be reported
        // twice.
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
        for (event, fate) in self.give(core, redirected).await? {
            match fate {
                Some(Fate::Kept) => {
                    self.complaints.remove(&event.chronicle);
                    kept.push(event);
                }
                Some(Fate::Refused(error)) if error.code == Code::Permission => {
                    refused.push((event, error.message));
                }
                Some(Fate::Refused(error) | Fate::Waits(error)) => {
                    waiting += 1;
                    self.complain(outlet, &event.chronicle, error).await;
                }
                None => waiting += 1,
            }
        }
        kept.sort_by_key(|event| event.sequence);
        settle(core, outlet, kept, refused).await?;
        Ok(waiting)
    }

    /// Gives events to their chronicles: those of one in order, several chronicles at once.
    async fn give(&mut self, core: &Arc<Core>, events: Vec<Waiting>) -> Result<Fates, Failure> {
        let mut groups: BTreeMap<RelativePath, Vec<Waiting>> = BTreeMap::new();
        for event in events {
            groups.entry(event.chronicle.clone()).or_default().push(event);
        }
        let mut fates = Vec::new();
        let mut tasks = JoinSet::new();
        for (chronicle, group) in groups {
            if self.blocked.contains(&chronicle) {
                fates.extend(group.into_iter().map(|event| (event, None)));
                continue;
            }
            if tasks.len() >= MAX_AT_ONCE {
                self.collect(tasks.join_next().await, &mut fates)?;
            }
            tasks.spawn(give_group(Arc::clone(core), group));
        }
        while !tasks.is_empty() {
            self.collect(tasks.join_next().await, &mut fates)?;
        }
        fates.sort_by_key(|(event, _)| event.sequence);
        Ok(fates)
    }

    fn collect(&mut self, ended: Option<Result<Fates, JoinError>>, fates: &mut Fates) -> Result<(), Failure> {
        let group =
            ended.transpose().map_err(|error| Failure::Thread(error.to_string()))?.unwrap_or_default();
        for (event, fate) in &group {
            if matches!(fate, None | Some(Fate::Waits(_))) {
                self.blocked.insert(event.chronicle.clone());
            }
        }
        fates.extend(group);
        Ok(())
    }

    /// Says once what is wrong with a chronicle.
    async fn complain(&mut self, outlet: &mut EventSink, chronicle: &RelativePath, error: ToolError) {
        if self.complaints.len() >= MAX_COMPLAINTS {
            self.complaints.clear();
        }
        let last = self.complaints.insert(chronicle.clone(), error.message.clone());
        if last.as_ref() != Some(&error.message) {
            outlet.send(ValveEvent::Problem { error }).await;
        }
    }
}

/// Gives the events of one chronicle to it, up to the first that must wait.
async fn give_group(core: Arc<Core>, group: Vec<Waiting>) -> Fates {
    let mut fates = Vec::with_capacity(group.len());
    let mut is_blocked = false;
    for event in group {
        let fate = if is_blocked { None } else { Some(give_one(&core, &event).await) };
        is_blocked |= matches!(fate, Some(Fate::Waits(_)));
        fates.push((event, fate));
    }
    fates
}

async fn give_one(core: &Core, event: &Waiting) -> Fate {
    if event.chronicle.as_str() != PROJECT_CHRONICLE && !belongs_beside(core, event).await {
        return Fate::Refused(ToolError::new(Code::Permission, "its folder is gone"));
    }
    let Err(refusal) = core.chronicle.append(&event.chronicle, event.event.clone()).await else {
        return Fate::Kept;
    };
    match refusal.code {
        // What the system refuses may be allowed later; what is outside the scope is not.
        Code::Permission if is_locked(core, &event.chronicle) => Fate::Waits(refusal),
        // Something else was put in its place; that must not mute the file.
        Code::Permission | Code::Validation | Code::Security | Code::Integrity => Fate::Refused(refusal),
        _ => Fate::Waits(refusal),
    }
}

/// Whether the system does not let this user write the file of a chronicle.
fn is_locked(core: &Core, chronicle: &RelativePath) -> bool {
    core.tree.layout().file_of(chronicle).is_ok_and(|file| core.tree.is_locked(&file))
}

/// Whether an event can be in the chronicle of its file. Those of the tree have their own folders. Beside the sources a
/// folder that was removed is not made again for it, and no chronicle is begun in a folder that is perhaps being
/// removed.
async fn belongs_beside(core: &Core, event: &Waiting) -> bool {
    if core.tree.layout() == ChronicleLayout::Tree {
        return true;
    }
    if !core.tree.at(&event.chronicle.parent()).is_dir() {
        return false;
    }
    let change = event.event.fields.get("change").and_then(|change| change.as_str());
    change != Some("deleted")
        || matches!(core.chronicle.tail(&event.chronicle, 1).await, Ok(events) if !events.is_empty())
}

/// Takes events that are kept or refused for good out of the journal, then reports them.
async fn settle(
    core: &Arc<Core>,
    outlet: &mut EventSink,
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
    // The outcome of an action was reported when it ended.
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
