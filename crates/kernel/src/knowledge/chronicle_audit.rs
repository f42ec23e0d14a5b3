//! Chronicles against the audit: events that were deleted, moved or added by something other than a call.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;
use serde_json::Value;
use tgp_audit::AuditReader;
use tgp_chronicle::FileChronicle;
use tgp_contract::{ChronicleEvent, RelativePath, ToolError};
use tgp_guardian::{AUDIT_FIELD, PROJECT_CHRONICLE};

use super::audited_events::{AuditedEvent, AuditedEvents, ShortId, short_id};

/// Problems that are listed; the others are counted.
const MAX_PROBLEMS: usize = 1000;
/// Bytes of a committed chronicle that are compared.
pub(super) const MAX_COMMITTED_BYTES: u64 = 64 << 20;
/// Calls of different sessions have an order when so much time is between them: the event of a call is appended, and its
/// entry written, some time after its end.
const ORDER_MS: u64 = 1_000;
/// Agents whose events are not from recorded calls.
const UNAUDITED_AGENTS: [&str; 2] = ["guardian", "valve"];

/// Something in a chronicle that is not as the audit has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AuditProblem {
    /// The name of the chronicle.
    pub file: RelativePath,
    /// Counted from 1; none for an event that is missing.
    pub line: Option<u64>,
    pub kind: AuditProblemKind,
    pub problem: String,
}

/// What was done to a chronicle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditProblemKind {
    /// The audit names an event that no chronicle has.
    Deleted,
    /// Two events are not in the order of their calls.
    Order,
    /// No entry of the audit names the event.
    Added,
}

/// What a comparison of chronicles with the audit has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditComparison {
    /// Events that were found as the audit names them.
    pub confirmed: u64,
    pub problems: Vec<AuditProblem>,
    /// Problems beyond those that are listed.
    pub more_problems: u64,
    /// What cannot be known, in sentences.
    pub unknown: Vec<String>,
}

impl AuditComparison {
    /// Whether nothing contradicts the audit.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty() && self.more_problems == 0
    }

    /// The result where there is no audit.
    pub(super) fn without_audit(why: &str) -> Self {
        let sentence = format!("{why}: events that were deleted, moved or added cannot be known");
        Self { unknown: vec![sentence], ..Self::default() }
    }

    fn add(&mut self, file: &RelativePath, line: Option<u64>, kind: AuditProblemKind, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(AuditProblem { file: file.clone(), line, kind, problem });
        } else {
            self.more_problems += 1;
        }
    }
}

/// An event that no entry of the audit names.
struct UnnamedEvent {
    line: u64,
    id: ShortId,
    why: &'static str,
}

/// An event below one of a later call.
struct MovedLine {
    line: u64,
    id: ShortId,
    above: AuditedLine,
}

/// The lines of a chronicle in the last commit, by the ids of their events; empty where there is no such file.
type CommittedLines = HashMap<ShortId, usize>;

/// Numbers of events of which something is not known.
#[derive(Default)]
struct Counts {
    older: u64,
    unaudited: u64,
    shortened: u64,
    committed: u64,
    merged: u64,
    unread: u64,
}

/// Reads a file of the last commit.
type ReadCommitted<'a> = dyn Fn(&RelativePath) -> Option<Vec<u8>> + 'a;

/// Compares the chronicles of a project, or `only` one of them, with the audit.
pub(super) fn compare(
    chronicle: &FileChronicle,
    reader: &AuditReader,
    committed: &ReadCommitted<'_>,
    only: Option<&RelativePath>,
) -> Result<AuditComparison, ToolError> {
    let shared = RelativePath::new(PROJECT_CHRONICLE)?;
    // Events of any file may be in the project's chronicle.
    let wanted = only.filter(|only| **only != shared);
    let audited = AuditedEvents::read(reader, wanted)?;
    let mut comparison = Comparison {
        audited: &audited,
        committed,
        found: HashSet::new(),
        counts: Counts::default(),
        result: AuditComparison::default(),
    };
    let files: BTreeSet<RelativePath> = match wanted {
        Some(only) => [only.clone(), shared.clone()].into(),
        None => chronicle.files_blocking()?.into_iter().collect(),
    };
    for file in &files {
        let is_reported = only.is_none_or(|only| only == file);
        comparison.file(chronicle, file, is_reported)?;
    }
    comparison.missing(chronicle, only);
    Ok(comparison.finish())
}

struct Comparison<'a> {
    audited: &'a AuditedEvents,
    committed: &'a ReadCommitted<'a>,
    found: HashSet<ShortId>,
    counts: Counts,
    result: AuditComparison,
}

