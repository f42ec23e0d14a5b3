//! Valves on one project: each scan and each watch is of a valve that is opened for it, so it follows an outage.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tgp_contract::{Cancellation, Chronicle, ChronicleLayout, Code, RelativePath, ToolError};
use tgp_relay_fakes::{FakeValve, Persona};
use tgp_valve::{
    Action, ActionFailure, ActionReport, Actions, ScanRequest, Trigger, Valve, ValveEvent, ValveOptions,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long a watch may take to end after it was told to.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
/// Events of a valve that wait to be read.
const WAITING_EVENTS: usize = 1_024;

/// The file of personas in the project.
pub(crate) const PERSONAS_FILE: &str = ".sage/valve.yml";

/// The personas of the suite, as the file has them.
pub(crate) const PERSONAS: &str = "\
personas:
  - name: TestGuardian
    filters: [\"secrets\"]
  - name: Librarian
    filters: [\"docs/\"]
";

/// The same for a valve that reads no file.
fn personas() -> Vec<Persona> {
    [("TestGuardian", "secrets"), ("Librarian", "docs/")]
        .map(|(name, filter)| Persona { name: name.to_owned(), filters: vec![filter.to_owned()] })
        .into()
}

/// A valve on one project. Each call opens one and closes it again.
#[async_trait]
pub trait ValvePart: Send + Sync {
    /// Scans once. Returns the reasons of events that no chronicle may take.
    ///
    /// # Errors
    /// When the project cannot be read, or the chronicle fails otherwise than by its scope.
    async fn scan(&self) -> Result<Vec<String>, ToolError>;

    /// Watches until it is told to stop. Returns when the files have been compared for the first time.
    ///
    /// # Errors
    /// As [`ValvePart::scan`].
    async fn watch(&self) -> Result<Watching, ToolError>;
}

/// What a valve of another implementation is made from.
#[derive(Clone)]
pub struct ValveGround {
    pub project: PathBuf,
    /// A directory for what it remembers from one scan to the next.
    pub memory: PathBuf,
    pub chronicle: Arc<dyn Chronicle>,
}

/// A valve that watches. Dropping it ends the watch as well, without waiting for the end.
pub struct Watching {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ToolError>>,
}

impl Watching {
    /// A watch that runs in a task and ends when `stop` is used or dropped.
    #[must_use]
    pub fn new(stop: oneshot::Sender<()>, task: JoinHandle<Result<(), ToolError>>) -> Self {
        Self { stop, task }
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends the watch and waits for its end.
    ///
    /// # Errors
    /// Why it ended before, or that it does not end.
    pub async fn stop(self) -> Result<(), ToolError> {
        let _ = self.stop.send(());
        let ended = tokio::time::timeout(STOP_PATIENCE, self.task).await;
        let failed = |what: String| ToolError::new(Code::Runtime, format!("the watch {what}"));
        ended
            .map_err(|_| failed(format!("did not end within {} s", STOP_PATIENCE.as_secs())))?
            .map_err(|error| failed(format!("was interrupted: {error}")))?
    }
}

/// The valve of this product.
pub(crate) struct RealValves {
    options: ValveOptions,
}

impl RealValves {
    pub(crate) fn new(
        project: PathBuf,
        memory: &Path,
        chronicle: Arc<dyn Chronicle>,
        layout: ChronicleLayout,
    ) -> Result<Self, ToolError> {
        let clock = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        };
        let options = ValveOptions {
            project,
            repository: tgp_fs::RepositoryAccess::default(),
            journal: memory.join("valve.sqlite"),
            personas_file: RelativePath::new(PERSONAS_FILE)?,
            chronicle,
            layout,
            actions: Arc::new(NoActions),
            clock: Arc::new(clock),
            all: false,
            look: ScanRequest::WhenTold,
        };
        Ok(Self { options })
    }
}

/// The personas of the suite only record.
struct NoActions;

#[async_trait]
impl Actions for NoActions {
    async fn act(
        &self,
        _action: &Action,
        _trigger: &Trigger,
        _cancelled: Cancellation<'_>,
    ) -> Result<ActionReport, ActionFailure> {
        Err(ToolError::new(Code::Internal, "no persona of the relay has an action").into())
    }
}

impl RealValves {
    async fn open(&self) -> Result<Valve, ToolError> {
        let options = self.options.clone();
        let opened = tokio::task::spawn_blocking(move || Valve::open(&options)).await;
        opened
            .map_err(|error| ToolError::new(Code::Internal, format!("the valve was not opened: {error}")))?
    }
}

#[async_trait]
impl ValvePart for RealValves {
    async fn scan(&self) -> Result<Vec<String>, ToolError> {
        let report = self.open().await?.scan(Box::pin(std::future::pending())).await?;
        let mut skipped = Vec::new();
        for event in report.events {
            match event {
                ValveEvent::Skipped { reason, .. } => skipped.push(reason),
                ValveEvent::Problem { error } => return Err(error),
                _ => {}
            }
        }
        Ok(skipped)
    }

    async fn watch(&self) -> Result<Watching, ToolError> {
        let mut valve = self.open().await?;
        let (sender, mut events) = mpsc::channel(WAITING_EVENTS);
        let (stop, stopped) = oneshot::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let task = tokio::spawn(async move {
            let cancelled = Box::pin(async move {
                let _ = stopped.await;
            });
            let listening = async {
                let mut begun = Some(begun);
                let mut problem = None;
                while let Some(event) = events.recv().await {
                    match event {
                        ValveEvent::Started { .. } => {
                            let _ = begun.take().map(|begun| begun.send(()));
                        }
                        ValveEvent::Problem { error } => problem = problem.or(Some(error)),
                        _ => {}
                    }
                }
                problem
            };
            let (watched, problem) = tokio::join!(valve.watch(sender, cancelled), listening);
            watched?;
            problem.map_or(Ok(()), Err)
        });
        match has_begun.await {
            Ok(()) => Ok(Watching::new(stop, task)),
            // It has ended before it began.
            Err(_) => {
                Watching::new(stop, task).stop().await?;
                Err(ToolError::new(Code::Runtime, "the watch ended before its first scan"))
            }
        }
    }
}

/// The naive valve with the personas of the suite.
pub struct FakeValves {
    project: PathBuf,
    memory: PathBuf,
    chronicle: Arc<dyn Chronicle>,
}

impl FakeValves {
    /// The fake on this ground.
    #[must_use]
    pub fn new(ground: ValveGround) -> Self {
        let ValveGround { project, memory, chronicle } = ground;
        Self { project, memory: memory.join("fake.json"), chronicle }
    }

    fn open(&self) -> FakeValve {
        FakeValve::new(&self.project, &self.memory, personas(), Arc::clone(&self.chronicle))
    }
}

#[async_trait]
impl ValvePart for FakeValves {
    async fn scan(&self) -> Result<Vec<String>, ToolError> {
        self.open().scan().await
    }

    async fn watch(&self) -> Result<Watching, ToolError> {
        let valve = self.open();
        valve.scan().await?;
        let (stop, stopped) = oneshot::channel();
        Ok(Watching::new(stop, tokio::spawn(async move { valve.watch(stopped).await })))
    }
}
