//! What the chronicle says is there, and where the graph says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tgp_contract::{ChronicleEvent, Code, EntryKind, RelativePath, Root, ToolError, Visibility};

use crate::guardian::own_chronicle;
use crate::messages::thousands;
use crate::{GUARDIAN_CHRONICLE, Guardian, PROJECT_CHRONICLE};

/// Chronicles that are read for one check; a project has one for each source file at most.
const MAX_CHRONICLES: usize = 50_000;
/// Events of a file's own chronicle that are searched for the last one that claims anything.
const MAX_FILE_EVENTS: usize = 200;
/// Events of a chronicle that many files share.
pub(super) const MAX_SHARED_EVENTS: usize = 10_000;
/// The same before a write, which waits for it; the whole check reads further back.
const MAX_QUICK_EVENTS: usize = 500;
/// Contradictions that are named at once: who settles all of them does it one by one.
const MAX_CONTRADICTIONS: usize = 1_000;

/// The name of what is broken when chronicle and graph disagree.
pub(super) const AGREEMENT: &str = "chronicle-agrees-with-graph";

pub(super) const RECONCILIATION: &str = "RECONCILIATION";
/// The event in the Guardian's chronicle that says what a reconciliation will be.
pub(super) const RECONCILING: &str = "RECONCILING";
/// The event of a call that has changed more files than get an event each.
const BATCH: &str = "EDITS";

/// The chronicle's last statement on whether a file exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) present: bool,
    pub(super) chronicle: RelativePath,
    pub(super) event_id: String,
    pub(super) kind: String,
    /// SHA-256 of the file after the event, where it says so.
    pub(super) after: Option<String>,
    /// For the claim of a reconciliation: the claim that it was about.
    pub(super) basis: Option<String>,
    /// What happened to the file, in words.
    happened: &'static str,
    timestamp: String,
    /// The line of the chronicle among those that were read.
    line: usize,
}

impl Claim {
    /// What a reconciliation is about that finds the file so: this claim, or what the reconciliation was about that made
    /// this claim, so that reconciling twice is reconciling once.
    pub(super) fn basis_of(&self, present: bool) -> Option<String> {
        if self.kind == RECONCILIATION && self.present == present {
            self.basis.clone()
        } else {
            Some(self.event_id.clone())
        }
    }
}

/// A file that one of the two has and the other has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contradiction {
    pub(super) path: RelativePath,
    pub(super) claim: Claim,
}

impl Contradiction {
    /// For programs: short, and the same for the same event.
    pub(super) fn expected(&self) -> String {
        let Claim { present, chronicle, kind, .. } = &self.claim;
        format!("{} ({kind} in {chronicle})", presence(*present))
    }

    pub(super) fn actual(&self) -> String {
        format!("{} in graph", presence(!self.claim.present))
    }

    /// For people, who may not know what a chronicle is.
    pub(super) fn sentence(&self) -> String {
        let Claim { present, kind, happened, timestamp, .. } = &self.claim;
        let but = if *present { "there is no such file" } else { "it is there" };
        let when = timestamp.escape_debug();
        let kind = kind.escape_debug();
        format!("the chronicle says that {} {happened} ({kind} of {when}), but {but}", self.path)
    }
}

fn presence(present: bool) -> &'static str {
    if present { "present" } else { "absent" }
}

/// What the chronicles say, as far as the Guardian cares.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) claims: BTreeMap<RelativePath, Claim>,
    /// What was accepted for an invariant, by its name.
    pub(super) accepted: BTreeMap<String, BTreeSet<String>>,
    /// Chronicles that were read.
    pub(super) files: Vec<RelativePath>,
}

/// Which chronicles are read.
pub(super) enum Scope<'a> {
    All,
    /// Those of these files and the one that files share by rule: what can be afforded before every write.
    Files(&'a BTreeSet<RelativePath>),
}

impl Guardian {
    /// Reads the chronicles.
    pub(super) async fn remember(&self, scope: Scope<'_>) -> Result<Memory, ToolError> {
        let (memory, mut unreadable) = self.remember_what_can_be_read(scope).await?;
        match unreadable.pop() {
            None => Ok(memory),
            Some((_, error)) => Err(error),
        }
    }