/// A line whose event the audit names.
#[derive(Clone, Copy)]
struct AuditedLine {
    line: u64,
    id: ShortId,
    event: AuditedEvent,
}

/// The latest call of those before a line, by session and over all.
#[derive(Default)]
struct Latest {
    any: Option<AuditedLine>,
    by_session: HashMap<u32, AuditedLine>,
}

impl Latest {
    /// Returns a line above of a call that began when the call of this event had ended.
    fn line_after(&self, event: &AuditedEvent) -> Option<AuditedLine> {
        let same = self.by_session.get(&event.session).map(|other| (*other, 0));
        let any = self.any.map(|other| (other, ORDER_MS));
        let is_later = |other: &AuditedEvent, apart: u64| {
            other.sequence > event.sequence && other.start_ms > event.end_ms.saturating_add(apart)
        };
        [same, any]
            .into_iter()
            .flatten()
            .find(|(other, apart)| is_later(&other.event, *apart))
            .map(|(other, _)| other)
    }

    fn add(&mut self, line: AuditedLine) {
        let is_later = |known: &AuditedLine| line.event.start_ms > known.event.start_ms;
        if self.any.as_ref().is_none_or(is_later) {
            self.any = Some(line);
        }
        let known = self.by_session.entry(line.event.session).or_insert(line);
        if is_later(known) {
            *known = line;
        }
    }
}

