//! Chronicles with one fault each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tgp_contract::{
    AppendResult, Chronicle, ChronicleEvent, Code, RelativePath, ToolError, canonical, decode_line,
};
use tgp_relay::Substitutes;
use tgp_relay_fakes::FakeChronicle;

use super::{Line, Mutant, corpus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    InMemory,
    WritesAgain,
    SaysAppended,
    KnowsNoScope,
    EntersGit,
    EntersFolders,
    TakesEmptyNames,
    TakesAnyTime,
    TakesAnyId,
    RoundsIntegers,
    LeavesAFile,
    CapitalId,
    PlainJson,
    DropsFields,
    LosesEveryThird,
    SortsItsFile,
    ChangesThePast,
    KnowsByType,
    ForgetsWhatItKnew,
    SpaceAtTheEnd,
    NoLineEnd,
    Races,
    ForgetsTheNewest,
    GivesTheOldest,
    GivesReversed,
    ZeroIsAll,
    AbsentIsAnError,
    UnsortedFiles,
    ForgetsSources,
}

/// What a part waits for others, and how often at most.
const PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSES: usize = 500;

const TABLE: &[Line<Fault>] = &[
    (Fault::InMemory, "lost-at-exit", "events are kept in files", &["fixtures.kept"]),
    (
        Fault::WritesAgain,
        "writes-again",
        "a known event is not written again",
        &["fixtures.chronicle-events"],
    ),
    (
        Fault::SaysAppended,
        "says-appended",
        "`appended` is false for a known event",
        &["fixtures.chronicle-events", "t3.reconcile-once"],
    ),
    (
        Fault::KnowsNoScope,
        "knows-no-scope",
        "what is out of scope is EPERMISSION",
        &["fixtures.refused-events", "t6.scope-guard"],
    ),
    (Fault::EntersGit, "enters-git", "nothing in a `.git` is a chronicle", &["fixtures.refused-events"]),
    (
        Fault::EntersFolders,
        "enters-folders",
        "`.sage` has no folders of chronicles",
        &["fixtures.refused-events"],
    ),
    (
        Fault::TakesEmptyNames,
        "takes-empty-names",
        "type and actor are not empty",
        &["fixtures.refused-events"],
    ),
    (Fault::TakesAnyTime, "takes-any-time", "a time is one of RFC 3339", &["fixtures.refused-events"]),
    (Fault::TakesAnyId, "takes-any-id", "an eventId is the event's own", &["fixtures.refused-events"]),
    (
        Fault::RoundsIntegers,
        "rounds-integers",
        "an integer that is no double is refused",
        &["fixtures.refused-events"],
    ),
    (Fault::LeavesAFile, "leaves-a-file", "a refused event leaves nothing", &["fixtures.refused-events"]),
    (Fault::CapitalId, "capital-id", "an eventId is in lower case", &["fixtures.canonical-json"]),
    (
        Fault::PlainJson,
        "plain-json",
        "an eventId is the hash of canonical JSON",
        &["fixtures.canonical-json"],
    ),
    (
        Fault::DropsFields,
        "drops-fields",
        "fields that it does not know are kept",
        &["fixtures.chronicle-events", "t3.reconcile"],
    ),
    (
        Fault::LosesEveryThird,
        "loses-every-third",
        "what was appended is there",
        &["fixtures.chronicle-events", "t6.append-only"],
    ),
    (Fault::SortsItsFile, "sorts-its-file", "events stay in their order", &["t6.append-only"]),
    (
        Fault::ChangesThePast,
        "changes-the-past",
        "past events stay as they were",
        &["t6.append-only", "t6.watch"],
    ),
    (Fault::KnowsByType, "knows-by-type", "an event is known by all of its fields", &["t6.append-only"]),
    (
        Fault::ForgetsWhatItKnew,
        "forgets-what-it-knew",
        "an event of an earlier process is known",
        &["fixtures.kept"],
    ),
    (Fault::SpaceAtTheEnd, "space-at-the-end", "a line is canonical, byte for byte", &["fixtures.kept"]),
    (Fault::NoLineEnd, "no-line-end", "each line has its line feed", &["fixtures.kept"]),
    (Fault::Races, "races", "an event that many append at once is there once", &["t3.reconcile-once"]),
    (
        Fault::ForgetsTheNewest,
        "forgets-the-newest",
        "a tail ends with the newest event",
        &["fixtures.chronicle-events", "t6.trigger", "t3.reconcile", "t3.bullet-wound"],
    ),
    (Fault::GivesTheOldest, "gives-the-oldest", "a tail has the last events", &["fixtures.chronicle-events"]),
    (
        Fault::GivesReversed,
        "gives-reversed",
        "a tail begins with the oldest event",
        &["fixtures.chronicle-events", "t6.append-only"],
    ),
    (Fault::ZeroIsAll, "zero-is-all", "a tail of none is empty", &["fixtures.chronicle-events"]),
    (
        Fault::AbsentIsAnError,
        "absent-is-an-error",
        "a chronicle that is not there has no events",
        &["fixtures.chronicle-events"],
    ),
    (
        Fault::UnsortedFiles,
        "unsorted-files",
        "the list of chronicles is sorted",
        &["fixtures.chronicle-events"],
    ),
    (
        Fault::ForgetsSources,
        "forgets-sources",
        "the list has the chronicles in `src`",
        &["fixtures.chronicle-events", "t3.reconcile"],
    ),
];

