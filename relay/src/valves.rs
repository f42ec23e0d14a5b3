//! Valves on one project: each scan is made by a valve that is opened for it, so every scan follows an outage.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tgp_contract::{Cancellation, Chronicle, ChronicleLayout, Code, RelativePath, ToolError};
use tgp_relay_fakes::{FakeValve, Persona};
use tgp_valve::{
    Action, ActionFailure, ActionReport, Actions, ScanRequest, Trigger, Valve, ValveEvent, ValveOptions,
};

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

/// Opens a valve.
#[async_trait]
pub(crate) trait ValveSource: Send + Sync {
    /// Opens a valve, has it scan once, and closes it. Returns the reasons of events that no chronicle may take.
    async fn scan(&self) -> Result<Vec<String>, ToolError>;
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

#[async_trait]
impl ValveSource for RealValves {
    async fn scan(&self) -> Result<Vec<String>, ToolError> {
        let options = self.options.clone();
        let opened = tokio::task::spawn_blocking(move || Valve::open(&options)).await;
        let mut valve = opened.map_err(|error| {
            ToolError::new(Code::Internal, format!("the valve was not opened: {error}"))
        })??;
        let report = valve.scan(Box::pin(std::future::pending())).await?;
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
}

/// The naive valve.
pub(crate) struct FakeValves {
    project: PathBuf,
    memory: PathBuf,
    chronicle: Arc<dyn Chronicle>,
}

impl FakeValves {
    pub(crate) fn new(project: PathBuf, memory: &Path, chronicle: Arc<dyn Chronicle>) -> Self {
        Self { project, memory: memory.join("fake.json"), chronicle }
    }
}

#[async_trait]
impl ValveSource for FakeValves {
    async fn scan(&self) -> Result<Vec<String>, ToolError> {
        let chronicle = Arc::clone(&self.chronicle);
        FakeValve::new(&self.project, &self.memory, personas(), chronicle).scan().await
    }
}