impl Comparison<'_> {
    fn file(
        &mut self,
        chronicle: &FileChronicle,
        file: &RelativePath,
        is_reported: bool,
    ) -> Result<(), ToolError> {
        let mut latest = Latest::default();
        let mut unnamed: Vec<UnnamedEvent> = Vec::new();
        let mut moved: Vec<MovedLine> = Vec::new();
        chronicle.each_event(file, &mut |line, event| {
            let Some(id) = event.event_id.as_deref().and_then(short_id) else { return };
            let Some(audited) = self.audited.events.get(&id) else {
                if is_reported && let Some(why) = self.why_added(&event, latest.any.is_some()) {
                    unnamed.push(UnnamedEvent { line, id, why });
                }
                return;
            };
            if !self.audited.is_in(id, file) && file.as_str() != PROJECT_CHRONICLE {
                if is_reported {
                    let own = self.audited.chronicle(audited.chronicle);
                    let own = own.map(RelativePath::as_str).unwrap_or_default();
                    let problem = format!("the audit names this event as one of {own}; the line was moved");
                    self.result.add(file, Some(line), AuditProblemKind::Added, problem);
                }
                return;
            }
            // A line that merges have left twice has its place where it is first.
            if !self.found.insert(id) || !is_reported {
                return;
            }
            self.result.confirmed += 1;
            if let Some(above) = latest.line_after(audited) {
                moved.push(MovedLine { line, id, above });
            }
            latest.add(AuditedLine { line, id, event: *audited });
        })?;
        if !unnamed.is_empty() || !moved.is_empty() {
            let committed = committed_lines(self.committed, chronicle, file);
            self.unnamed(file, unnamed, &committed);
            self.moved(file, moved, &committed);
        }
        Ok(())
    }

    /// Why an event that the audit does not name was added by something other than a call; none where that is not known.
    fn why_added(&mut self, event: &ChronicleEvent, follows_audited: bool) -> Option<&'static str> {
        // Of everything the audit knows nothing where it has no entry.
        let first_ms = self.audited.first_ms.unwrap_or(u64::MAX);
        let entry = event.fields.get(AUDIT_FIELD);
        let time = entry.map(|entry| entry.get("time").and_then(Value::as_u64).unwrap_or(u64::MAX));
        // The kernel writes the time of the call twice. A line that contradicts itself was not written by it.
        let is_older = tgp_text::parse_rfc3339_ms(&event.timestamp)
            .is_some_and(|own| own < first_ms && time.is_none_or(|time| time < first_ms));
        if is_older && !follows_audited {
            self.counts.older += 1;
            return None;
        }
        if let (Some(entry), Some(time)) = (entry, time) {
            let session = entry.get("session").and_then(Value::as_str).unwrap_or_default();
            return match self.audited.session(session) {
                None => Some("no entry of the audit is from the session that it names"),
                Some(session) if self.audited.is_partial(session, time) => {
                    self.counts.shortened += 1;
                    None
                }
                Some(_) => Some("no entry of the audit names it, and it names a session of the audit"),
            };
        }
        if UNAUDITED_AGENTS.contains(&event.actor.agent.as_str()) {
            self.counts.unaudited += 1;
            return None;
        }
        Some("no entry of the audit names it")
    }

    /// Events that the audit does not name: those of a commit came with git, and of some the audit has not kept the text.
    fn unnamed(&mut self, file: &RelativePath, unnamed: Vec<UnnamedEvent>, committed: &CommittedLines) {
        let mut left = self.audited.unnamed_of(file);
        for event in unnamed {
            if committed.contains_key(&event.id) {
                self.counts.committed += 1;
            } else if left > 0 {
                left -= 1;
                self.counts.shortened += 1;
            } else {
                let problem = format!(
                    "{}; the line was added by hand, its call was killed before it was recorded, or it is from \
                     another machine",
                    event.why
                );
                self.result.add(file, Some(event.line), AuditProblemKind::Added, problem);
            }
        }
    }

    /// Lines that are not in the order of their calls. A merge puts the lines of one branch behind those of the other, and the
    /// last commit has them in that order then.
    fn moved(&mut self, file: &RelativePath, moved: Vec<MovedLine>, committed: &CommittedLines) {
        for MovedLine { line, id, above } in moved {
            let places = committed.get(&above.id).zip(committed.get(&id));
            if places.is_some_and(|(above, own)| above < own) {
                self.counts.merged += 1;
                continue;
            }
            let problem = format!(
                "the call of this event ended before that of line {} began; the lines were moved",
                above.line
            );
            self.result.add(file, Some(line), AuditProblemKind::Order, problem);
        }
    }

    /// Events that the audit names and no chronicle has.
    fn missing(&mut self, chronicle: &FileChronicle, only: Option<&RelativePath>) {
        let mut missing: BTreeMap<(u32, u64), ShortId> = BTreeMap::new();
        for (id, event) in &self.audited.events {
            if event.is_certain && !self.found.contains(id) {
                missing.insert((event.chronicle, event.sequence), *id);
            }
        }
        let unread: BTreeSet<&RelativePath> = self
            .audited
            .chronicles()
            .iter()
            // A chronicle that is out of the scope of now, or is where the other layout has it, is not read.
            .filter(|own| chronicle.file_of(own).is_err() || chronicle.unmigrated_file_of(own).is_some())
            .collect();
        for ((number, sequence), id) in missing {
            let Some(own) = self.audited.chronicle(number) else { continue };
            if only.is_some_and(|only| only != own) {
                continue;
            }
            if unread.contains(own) {
                self.counts.unread += 1;
                continue;
            }
            let id: String = format!("{id:032x}").chars().take(12).collect();
            let problem = format!(
                "the event {id} is missing, which entry {sequence} of the audit names; restore the chronicle from git or from a \
                 backup"
            );
            self.result.add(own, None, AuditProblemKind::Deleted, problem);
        }
    }

    fn finish(self) -> AuditComparison {
        let Self { counts, mut result, .. } = self;
        let sentences = [
            (counts.older, "older than the audit, which cannot tell whether one was deleted, moved or added"),
            (counts.unaudited, "of the Guardian or the valve, whose events the audit does not name"),
            (counts.shortened, "known to the audit without its text, so that it cannot tell which one it is"),
            (
                counts.committed,
                "in the last commit and not in this audit: it came with git from another machine",
            ),
            (
                counts.merged,
                "not in the order of the calls, as in the last commit: a merge leaves such an order",
            ),
            (
                counts.unread,
                "named by the audit and in a chronicle that is not read now: see `chronicle.scope` and `tgp chronicle migrate`",
            ),
        ];
        for (number, sentence) in sentences.into_iter().filter(|(number, _)| *number > 0) {
            let subject = if number == 1 { "1 event is".to_owned() } else { format!("{number} events are") };
            result.unknown.push(format!("{subject} {sentence}"));
        }
        result.problems.sort();
        result
    }
}

fn committed_lines(
    read: &ReadCommitted<'_>,
    chronicle: &FileChronicle,
    file: &RelativePath,
) -> CommittedLines {
    let Ok(stored) = chronicle.file_of(file) else { return CommittedLines::new() };
    let content = read(&stored).unwrap_or_default();
    let id = |line: &[u8]| -> Option<ShortId> {
        let event: ChronicleEvent = serde_json::from_slice(line).ok()?;
        short_id(&event.event_id?)
    };
    let mut lines = CommittedLines::new();
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if let Some(id) = id(line) {
            lines.entry(id).or_insert(number);
        }
    }
    lines
}
