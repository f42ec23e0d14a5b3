//! What the chronicle says is there, and where the graph says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tgp_contract::{ChronicleEvent, Code, EntryKind, RelativePath, ToolError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Guardian, PROJECT_CHRONICLE};

/// Chronicles that are read for one check; a project has one for each source file at most.
const MAX_CHRONICLES: usize = 50_000;
/// Events of a file's own chronicle that are looked through for the last one that claims anything.
const MAX_FILE_EVENTS: usize = 200;
/// Events of a chronicle that many files share.
pub(super) const MAX_SHARED_EVENTS: usize = 10_000;
/// The same before a write, which waits for it; the whole check looks further back.
const MAX_QUICK_EVENTS: usize = 500;

/// The name of what is broken when chronicle and graph disagree.
pub(super) const AGREEMENT: &str = "chronicle-agrees-with-graph";

pub(super) const RECONCILIATION: &str = "RECONCILIATION";

/// The last word of the chronicle on whether a file is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) present: bool,
    pub(super) chronicle: RelativePath,
    pub(super) event_id: String,
    pub(super) kind: String,
    timestamp: String,
}

/// A file that one of the two has and the other has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contradiction {
    pub(super) path: RelativePath,
    pub(super) claim: Claim,
}

impl Contradiction {
    pub(super) fn expected(&self) -> String {
        let Claim { present, chronicle, kind, .. } = &self.claim;
        format!("{} ({kind} in {chronicle})", presence(*present))
    }

    pub(super) fn actual(&self) -> String {
        format!("{} in graph", presence(!self.claim.present))
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
    pub(super) read: usize,
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
            let message = format!("there are {} chronicles, more than {MAX_CHRONICLES}", files.len());
            return Err(ToolError::new(Code::Budget, message)
                .help("narrow the scope of the chronicle in the configuration"));
        }
        let mut gathered = Gathered::default();
        let mut unreadable = Vec::new();
        for file in &files {
            let most = if is_shared(file) { most_shared } else { MAX_FILE_EVENTS };
            match self.parts.chronicle.tail(file, most).await {
                Ok(events) => gathered.add(file, &events),
                // A file outside the chronicle's scope has no chronicle.
                Err(error) if error.code == Code::Permission => {}
                Err(error) => unreadable.push((file.clone(), error)),
            }
        }
        Ok((gathered.into_memory(files.len()), unreadable))
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
            // The graph leaves ignored files out; that they are there is no contradiction.
            is_known != claim.present && !(claim.present && self.is_on_disk(path))
        };
        Ok(claims
            .iter()
            .filter(|(path, claim)| contradicts(path, claim))
            .map(|(path, claim)| Contradiction { path: path.clone(), claim: claim.clone() })
            .collect())
    }

    pub(super) fn is_on_disk(&self, path: &RelativePath) -> bool {
        matches!(self.parts.files.entry(path), Ok(Some(entry)) if entry.kind == EntryKind::File)
    }
}

/// Whether many files write to this chronicle.
pub(super) fn is_shared(chronicle: &RelativePath) -> bool {
    chronicle.parent().as_str() == ".sage"
}

#[derive(Default)]
struct Gathered {
    /// Claims on each file, those of one chronicle in its order.
    claims: BTreeMap<RelativePath, Vec<Claim>>,
    settled: BTreeSet<String>,
    accepted: BTreeMap<String, BTreeSet<String>>,
}

impl Gathered {
    fn add(&mut self, chronicle: &RelativePath, events: &[ChronicleEvent]) {
        for event in events {
            for (path, present) in claims_of(chronicle, event) {
                let claim = Claim {
                    present,
                    chronicle: chronicle.clone(),
                    event_id: event.event_id.clone().unwrap_or_default(),
                    kind: event.kind.clone(),
                    timestamp: event.timestamp.clone(),
                };
                self.claims.entry(path).or_default().push(claim);
            }
            if event.kind != RECONCILIATION {
                continue;
            }
            if let Some(settled) = event.fields.get("settles").and_then(Value::as_str) {
                self.settled.insert(settled.to_owned());
            }
            if let Some(invariant) = event.fields.get("invariant").and_then(Value::as_str) {
                let accepted = event.fields.get("accepted").and_then(Value::as_array).into_iter().flatten();
                let accepted = accepted.filter_map(Value::as_str).map(str::to_owned);
                self.accepted.entry(invariant.to_owned()).or_default().extend(accepted);
            }
        }
    }

    fn into_memory(self, read: usize) -> Memory {
        let Self { claims, settled, accepted } = self;
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
        let claims = claims.into_iter().filter_map(|(path, claims)| Some((path, newest(claims)?))).collect();
        Memory { claims, accepted, read }
    }
}

fn moment(timestamp: &str) -> i128 {
    OffsetDateTime::parse(timestamp, &Rfc3339).map_or(i128::MIN, OffsetDateTime::unix_timestamp_nanos)
}

/// What an event says of the presence of files.
fn claims_of(chronicle: &RelativePath, event: &ChronicleEvent) -> Vec<(RelativePath, bool)> {
    let own = || chronicle.as_str().strip_suffix(".sage").filter(|_| !is_shared(chronicle));
    let Some(path) = event.file_path.as_deref().or_else(own) else { return Vec::new() };
    let text = |name: &str| event.fields.get(name).and_then(Value::as_str);
    let Some(present) = claim_of(event) else { return Vec::new() };
    // A rename is about two files, whichever of them the event calls its own.
    let is_rename =
        text("change").map_or_else(|| event.kind.contains("RENAME"), |change| change == "renamed");
    let (from, to) = if is_rename { (text("from"), text("to")) } else { (None, None) };
    let mut claims = vec![(path, present && to.is_none_or(|to| to == path))];
    claims.extend(from.filter(|from| *from != path).map(|from| (from, false)));
    claims.extend(to.filter(|to| *to != path).map(|to| (to, true)));
    claims
        .into_iter()
        .filter_map(|(path, present)| Some((RelativePath::new(path).ok()?, present)))
        .filter(|(path, _)| !path.is_root())
        .collect()
}

/// Whether the file of an event is there after it; nothing where the event does not say.
fn claim_of(event: &ChronicleEvent) -> Option<bool> {
    if event.kind == RECONCILIATION {
        return event.fields.get("present").and_then(Value::as_bool);
    }
    match event.fields.get("change").and_then(Value::as_str) {
        Some("created" | "changed" | "renamed") => return Some(true),
        Some("deleted") => return Some(false),
        Some(_) | None => {}
    }
    let kind = event.kind.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if has(&["DELETE", "REMOVE"]) {
        Some(false)
    } else if has(&["CREATE", "EDIT", "WRITE", "MODIFY", "MODIFIED", "ADD", "CHANGE", "RENAME"]) {
        Some(true)
    } else {
        None
    }
}
