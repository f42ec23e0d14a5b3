//! What the events of edits say, held against the audit and against the files themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tgp_contract::{ChronicleEvent, EntryKind, RelativePath, background, canonical};

use crate::Guardian;
use crate::claims::{MAX_SHARED_EVENTS, Memory};
use crate::inquiry::{AUDIT_FIELD, AuditIndex, FindingSeverity, GuardianFinding, MAX_OF_A_KIND};
use crate::messages::{count, thousands};

/// References to the audit that are looked up.
const MAX_REFERENCES: usize = 10_000;
/// Files that are hashed; an inquiry is waited for.
const MAX_HASHED: usize = 2_000;
/// Larger files are not source.
const MAX_HASHED_BYTES: u64 = 4 << 20;
/// Of an id in a sentence; the whole id is in the evidence.
const SHOWN_ID: usize = 12;

/// An edit that names an entry of the audit.
struct AuditReference {
    /// The file that was edited, or the chronicle that has the event.
    file: String,
    event: String,
    session: Option<String>,
}

impl Guardian {
    /// Files that are not what their newest event has left.
    pub(super) async fn inquire_contents(&self, memory: &Memory, findings: &mut Vec<GuardianFinding>) {
        let left = memory
            .claims
            .iter()
            .filter_map(|(path, claim)| Some((path.clone(), claim.after.clone()?, claim.event_id.clone())));
        let mut left: Vec<(RelativePath, String, String)> = left.collect();
        if left.is_empty() {
            return;
        }
        let mut skipped = left.len().saturating_sub(MAX_HASHED);
        left.truncate(MAX_HASHED);
        let files = Arc::clone(&self.parts.files);
        let compare = move || -> (Vec<Value>, usize) {
            let mut large = 0;
            let mut others = Vec::new();
            for (path, after, event) in &left {
                // What is not there is a contradiction, and reported as one.
                let Ok(Some(entry)) = files.entry(path) else { continue };
                if entry.kind != EntryKind::File {
                    continue;
                }
                if entry.size > MAX_HASHED_BYTES {
                    large += 1;
                } else if files.read(path).is_ok_and(|bytes| canonical::sha256_hex(&bytes) != *after) {
                    others.push(json!({ "file": path, "event": event }));
                }
            }
            (others, large)
        };
        let (others, large) = match background::run(move || Ok(compare())).await {
            Ok(compared) => compared,
            Err(error) => {
                findings.push(GuardianFinding::of_error("worktree", "the files cannot be compared", &error));
                return;
            }
        };
        skipped += large;
        if skipped > 0 {
            let verb = if skipped == 1 { "was" } else { "were" };
            let message =
                format!("{} {verb} not compared with what the chronicle knows", count(skipped, "file"));
            findings.push(
                GuardianFinding::new("worktree", FindingSeverity::Warning, message)
                    .evidence(json!({ "files": MAX_HASHED, "bytes": MAX_HASHED_BYTES }))
                    .remedy("compare large files by hand: the inquiry looks at so many files, each of so many bytes"),
            );
        }
        let Some(first) = others.first().and_then(|one| one.get("file")).and_then(Value::as_str) else {
            return;
        };
        let verb = if others.len() == 1 { "was" } else { "were" };
        let message = format!(
            "{} {verb} changed since without an event in the chronicle, such as {first}",
            count(others.len(), "file")
        );
        let shown: Vec<&Value> = others.iter().take(MAX_OF_A_KIND).collect();
        findings.push(
            GuardianFinding::new("worktree", FindingSeverity::Info, message)
                .evidence(json!({ "files": shown, "total": others.len() }))
                .remedy("nothing to do where people edit by hand; `git diff` shows what they did"),
        );
    }