    /// Reads all chronicles for a caller who may not see everything: one that cannot be read is named where it may be.
    pub(super) async fn remember_seen_by(&self, visible: &Visibility) -> Result<Memory, ToolError> {
        let (memory, mut unreadable) = self.remember_what_can_be_read(Scope::All).await?;
        match unreadable.pop() {
            None => Ok(memory),
            Some((file, error)) if visible.shows(Root::Project, &file) => Err(error),
            Some((_, error)) => {
                let message = "a chronicle that is hidden from this call cannot be read";
                Err(ToolError::new(error.code, message).help("ask a person to run `tgp chronicle verify`"))
            }
        }
    }

    /// Reads the chronicles, and answers with those that cannot be.
    pub(super) async fn remember_what_can_be_read(
        &self,
        scope: Scope<'_>,
    ) -> Result<(Memory, Vec<(RelativePath, ToolError)>), ToolError> {
        let (files, most_shared): (Vec<RelativePath>, usize) = match &scope {
            Scope::All => (self.parts.chronicle.files().await?, MAX_SHARED_EVENTS),
            Scope::Files(paths) => {
                let own = paths.iter().map(|path| format!("{path}.sage"));
                let all = own.chain([PROJECT_CHRONICLE.to_owned()]);
                (all.filter_map(|text| RelativePath::new(&text).ok()).collect(), MAX_QUICK_EVENTS)
            }
        };
        if files.len() > MAX_CHRONICLES {
            let message = format!(
                "there are {} chronicles, more than {}",
                thousands(files.len()),
                thousands(MAX_CHRONICLES)
            );
            return Err(ToolError::new(Code::Budget, message)
                .help("narrow the scope of the chronicle in the configuration"));
        }
        let mut unreadable = Vec::new();
        let believed = match self.own_events().await {
            Ok(events) => believed(&events),
            Err(error) => {
                unreadable.push((own_chronicle()?, error));
                BTreeSet::new()
            }
        };
        let mut gathered = ClaimIndex { believed, ..ClaimIndex::default() };
        for file in &files {
            // The Guardian's own events claim nothing of files, and were read already.
            if file.as_str() == GUARDIAN_CHRONICLE {
                continue;
            }
            let most = if is_shared(file) { most_shared } else { MAX_FILE_EVENTS };
            match self.parts.chronicle.tail(file, most).await {
                Ok(events) => gathered.add(file, &events),
                // A file outside the chronicle's scope has no chronicle.
                Err(error) if error.code == Code::Permission => {}
                Err(error) => unreadable.push((file.clone(), error)),
            }
        }
        Ok((gathered.into_memory(files), unreadable))
    }

    /// Where the graph says otherwise, by path.
    pub(super) async fn contradictions(
        &self,
        claims: &BTreeMap<RelativePath, Claim>,
    ) -> Result<Vec<Contradiction>, ToolError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.known(&claims.keys().cloned().collect()).await?;
        let contradicts = |path: &RelativePath, claim: &Claim| {
            let is_known = known.contains(path.as_str());
            // The graph leaves ignored files out; that they exist is not a contradiction.
            is_known != claim.present && !(claim.present && self.is_on_disk(path))
        };
        Ok(claims
            .iter()
            .filter(|(path, claim)| contradicts(path, claim))
            .map(|(path, claim)| Contradiction { path: path.clone(), claim: claim.clone() })
            .collect())
    }

    /// The files on which chronicle and graph disagree now, sorted; the first [`MAX_CONTRADICTIONS`] of them.
    ///
    /// # Errors
    /// When chronicle or graph cannot be read.
    pub async fn contradictions_now(&self) -> Result<Vec<String>, ToolError> {
        let memory = self.remember(Scope::All).await?;
        let contradictions = self.contradictions(&memory.claims).await?;
        let paths = contradictions.iter().take(MAX_CONTRADICTIONS).map(|one| one.path.as_str().to_owned());
        Ok(paths.collect())
    }

    pub(super) fn is_on_disk(&self, path: &RelativePath) -> bool {
        matches!(self.parts.files.entry(path), Ok(Some(entry)) if entry.kind == EntryKind::File)
    }
}

/// Whether many files write to this chronicle.
pub(super) fn is_shared(chronicle: &RelativePath) -> bool {
    chronicle.parent().as_str() == ".sage"
}