fn part(fault: Fault) -> Substitutes {
    let make = move |project: &Path| -> Result<Arc<dyn Chronicle>, ToolError> {
        Ok(Arc::new(FaultyChronicle::new(project, fault)))
    };
    Substitutes { chronicle: Some(Arc::new(make)), ..Substitutes::default() }
}

pub(super) fn sound() -> Substitutes {
    part(Fault::None)
}

pub(super) fn mutants() -> Vec<Mutant> {
    corpus("chronicle", TABLE, part)
}

struct FaultyChronicle {
    fault: Fault,
    project: PathBuf,
    inner: FakeChronicle,
    memory: Mutex<BTreeMap<RelativePath, Vec<ChronicleEvent>>>,
    known: Mutex<BTreeSet<String>>,
    appends: AtomicU64,
    /// How many have found that an event is not there.
    rivals: Mutex<BTreeMap<String, u32>>,
}

impl FaultyChronicle {
    fn new(project: &Path, fault: Fault) -> Self {
        Self {
            fault,
            project: project.to_owned(),
            inner: FakeChronicle::new(project),
            memory: Mutex::default(),
            known: Mutex::default(),
            appends: AtomicU64::new(0),
            rivals: Mutex::default(),
        }
    }

    /// Writes whatever it is, wherever it is.
    fn write(&self, place: &Path, text: &str) {
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().append(true).create(true).open(place).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Keeps an event without any check.
    fn keep(&self, file: &RelativePath, event: ChronicleEvent) -> AppendResult {
        let id = event.event_id.clone().unwrap_or_else(|| event.compute_id().unwrap());
        let event = ChronicleEvent { event_id: Some(id.clone()), ..event };
        let place = self.inner.place(file).unwrap_or_else(|_| self.project.join(file.as_str()));
        self.write(&place, &format!("{}\n", event.to_canonical().unwrap()));
        AppendResult { event_id: id, appended: true }
    }

    /// The lines of a file, however they end.
    fn lines(&self, file: &RelativePath) -> Vec<String> {
        let text = std::fs::read_to_string(self.inner.place(file).unwrap()).unwrap_or_default();
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    fn rewrite(&self, file: &RelativePath, change: impl FnOnce(&mut Vec<String>)) {
        let mut lines = self.lines(file);
        change(&mut lines);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.inner.place(file).unwrap(), text).unwrap();
    }

    /// The line of an event that is one, in a scope that is one.
    fn checked(&self, file: &RelativePath, event: &ChronicleEvent) -> Result<(String, String), ToolError> {
        self.inner.place(file)?;
        let refuse = |message: String| ToolError::new(Code::Validation, message);
        event.check_form().map_err(|error| refuse(error.to_string()))?;
        let own = event.compute_id().map_err(|error| refuse(error.to_string()))?;
        if event.event_id.as_ref().is_some_and(|given| *given != own) {
            return Err(refuse("another id".to_owned()));
        }
        let event = ChronicleEvent { event_id: Some(own.clone()), ..event.clone() };
        Ok((own, event.to_canonical().unwrap()))
    }

    /// Whether the fault is to take an event that is refused.
    fn takes(&self, file: &RelativePath, event: &ChronicleEvent) -> bool {
        let is_outside = self.inner.place(file).is_err();
        let has_empty = [&event.kind, &event.actor.agent, &event.actor.id].iter().any(|word| word.is_empty());
        match self.fault {
            Fault::KnowsNoScope => is_outside,
            Fault::EntersGit => is_outside && file.as_str().starts_with("src/.git/"),
            Fault::EntersFolders => is_outside && file.as_str().starts_with(".sage/"),
            Fault::TakesEmptyNames => has_empty,
            Fault::TakesAnyTime => !has_empty && event.check_form().is_err(),
            Fault::TakesAnyId => event.event_id.is_some(),
            _ => false,
        }
    }
}

#[async_trait]
impl Chronicle for FaultyChronicle {
    async fn append(&self, file: &RelativePath, event: ChronicleEvent) -> Result<AppendResult, ToolError> {
        if self.takes(file, &event) {
            return Ok(self.keep(file, event));
        }
        let number = self.appends.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::InMemory => {
                let (event_id, _) = self.checked(file, &event)?;
                let mut memory = self.memory.lock().unwrap();
                let events = memory.entry(file.clone()).or_default();
                let appended = !events.iter().any(|known| known.event_id.as_ref() == Some(&event_id));
                if appended {
                    events.push(ChronicleEvent { event_id: Some(event_id.clone()), ..event });
                }
                Ok(AppendResult { event_id, appended })
            }
            Fault::WritesAgain => {
                let result = self.inner.append(file, event.clone()).await?;
                if !result.appended {
                    self.keep(file, event);
                }
                Ok(result)
            }
            Fault::SaysAppended => {
                Ok(AppendResult { appended: true, ..self.inner.append(file, event).await? })
            }
            Fault::RoundsIntegers => {
                let mut event = event;
                for value in event.fields.values_mut() {
                    if let Some(double) = value.as_f64() {
                        *value = json!(double);
                    }
                }
                self.inner.append(file, ChronicleEvent { event_id: None, ..event }).await
            }
            Fault::LeavesAFile => {
                let result = self.inner.append(file, event).await;
                if let (Err(_), Ok(place)) = (&result, self.inner.place(file)) {
                    self.write(&place, "");
                }
                result
            }
            Fault::CapitalId => {
                let result = self.inner.append(file, event).await?;
                Ok(AppendResult { event_id: result.event_id.to_uppercase(), ..result })
            }
            Fault::PlainJson => {
                let plain = serde_json::to_string(&event).unwrap();
                let result = self.inner.append(file, event).await?;
                Ok(AppendResult { event_id: canonical::sha256_hex(plain.as_bytes()), ..result })
            }
            Fault::DropsFields => {
                let event = ChronicleEvent { event_id: None, fields: serde_json::Map::new(), ..event };
                self.inner.append(file, event).await
            }
            Fault::LosesEveryThird if number % 3 == 2 => {
                Ok(AppendResult { event_id: self.checked(file, &event)?.0, appended: true })
            }
            Fault::SortsItsFile => {
                let result = self.inner.append(file, event).await?;
                self.rewrite(file, |lines| lines.sort());
                Ok(result)
            }
            Fault::ChangesThePast => {
                let result = self.inner.append(file, event).await?;
                self.rewrite(file, |lines| {
                    let [first, _, ..] = lines.as_mut_slice() else { return };
                    let mut past = decode_line(first.as_bytes()).unwrap();
                    past.fields.insert("read".to_owned(), json!(true));
                    past.event_id = None;
                    past.event_id = Some(past.compute_id().unwrap());
                    *first = past.to_canonical().unwrap();
                });
                Ok(result)
            }
            Fault::KnowsByType => {
                let (event_id, _) = self.checked(file, &event)?;
                let is_known = self.inner.tail(file, usize::MAX).await?.iter().any(|known| {
                    known.kind == event.kind && known.fields.get("change") == event.fields.get("change")
                });
                if is_known {
                    return Ok(AppendResult { event_id, appended: false });
                }
                self.inner.append(file, event).await
            }
            Fault::ForgetsWhatItKnew => {
                let (event_id, line) = self.checked(file, &event)?;
                let appended = self.known.lock().unwrap().insert(format!("{file} {line}"));
                if appended {
                    self.keep(file, event);
                }
                Ok(AppendResult { event_id, appended })
            }
            Fault::SpaceAtTheEnd | Fault::NoLineEnd => {
                let (event_id, line) = self.checked(file, &event)?;
                let lines = self.lines(file);
                let appended = !lines.contains(&line);
                if appended {
                    let text = match (self.fault, lines.is_empty()) {
                        (Fault::SpaceAtTheEnd, _) => format!("{line} \n"),
                        (_, true) => line,
                        (_, false) => format!("\n{line}"),
                    };
                    self.write(&self.inner.place(file)?, &text);
                }
                Ok(AppendResult { event_id, appended })
            }
            Fault::Races => {
                let (event_id, line) = self.checked(file, &event)?;
                let is_known = self.lines(file).contains(&line);
                if !is_known {
                    *self.rivals.lock().unwrap().entry(event_id.clone()).or_default() += 1;
                    // However busy the machine is, another one has looked as well before the first one writes.
                    for _ in 0..MAX_PAUSES {
                        if self.rivals.lock().unwrap()[&event_id] > 1 {
                            break;
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                    self.keep(file, event);
                }
                Ok(AppendResult { event_id, appended: !is_known })
            }
            _ => self.inner.append(file, event).await,
        }
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        if matches!(self.fault, Fault::InMemory) {
            let memory = self.memory.lock().unwrap();
            let events = memory.get(file).cloned().unwrap_or_default();
            return Ok(events.into_iter().rev().take(most).rev().collect());
        }
        if matches!(self.fault, Fault::SpaceAtTheEnd | Fault::NoLineEnd) {
            let lines = self.lines(file);
            let last = lines.iter().skip(lines.len().saturating_sub(most));
            return Ok(last.map(|line| decode_line(line.as_bytes()).unwrap()).collect());
        }
        // What was taken out of scope is nowhere to be read.
        let all = self.inner.tail(file, usize::MAX).await?;
        let mut events = self.inner.tail(file, most).await?;
        match self.fault {
            Fault::ForgetsTheNewest => drop(events.pop()),
            Fault::GivesTheOldest => events = all.into_iter().take(most).collect(),
            Fault::GivesReversed => events.reverse(),
            Fault::ZeroIsAll if most == 0 => events = all,
            Fault::AbsentIsAnError if all.is_empty() => {
                return Err(ToolError::new(Code::NotFound, format!("there is no `{file}`")));
            }
            _ => {}
        }
        Ok(events)
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        let mut files = match self.fault {
            Fault::InMemory => self.memory.lock().unwrap().keys().cloned().collect(),
            _ => self.inner.files().await?,
        };
        match self.fault {
            Fault::UnsortedFiles => files.reverse(),
            Fault::ForgetsSources => files.retain(|file| file.as_str().starts_with(".sage/")),
            _ => {}
        }
        Ok(files)
    }
}
