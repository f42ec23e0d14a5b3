//! A project in a temporary folder, with a valve on it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tempfile::TempDir;
use tgp_chronicle::{ChronicleOptions, FileChronicle};
use tgp_contract::{
    Cancellation, Chronicle, ChronicleEvent, ChronicleLayout, Code, RelativePath, ToolError, canonical,
};
use tgp_valve::{
    Action, ActionFailure, ActionReport, Actions, ScanReport, ScanRequest, TRIGGER_EVENT, Trigger, Valve,
    ValveEvent, ValveOptions, ValveStatus,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub const PERSONAS: &str = ".sage/valve.yml";
/// One persona that reacts to everything.
pub const EVERYTHING: &str = "personas:\n  - name: all\n    filters: ['**']\n";
/// Whatever a test waits for has happened long before, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// More events than any test makes.
pub const MANY: usize = 100_000;

pub type Behaviour =
    Box<dyn Fn(&Path, &Action, &Trigger) -> Result<ActionReport, ActionFailure> + Send + Sync>;

/// Carries out actions by a function of the test.
pub struct Script {
    project: PathBuf,
    pub calls: Mutex<Vec<(Action, Trigger)>>,
    pub behaviour: Mutex<Behaviour>,
    /// When it is set, actions wait for their cancellation.
    pub hangs: Mutex<bool>,
    /// When it is set too, they do not end by it.
    pub is_deaf: Mutex<bool>,
}

#[async_trait]
impl Actions for Script {
    async fn act(
        &self,
        action: &Action,
        trigger: &Trigger,
        cancelled: Cancellation<'_>,
    ) -> Result<ActionReport, ActionFailure> {
        self.calls.lock().unwrap().push((action.clone(), trigger.clone()));
        if *self.hangs.lock().unwrap() {
            cancelled.await;
            if *self.is_deaf.lock().unwrap() {
                std::future::pending::<()>().await;
            }
            return Err(ToolError::new(Code::Runtime, "told to end").into());
        }
        (self.behaviour.lock().unwrap())(&self.project, action, trigger)
    }
}

pub struct World {
    pub folder: TempDir,
    pub chronicle: Arc<dyn Chronicle>,
    pub script: Arc<Script>,
    pub clock: Arc<AtomicU64>,
    pub all: bool,
    pub look: ScanRequest,
    pub layout: ChronicleLayout,
}

/// Chronicles beside the sources, where they are in the way of most files; `layout` is about the tree.
pub fn beside(folder: &Path) -> ChronicleOptions {
    ChronicleOptions { layout: ChronicleLayout::Beside, ..ChronicleOptions::new(folder) }
}

impl World {
    /// With real chronicles, which may be anywhere.
    pub fn new(personas: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = beside(folder.path());
        options.scope = vec!["**/*.sage".to_owned()];
        let chronicle = Arc::new(FileChronicle::open(&options).unwrap());
        Self::with(folder, chronicle, personas)
    }

    /// With real chronicles in their usual scope.
    pub fn scoped(personas: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let chronicle = Arc::new(FileChronicle::open(&beside(folder.path())).unwrap());
        Self::with(folder, chronicle, personas)
    }

    /// With real chronicles in the tree.
    pub fn in_tree(personas: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let chronicle = Arc::new(FileChronicle::open(&ChronicleOptions::new(folder.path())).unwrap());
        let mut world = Self::with(folder, chronicle, personas);
        world.layout = ChronicleLayout::Tree;
        world
    }

    pub fn with(folder: TempDir, chronicle: Arc<dyn Chronicle>, personas: &str) -> Self {
        let script = Arc::new(Script {
            project: folder.path().to_owned(),
            calls: Mutex::default(),
            behaviour: Mutex::new(Box::new(|_, _, _| Ok(ActionReport::default()))),
            hangs: Mutex::default(),
            is_deaf: Mutex::default(),
        });
        let clock = Arc::new(AtomicU64::new(1_800_000_000_000));
        let layout = ChronicleLayout::Beside;
        let world =
            Self { folder, chronicle, script, clock, all: false, look: ScanRequest::WhenTold, layout };
        world.write(PERSONAS, personas);
        world
    }

    pub fn act(&self, behaviour: Behaviour) {
        *self.script.behaviour.lock().unwrap() = behaviour;
    }

    /// The personas and files of the actions so far.
    pub fn calls(&self) -> Vec<String> {
        let calls = self.script.calls.lock().unwrap();
        calls.iter().map(|(_, trigger)| format!("{} {}", trigger.persona, trigger.file_path)).collect()
    }

    pub fn disk(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn journal(&self) -> PathBuf {
        self.disk(".tgp/state/valve.sqlite")
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.disk(path).parent().unwrap()).unwrap();
        std::fs::write(self.disk(path), content).unwrap();
    }

    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.disk(path)).unwrap();
    }

    pub fn rename(&self, from: &str, to: &str) {
        std::fs::create_dir_all(self.disk(to).parent().unwrap()).unwrap();
        std::fs::rename(self.disk(from), self.disk(to)).unwrap();
    }

    pub fn options(&self) -> ValveOptions {
        let clock = Arc::clone(&self.clock);
        ValveOptions {
            project: self.folder.path().to_owned(),
            repository: tgp_fs::RepositoryAccess::default(),
            journal: self.journal(),
            personas_file: at(PERSONAS),
            chronicle: Arc::clone(&self.chronicle),
            layout: self.layout,
            actions: Arc::clone(&self.script) as Arc<dyn Actions>,
            clock: Arc::new(move || clock.load(Ordering::Relaxed)),
            all: self.all,
            look: self.look,
        }
    }

    pub fn open(&self) -> Result<Valve, ToolError> {
        Valve::open(&self.options())
    }

    pub async fn scan(&self) -> ScanReport {
        self.open().unwrap().scan(never()).await.unwrap()
    }

    pub fn status(&self) -> ValveStatus {
        Valve::status(self.folder.path(), &self.journal(), &at(PERSONAS)).unwrap()
    }

    pub async fn events(&self, chronicle: &str) -> Vec<ChronicleEvent> {
        self.chronicle.tail(&at(chronicle), MANY).await.unwrap()
    }

    /// All events of all chronicles, by their number.
    pub async fn all_events(&self) -> Vec<ChronicleEvent> {
        let mut all = Vec::new();
        for file in self.chronicle.files().await.unwrap() {
            all.extend(self.chronicle.tail(&file, MANY).await.unwrap());
        }
        all.sort_by_key(|event| event.fields["sequence"].as_u64().unwrap());
        all
    }

    /// What was reported, in short, such as `all: renamed b.txt < a.txt`.
    pub async fn told(&self) -> Vec<String> {
        self.all_events().await.iter().filter(|event| event.kind == TRIGGER_EVENT).map(short).collect()
    }

    pub fn watch(&self) -> Watch {
        let mut valve = self.open().unwrap();
        let rescanner = valve.rescanner();
        let (sender, events) = mpsc::channel(MANY);
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let cancelled: Cancellation<'_> = Box::pin(async move {
                let _ = stopped.await;
            });
            valve.watch(sender, cancelled).await
        });
        Watch { events, stop, task, rescanner, seen: Vec::new() }
    }
}