/// The reconciliations that the Guardian has announced in its own chronicle, where no other writer writes: an event of
/// this type that is only elsewhere was forged.
fn believed(own: &[ChronicleEvent]) -> BTreeSet<String> {
    own.iter().filter_map(announced).filter_map(|event| event.compute_id().ok()).collect()
}

/// The reconciliation that an event of the Guardian announces.
pub(super) fn announced(event: &ChronicleEvent) -> Option<ChronicleEvent> {
    if event.kind != RECONCILING {
        return None;
    }
    let event: ChronicleEvent = serde_json::from_value(event.fields.get("event")?.clone()).ok()?;
    (event.kind == RECONCILIATION).then_some(event)
}

#[derive(Default)]
struct ClaimIndex {
    /// Ids of the reconciliations that count.
    believed: BTreeSet<String>,
    /// Claims on each file, those of one chronicle in its order.
    claims: BTreeMap<RelativePath, Vec<Claim>>,
    settled: BTreeSet<String>,
    accepted: BTreeMap<String, BTreeSet<String>>,
    /// The last event of a chronicle that covers more changes than it names, with its line and moment.
    vague: BTreeMap<RelativePath, (usize, i128)>,
}

impl ClaimIndex {
    fn add(&mut self, chronicle: &RelativePath, events: &[ChronicleEvent]) {
        for (line, event) in events.iter().enumerate() {
            let is_reconciliation = event.kind == RECONCILIATION;
            // The id is computed here: the one that the line gives could be forged.
            if is_reconciliation && !event.compute_id().is_ok_and(|id| self.believed.contains(&id)) {
                continue;
            }
            let text = |name: &str| event.fields.get(name).and_then(Value::as_str).map(str::to_owned);
            for (path, EventFact { present, happened }) in claims_of(chronicle, event) {
                let claim = Claim {
                    present,
                    happened,
                    chronicle: chronicle.clone(),
                    event_id: event.event_id.clone().unwrap_or_default(),
                    kind: event.kind.clone(),
                    after: text("after").filter(|_| present),
                    basis: text("basis").filter(|_| is_reconciliation),
                    timestamp: event.timestamp.clone(),
                    line,
                };
                self.claims.entry(path).or_default().push(claim);
            }
            if event.kind == BATCH && event.fields.get("pathsOmitted") == Some(&Value::Bool(true)) {
                self.vague.insert(chronicle.clone(), (line, moment(&event.timestamp)));
            }
            if !is_reconciliation {
                continue;
            }
            self.settled.extend(text("settles"));
            if let Some(invariant) = text("invariant") {
                let accepted = event.fields.get("accepted").and_then(Value::as_array).into_iter().flatten();
                let accepted = accepted.filter_map(Value::as_str).map(str::to_owned);
                self.accepted.entry(invariant).or_default().extend(accepted);
            }
        }
    }

    fn into_memory(self, files: Vec<RelativePath>) -> Memory {
        let Self { claims, settled, accepted, vague, .. } = self;
        let newest = |claims: Vec<Claim>| {
            let mut last: BTreeMap<RelativePath, Claim> = BTreeMap::new();
            for claim in claims.into_iter().filter(|claim| !settled.contains(&claim.event_id)) {
                // Within one chronicle the order of its lines counts, whatever the clocks were.
                last.insert(claim.chronicle.clone(), claim);
            }
            let rank = |claim: &Claim| (moment(&claim.timestamp), !is_shared(&claim.chronicle));
            last.into_values().max_by(|one, other| {
                rank(one).cmp(&rank(other)).then_with(|| one.event_id.cmp(&other.event_id))
            })
        };
        // A later event that does not name all its files may have been about this one.
        let is_doubtful = |claim: &Claim| {
            vague.iter().any(|(chronicle, (line, at))| {
                if *chronicle == claim.chronicle {
                    *line > claim.line
                } else {
                    *at > moment(&claim.timestamp)
                }
            })
        };
        let claims = claims.into_iter().filter_map(|(path, claims)| {
            let claim = newest(claims).filter(|claim| !is_doubtful(claim))?;
            Some((path, claim))
        });
        Memory { claims: claims.collect(), accepted, files }
    }
}

