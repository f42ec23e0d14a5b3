//! The valve of one project.

use std::path::Path;
use std::sync::Arc;

use tgp_contract::{Cancellation, ChronicleLayout, RelativePath, ToolError};
use tgp_fs::RepositoryAccess;
use tokio::sync::mpsc;

use crate::engine::{Core, Parts, Stop, read_personas};
use crate::failure::Failure;
use crate::fs_event_queue::FsEventQueue;
use crate::lock::{self, Lock};
use crate::mutex::locked;
use crate::outlet::EventSink;
use crate::personas::Personas;
use crate::report::{PersonaStatus, ScanReport, ValveStatus, Watcher};
use crate::tree::Tree;
use crate::watch::Run;
use crate::{Action, ScanRequest, ValveEvent, ValveOptions, journal};

/// The valve of one project. While it lives, no other process can open one.
pub struct Valve {
    core: Arc<Core>,
    hints: Arc<FsEventQueue>,
    look: ScanRequest,
}

impl std::fmt::Debug for Valve {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Valve").field("project", &self.core.tree.root()).finish_non_exhaustive()
    }
}

/// Asks a running watch to scan the whole tree.
#[derive(Clone, Debug)]
pub struct Rescanner {
    hints: Arc<FsEventQueue>,
}

impl Rescanner {
    /// The scan comes soon, and is reported with this reason.
    pub fn rescan(&self, reason: &str) {
        self.hints.whole(reason);
    }
}

impl Valve {
    /// Takes the lock, reads the personas and opens the journal. Blocks as files do.
    ///
    /// # Errors
    /// `ECONFLICT` while another valve works on the project, `ECONFIG` for personas that cannot be read, `ENOTFOUND` for a
    /// project that is not there.
    pub fn open(options: &ValveOptions) -> Result<Self, ToolError> {
        let tree = tree(&options.project, options.repository.clone(), options.layout)?;
        let now_ms = (options.clock)();
        let lock = Lock::take(&options.journal, &note("open", now_ms))?;
        let opened = journal::open(&options.journal, now_ms, lock.was_held)?;
        let parts = Parts { tree, journal: opened.journal, lock, loss: opened.loss };
        let core = Arc::new(Core::new(parts, options)?);
        Ok(Self { core, hints: Arc::default(), look: options.look })
    }

    /// Scans the whole tree once, reports what has changed since the last scan, carries out the actions that follow
    /// from it, and waits for them. What the actions change is reported by the next scan.
    ///
    /// # Errors
    /// `ENOTFOUND` when the project is gone, `EINTEGRITY` for a journal that broke meanwhile, `ERUNTIME` with
    /// `details.cancelled` when it was stopped. What was not written down is found again by the next scan.
    pub async fn scan(&mut self, cancelled: Cancellation<'_>) -> Result<ScanReport, ToolError> {
        self.purpose("scan");
        let outlet = EventSink::Report(Box::default());
        let run = Run::new(Arc::clone(&self.core), outlet, Stop::new(cancelled));
        match run.once().await? {
            EventSink::Report(report) => Ok(*report),
            EventSink::Listener { .. } => Ok(ScanReport::default()),
        }
    }

    /// Watches until `cancelled` completes. The first event is [`ValveEvent::Started`] or a problem before it. A listener
    /// that does not take its events misses some, and gets their number.
    ///
    /// # Errors
    /// As [`Valve::scan`], but for being stopped.
    pub async fn watch(
        &mut self,
        events: mpsc::Sender<ValveEvent>,
        cancelled: Cancellation<'_>,
    ) -> Result<(), ToolError> {
        self.purpose("watch");
        let every = match self.look {
            ScanRequest::WhenTold => None,
            ScanRequest::Every(every) => Some(every),
        };
        let run = Run::new(
            Arc::clone(&self.core),
            EventSink::Listener { sender: events, missed: 0 },
            Stop::new(cancelled),
        );
        Ok(run.watch(&self.hints, every).await?)
    }

    /// For callers that want a running watch to scan again.
    #[must_use]
    pub fn rescanner(&self) -> Rescanner {
        Rescanner { hints: Arc::clone(&self.hints) }
    }

    /// The status of a project's valve, whether one runs or not. Blocks as files do.
    ///
    /// # Errors
    /// When the project or its journal cannot be read.
    pub fn status(
        project: &Path,
        journal: &Path,
        personas_file: &RelativePath,
    ) -> Result<ValveStatus, ToolError> {
        let mut status = ValveStatus { watcher: lock::holder(journal), ..ValveStatus::default() };
        let tallies = match journal::peek(journal)? {
            Some(mut connection) => journal::standing(&mut connection, &mut status)?,
            None => std::collections::BTreeMap::new(),
        };
        let tree = tree(project, RepositoryAccess::default(), ChronicleLayout::default())?;
        let personas = read_personas(&tree, personas_file)
            .map_err(ToolError::from)
            .and_then(|text| Personas::parse(&text, personas_file.as_str()));
        match personas {
            Ok(personas) => {
                status.personas = personas
                    .iter()
                    .map(|persona| PersonaStatus {
                        name: persona.name.clone(),
                        filters: persona.filters.clone(),
                        contents: persona.contents.clone(),
                        action: word(&persona.action).to_owned(),
                        triggered: tallies.get(&persona.name).copied().unwrap_or_default(),
                    })
                    .collect();
            }
            Err(error) => status.personas_error = Some(error),
        }
        Ok(status)
    }

    fn purpose(&self, purpose: &str) {
        locked(&self.core.lock).note(&note(purpose, self.core.now_ms()));
    }
}

fn tree(project: &Path, repository: RepositoryAccess, layout: ChronicleLayout) -> Result<Tree, Failure> {
    Tree::open(project, repository, layout)
        .map_err(|source| Failure::Project { path: project.to_owned(), source })
}

fn note(purpose: &str, since_ms: u64) -> Watcher {
    Watcher { pid: std::process::id(), purpose: purpose.to_owned(), since_ms }
}

fn word(action: &Action) -> &'static str {
    match action {
        Action::Record => "record",
        Action::Tool { .. } => "tool",
        Action::Query { .. } => "query",
        Action::Agent(_) => "agent",
    }
}