/// A watch that runs beside the test.
pub struct Watch {
    events: mpsc::Receiver<ValveEvent>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ToolError>>,
    pub rescanner: tgp_valve::Rescanner,
    pub seen: Vec<ValveEvent>,
}

impl Watch {
    /// Waits for an event that fits, and keeps all before it.
    pub async fn until(&mut self, what: &str, fits: impl Fn(&ValveEvent) -> bool) -> ValveEvent {
        let limit = tokio::time::Instant::now() + PATIENCE;
        loop {
            match tokio::time::timeout_at(limit, self.events.recv()).await {
                Ok(Some(event)) => {
                    self.seen.push(event.clone());
                    if fits(&event) {
                        return event;
                    }
                }
                Ok(None) => panic!("the watch ended before {what}: {:?}", self.seen),
                Err(_) => panic!("no {what} came: {:?}", self.seen),
            }
        }
    }

    pub async fn started(&mut self) -> ValveEvent {
        self.until("start", |event| matches!(event, ValveEvent::Started { .. })).await
    }

    /// Waits until a change was reported, in the short form.
    pub async fn told(&mut self, wanted: &str) {
        self.until(
            wanted,
            |event| matches!(event, ValveEvent::Triggered { event, .. } if short(event) == wanted),
        )
        .await;
    }

    /// Ends it without notice, as a killed process ends.
    pub async fn abort(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    pub async fn end(mut self) -> Vec<ValveEvent> {
        let _ = self.stop.send(());
        let rest = async {
            while let Some(event) = self.events.recv().await {
                self.seen.push(event);
            }
            self.task.await.unwrap().unwrap();
        };
        tokio::time::timeout(PATIENCE, rest).await.expect("the watch did not end");
        self.seen
    }
}

pub fn short(event: &ChronicleEvent) -> String {
    let text = |name: &str| event.fields.get(name).and_then(|value| value.as_str());
    let mut said = format!(
        "{}: {} {}",
        text("persona").unwrap(),
        text("change").unwrap_or("?"),
        event.file_path.as_deref().unwrap()
    );
    if let Some(from) = text("from") {
        said.push_str(" < ");
        said.push_str(from);
    }
    said
}

pub fn at(path: &str) -> RelativePath {
    RelativePath::new(path).unwrap()
}

pub fn never() -> Cancellation<'static> {
    Box::pin(std::future::pending())
}

pub fn hash(content: impl AsRef<[u8]>) -> String {
    canonical::sha256_hex(content.as_ref())
}

/// Waits, with patience, until something is true.
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
pub fn assert_code<T: std::fmt::Debug>(result: Result<T, ToolError>, code: Code) -> ToolError {
    let error = result.unwrap_err();
    assert_eq!(error.code, code, "{error}");
    assert!(!error.help_of().unwrap_or_default().is_empty(), "{error} says no next step");
    error
}