pub(super) fn moment(timestamp: &str) -> i128 {
    tgp_text::parse_rfc3339_ns(timestamp).unwrap_or(i128::MIN)
}

/// What an event says of one file.
#[derive(Clone, Copy)]
struct EventFact {
    present: bool,
    happened: &'static str,
}

const CREATED: EventFact = EventFact { present: true, happened: "was created" };
const CHANGED: EventFact = EventFact { present: true, happened: "was changed" };
const DELETED: EventFact = EventFact { present: false, happened: "was deleted" };
const NEW_NAME: EventFact = EventFact { present: true, happened: "is the new name of a file" };
const OLD_NAME: EventFact = EventFact { present: false, happened: "was given another name" };

/// What an event says of the presence of files.
fn claims_of(chronicle: &RelativePath, event: &ChronicleEvent) -> Vec<(RelativePath, EventFact)> {
    if event.kind == BATCH {
        return batch_of(event);
    }
    let own = || chronicle.as_str().strip_suffix(".sage").filter(|_| !is_shared(chronicle));
    let Some(path) = event.file_path.as_deref().or_else(own) else { return Vec::new() };
    let text = |name: &str| event.fields.get(name).and_then(Value::as_str);
    let Some((told, is_rename)) = told_by(event) else { return Vec::new() };
    // A rename is about two files, whichever of them the event calls its own.
    let (from, to) = if is_rename { (text("from"), text("to")) } else { (None, None) };
    let mut claims = vec![(path, if to.is_none_or(|to| to == path) { told } else { OLD_NAME })];
    claims.extend(from.filter(|from| *from != path).map(|from| (from, OLD_NAME)));
    claims.extend(to.filter(|to| *to != path).map(|to| (to, NEW_NAME)));
    claims.into_iter().filter_map(|(path, told)| Some((file(path)?, told))).collect()
}

/// What an event of many changes says of those that it names.
fn batch_of(event: &ChronicleEvent) -> Vec<(RelativePath, EventFact)> {
    let named = event.fields.get("paths").and_then(Value::as_array).into_iter().flatten();
    named
        .filter_map(|entry| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str);
            Some((file(text("path")?)?, told_by_change(text("change")?)?))
        })
        .collect()
}

fn file(path: &str) -> Option<RelativePath> {
    RelativePath::new(path).ok().filter(|path| !path.is_root())
}

/// What happened to the file of an event, and whether it was a rename; nothing where the event does not say. Only types
/// that mean a file are read: a `CHANGE_REQUEST` has changed nothing.
fn told_by(event: &ChronicleEvent) -> Option<(EventFact, bool)> {
    if event.kind == RECONCILIATION {
        let present = event.fields.get("present").and_then(Value::as_bool)?;
        let happened = if present { "was accepted as being there" } else { "was accepted as being gone" };
        return Some((EventFact { present, happened }, false));
    }
    if let Some(change) = event.fields.get("change").and_then(Value::as_str)
        && let Some(told) = told_by_change(change)
    {
        return Some((told, change == "renamed"));
    }
    match event.kind.to_ascii_uppercase().as_str() {
        "CREATE" | "CREATED" | "FILE_CREATED" | "CREATE_FILE" | "ADD" | "ADDED" | "FILE_ADDED" => {
            Some((CREATED, false))
        }
        "EDIT" | "EDITED" | "FILE_EDITED" | "EDIT_FILE" | "WRITE" | "WRITE_FILE" | "FILE_WRITTEN"
        | "MODIFY" | "MODIFIED" | "FILE_MODIFIED" => Some((CHANGED, false)),
        "RENAME" | "RENAMED" | "FILE_RENAMED" | "RENAME_FILE" => Some((NEW_NAME, true)),
        "DELETE" | "DELETED" | "FILE_DELETED" | "DELETE_FILE" | "REMOVE" | "REMOVED" | "FILE_REMOVED" => {
            Some((DELETED, false))
        }
        _ => None,
    }
}

fn told_by_change(change: &str) -> Option<EventFact> {
    match change {
        "created" => Some(CREATED),
        "changed" => Some(CHANGED),
        "renamed" => Some(NEW_NAME),
        "deleted" => Some(DELETED),
        _ => None,
    }
}
