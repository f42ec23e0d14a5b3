//! Valves with one fault each. What they say is changed on its way to the chronicle; how they look, before and after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{AppendResult, Chronicle, ChronicleEvent, PROJECT_CHRONICLE, RelativePath, ToolError};
use tgp_relay::{FakeValves, Substitutes, ValveGround, ValvePart, Watching};
use tokio::sync::oneshot;

use super::{Line, Mutant, corpus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    TellsTwice,
    HidesDeletions,
    CallsAllCreated,
    OtherPersona,
    OtherAgent,
    NoTrigger,
    OtherPath,
    RunsBackwards,
    LosesSome,
    ForgetsTheProject,
    WritesOutside,
    TellsTheFirstLook,
    ForgetsEachTime,
    SeesTouched,
    WatchIsBlind,
    WatchesOnce,
    WatchForgets,
    WatchHidesChanges,
}

const TABLE: &[Line<Fault>] = &[
    (
        Fault::TellsTwice,
        "tells-twice",
        "a change is one event",
        &["t6.trigger", "t6.watch", "t6.rapid-changes"],
    ),
    (
        Fault::HidesDeletions,
        "hides-deletions",
        "what is gone is told",
        &["t6.downtime-backfill", "t6.rapid-changes"],
    ),
    (
        Fault::CallsAllCreated,
        "calls-all-created",
        "an event says what kind of change it was",
        &["t6.append-only", "t6.downtime-backfill"],
    ),
    (Fault::OtherPersona, "other-persona", "an event names the persona", &["t6.trigger"]),
    (Fault::OtherAgent, "other-agent", "an event is by the agent `valve`", &["t6.trigger"]),
    (Fault::NoTrigger, "no-trigger", "an event has what triggered it", &["t6.trigger"]),
    (Fault::OtherPath, "other-path", "an event has the path of its file", &["t6.trigger"]),
    (Fault::RunsBackwards, "runs-backwards", "times do not run backwards", &["t6.append-only"]),
    (Fault::LosesSome, "loses-some", "no change is lost", &["t6.append-only", "t6.watch"]),
    (
        Fault::ForgetsTheProject,
        "forgets-the-project",
        "what has no chronicle of its own is told or skipped with a reason",
        &["t6.scope-guard"],
    ),
    (Fault::WritesOutside, "writes-outside", "nothing is written outside the scope", &["t6.scope-guard"]),
    (Fault::TellsTheFirstLook, "tells-the-first-look", "the first look only remembers", &["t6.trigger"]),
    (
        Fault::ForgetsEachTime,
        "forgets-each-time",
        "what changed during an outage is told",
        &["t6.downtime-backfill"],
    ),
    (
        Fault::SeesTouched,
        "sees-touched",
        "a file with the same content has not changed",
        &["t6.rapid-changes"],
    ),
    (Fault::WatchIsBlind, "watch-is-blind", "a watch tells changes by itself", &["t6.watch"]),
    (Fault::WatchesOnce, "watches-once", "a watch goes on after its first event", &["t6.watch"]),
    (Fault::WatchForgets, "watch-forgets", "what a watch has told is not told again", &["t6.watch"]),
    (
        Fault::WatchHidesChanges,
        "watch-hides-changes",
        "a watch tells changes of files that it has seen before",
        &["t6.watch"],
    ),
];

fn part(fault: Fault) -> Substitutes {
    let make = move |ground: ValveGround| -> Result<Arc<dyn ValvePart>, ToolError> {
        let is_watching = Arc::new(AtomicBool::new(false));
        let filtered = FilteredChronicle {
            fault,
            project: ground.project.clone(),
            inner: ground.chronicle.clone(),
            events: AtomicU64::new(0),
            is_watching: Arc::clone(&is_watching),
        };
        let chronicle: Arc<dyn Chronicle> = Arc::new(filtered);
        Ok(Arc::new(FaultyValve {
            fault,
            inner: FakeValves::new(ValveGround { chronicle, ..ground.clone() }),
            ground,
            is_watching,
            written: Mutex::default(),
        }))
    };
    Substitutes { valve: Some(Arc::new(make)), ..Substitutes::default() }
}

pub(super) fn sound() -> Substitutes {
    part(Fault::None)
}

pub(super) fn mutants() -> Vec<Mutant> {
    corpus("valve", TABLE, part)
}

/// The chronicle as a faulty valve writes it.
struct FilteredChronicle {
    fault: Fault,
    project: PathBuf,
    inner: Arc<dyn Chronicle>,
    events: AtomicU64,
    is_watching: Arc<AtomicBool>,
}