    /// Events of edits that name an entry of the audit, against the audit.
    pub(super) async fn inquire_references(
        &self,
        audit: &dyn AuditIndex,
        findings: &mut Vec<GuardianFinding>,
    ) {
        let Ok(files) = self.parts.chronicle.files().await else { return };
        let mut wanted: BTreeMap<String, AuditReference> = BTreeMap::new();
        let mut without = 0_usize;
        for file in &files {
            // A chronicle that cannot be read is a finding already.
            let Ok(events) = self.parts.chronicle.tail(file, MAX_SHARED_EVENTS).await else { continue };
            for event in events.iter().filter(|event| event.fields.contains_key("change")) {
                if wanted.len() >= MAX_REFERENCES {
                    break;
                }
                let referring = AuditReference::of(file, event);
                match reference(event) {
                    Some(reference) => {
                        wanted.entry(reference).or_insert(referring);
                    }
                    None if without >= MAX_OF_A_KIND => {}
                    None => {
                        without += 1;
                        let message = format!("{} names no audit entry", referring.said());
                        findings.push(
                            GuardianFinding::new("audit", FindingSeverity::Warning, message)
                                .evidence(json!({ "event": referring.event, "chronicle": file }))
                                .remedy("find out who appended it; the kernel's own edits name one"),
                        );
                    }
                }
            }
        }
        let references: Vec<String> = wanted.keys().cloned().collect();
        match audit.missing(&references).await {
            Ok(missing) => tell_missing(&wanted, &missing.into_iter().collect(), findings),
            Err(error) => {
                findings.push(GuardianFinding::of_error("audit", "the audit cannot be asked", &error))
            }
        }
    }
}

/// A clone has the chronicle and not the audit, so sessions of which the audit has nothing at all are reported in
/// one finding. That an audit has lost a whole session is found by its own chain.
fn tell_missing(
    wanted: &BTreeMap<String, AuditReference>,
    missing: &BTreeSet<String>,
    findings: &mut Vec<GuardianFinding>,
) {
    let session = |referring: &AuditReference| referring.session.clone();
    let here: BTreeSet<String> = wanted
        .iter()
        .filter(|(reference, _)| !missing.contains(*reference))
        .filter_map(|(_, referring)| session(referring))
        .collect();
    let lost = missing.iter().filter_map(|reference| Some((reference, wanted.get(reference)?)));
    let (elsewhere, lost): (Vec<_>, Vec<_>) =
        lost.partition(|(_, referring)| session(referring).is_some_and(|session| !here.contains(&session)));
    if !elsewhere.is_empty() {
        let sessions: BTreeSet<String> =
            elsewhere.iter().filter_map(|(_, referring)| session(referring)).collect();
        let shown: Vec<&String> = sessions.iter().take(MAX_OF_A_KIND).collect();
        let message = format!(
            "the audit knows nothing of {} with {}: they were made in another clone, or before this audit began",
            count(sessions.len(), "session"),
            count(elsewhere.len(), "edit")
        );
        findings.push(
            GuardianFinding::new("audit", FindingSeverity::Info, message)
                .evidence(json!({ "sessions": shown, "total": sessions.len(), "edits": elsewhere.len() }))
                .remedy("nothing to do in a clone; `tgp audit verify` tells whether the audit is whole"),
        );
    }
    for (reference, referring) in lost.iter().take(MAX_OF_A_KIND) {
        let message = format!("the audit has no entry for {}", referring.said());
        findings.push(
            GuardianFinding::new("audit", FindingSeverity::Error, message)
                .evidence(json!({
                    "reference": reference,
                    "file": referring.file,
                    "event": referring.event,
                    "total": lost.len(),
                }))
                .remedy("run `tgp audit verify`; entries are never removed"),
        );
    }
    if let Some(more) = lost.len().checked_sub(MAX_OF_A_KIND).filter(|more| *more > 0) {
        let message = format!("the audit has no entry for {} edits more", thousands(more));
        findings.push(
            GuardianFinding::new("audit", FindingSeverity::Error, message)
                .evidence(json!({ "total": lost.len() }))
                .remedy("run `tgp audit verify`"),
        );
    }
}

impl AuditReference {
    fn of(chronicle: &RelativePath, event: &ChronicleEvent) -> Self {
        let session = event.fields.get(AUDIT_FIELD).and_then(|entry| entry.get("session"));
        let own = chronicle.as_str().strip_suffix(".sage").unwrap_or(chronicle.as_str());
        Self {
            file: event.file_path.clone().unwrap_or_else(|| own.to_owned()),
            event: event.event_id.clone().unwrap_or_else(|| "?".to_owned()),
            session: session.and_then(Value::as_str).map(str::to_owned),
        }
    }

    /// `the edit of src/a.ts (event 0123456789ab)`
    fn said(&self) -> String {
        let id: String = self.event.chars().take(SHOWN_ID).collect();
        format!("the edit of {} (event {id})", self.file.escape_debug())
    }
}

fn reference(event: &ChronicleEvent) -> Option<String> {
    match event.fields.get(AUDIT_FIELD)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