#[async_trait]
impl Chronicle for FilteredChronicle {
    async fn append(
        &self,
        file: &RelativePath,
        mut event: ChronicleEvent,
    ) -> Result<AppendResult, ToolError> {
        let number = self.events.fetch_add(1, Ordering::SeqCst);
        let is_of_project = file.as_str() == PROJECT_CHRONICLE;
        let change = event.fields.get("change").and_then(Value::as_str).unwrap_or_default().to_owned();
        let swallows = match self.fault {
            Fault::HidesDeletions => change == "deleted",
            Fault::LosesSome => number % 5 == 4,
            Fault::ForgetsTheProject | Fault::WritesOutside => is_of_project,
            Fault::WatchHidesChanges => change == "changed" && self.is_watching.load(Ordering::SeqCst),
            _ => false,
        };
        if swallows {
            if self.fault == Fault::WritesOutside {
                std::fs::write(self.project.join("docs/guide.md.sage"), "{}\n").unwrap();
            }
            return Ok(AppendResult { event_id: "0".repeat(64), appended: true });
        }
        match self.fault {
            Fault::TellsTwice => {
                let mut again = event.clone();
                again.fields.insert("again".to_owned(), json!(true));
                self.inner.append(file, again).await?;
            }
            Fault::CallsAllCreated => drop(event.fields.insert("change".to_owned(), json!("created"))),
            Fault::OtherPersona => drop(event.fields.insert("persona".to_owned(), json!("Librarian"))),
            Fault::OtherAgent => event.actor.agent = "watcher".to_owned(),
            Fault::NoTrigger => drop(event.fields.remove("trigger")),
            Fault::OtherPath => event.file_path = event.file_path.map(|path| format!("./{path}")),
            Fault::RunsBackwards => event.timestamp = format!("2026-01-01T00:{:02}:00Z", 59 - number % 60),
            _ => {}
        }
        self.inner.append(file, event).await
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        self.inner.tail(file, most).await
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        self.inner.files().await
    }
}

struct FaultyValve {
    fault: Fault,
    ground: ValveGround,
    inner: FakeValves,
    is_watching: Arc<AtomicBool>,
    written: Mutex<BTreeMap<String, SystemTime>>,
}

impl FaultyValve {
    fn memory(&self) -> PathBuf {
        self.ground.memory.join("fake.json")
    }

    fn remember(&self, hashes: &Value) {
        std::fs::create_dir_all(&self.ground.memory).unwrap();
        std::fs::write(self.memory(), hashes.to_string()).unwrap();
    }

    fn known(&self) -> BTreeMap<String, String> {
        let known = std::fs::read(self.memory());
        known.map_or_else(|_| BTreeMap::new(), |known| serde_json::from_slice(&known).unwrap())
    }

    fn written_at(&self, path: &str) -> Option<SystemTime> {
        std::fs::metadata(self.ground.project.join(path)).ok()?.modified().ok()
    }

    /// Makes the inner valve believe that each file has changed that was written since the last look.
    fn forget_touched(&self) {
        let mut known = self.known();
        let written = self.written.lock().unwrap().clone();
        for (path, hash) in &mut known {
            if written.get(path).is_some_and(|before| self.written_at(path) != Some(*before)) {
                *hash = "touched".to_owned();
            }
        }
        if !known.is_empty() {
            self.remember(&json!(known));
        }
    }

    fn remember_times(&self) {
        let times = self.known().into_keys().filter_map(|path| Some((path.clone(), self.written_at(&path)?)));
        *self.written.lock().unwrap() = times.collect();
    }
}

/// Whether any chronicle has events about a path.
async fn has_events(chronicle: &dyn Chronicle) -> bool {
    !chronicle.files().await.unwrap().is_empty()
}

#[async_trait]
impl ValvePart for FaultyValve {
    async fn scan(&self) -> Result<Vec<String>, ToolError> {
        self.is_watching.store(false, Ordering::SeqCst);
        match self.fault {
            Fault::TellsTheFirstLook if !self.memory().exists() => self.remember(&json!({})),
            Fault::ForgetsEachTime => drop(std::fs::remove_file(self.memory())),
            Fault::SeesTouched => self.forget_touched(),
            _ => {}
        }
        let skipped = self.inner.scan().await?;
        self.remember_times();
        Ok(skipped)
    }

    async fn watch(&self) -> Result<Watching, ToolError> {
        self.is_watching.store(true, Ordering::SeqCst);
        if !matches!(self.fault, Fault::WatchIsBlind | Fault::WatchesOnce | Fault::WatchForgets) {
            return self.inner.watch().await;
        }
        let (stop, stopped) = oneshot::channel();
        let chronicle = Arc::clone(&self.ground.chronicle);
        let (fault, memory) = (self.fault, self.memory());
        let before = std::fs::read(&memory).unwrap();
        let watching = if fault == Fault::WatchIsBlind { None } else { Some(self.inner.watch().await?) };
        let task = tokio::spawn(async move {
            if fault == Fault::WatchesOnce {
                while !has_events(chronicle.as_ref()).await {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                // What it has not told by now it never tells.
                watching.unwrap().stop().await?;
                let _ = stopped.await;
                return Ok(());
            }
            let _ = stopped.await;
            if let Some(watching) = watching {
                watching.stop().await?;
                restore(&memory, &before);
            }
            Ok(())
        });
        Ok(Watching::new(stop, task))
    }
}

/// Nothing of what was seen since is remembered.
fn restore(memory: &Path, before: &[u8]) {
    std::fs::write(memory, before).unwrap();
}
