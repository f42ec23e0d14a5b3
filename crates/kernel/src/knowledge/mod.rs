//! What is known of the project: the chronicle, the code graph, and the Guardian that holds both against what is to be
//! done.

mod admin_actions;
mod audited_events;
mod chronicle_audit;
mod chronicler;
mod graph_server;
mod inspect;
mod lazy_graph;
mod plan_tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_builtins::{chronicle_path, knowledge_tools};
use tgp_chronicle::{
    ChronicleOptions, ChronicleReport, ChronicleSync, FileChronicle, Start, is_chronicle_file,
};
use tgp_contract::{
    Chronicle, ChronicleLayout, Code, FileSystem, Gate, Graph, PathProbe, Recorder, RelativePath, Root,
    ToolError, UnreadHistory,
};
use tgp_fs::{DiskFs, RepositoryAccess, real_place};
use tgp_graph::{Export, GraphOptions, IngestProgress, Stats};
use tgp_guardian::{ChronicleCheck, Guardian, GuardianGate, GuardianParts, Invariants};
use tgp_router::DynTool;
use tgp_router::gates::RuleFileCheck;
use tgp_text::RulePurpose;

use crate::config::{ChronicleDurability, Config, GuardianConfig};
use crate::project_access::ProjectAccess;
use crate::project_place::work_tree_state;
use crate::state_directory::StateDirectory;
pub use chronicle_audit::{AuditComparison, AuditProblem, AuditProblemKind};
use chronicler::EventingRecorder;
use graph_server::GraphServer;
pub(crate) use graph_server::check_build;
pub(crate) use inspect::{known_tools, tool_index};
use lazy_graph::LazyGraph;

/// Bytes of a file of invariants: people write it.
const MAX_INVARIANTS_BYTES: u64 = 1 << 20;
/// Nodes and relationships of one export; the answer says when there are more.
const MAX_EXPORT: usize = 1_000_000;
/// The graph, in the kernel's own state: it can be made again from the repository at any time.
const GRAPH_FILE: &str = "graph.sqlite";

/// The chronicle, the graph and the Guardian of one kernel.
pub struct Knowledge {
    chronicle: Arc<FileChronicle>,
    layout: ChronicleLayout,
    /// Whether changes of project files become events.
    tells_edits: bool,
    graph: Arc<LazyGraph>,
    project: PathBuf,
    /// Where its repository may be.
    repository: RepositoryAccess,
    files: Arc<dyn FileSystem>,
    guardian: Arc<Guardian>,
    /// The file of the invariants, from the project.
    invariants: String,
    vigilance: ChronicleCheck,
}

impl std::fmt::Debug for Knowledge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Knowledge").finish_non_exhaustive()
    }
}

impl Knowledge {
    pub(crate) fn open(
        config: &Config,
        project: &Path,
        root: &Path,
        access: &ProjectAccess,
        check: &Arc<RuleFileCheck>,
    ) -> Result<Self, ToolError> {
        let state = access.state();
        let mut options = ChronicleOptions::new(project);
        // The owner could not add to a chronicle that this user has made.
        options.read_only = access.check_kernel_files().err();
        if let Some(scope) = &config.chronicle.scope {
            options.scope.clone_from(scope);
        }
        options.layout = config.chronicle.layout;
        options.durability = match config.chronicle.durability {
            ChronicleDurability::Batched => ChronicleSync::Batch,
            ChronicleDurability::Event => ChronicleSync::Event,
        };
        let chronicle = Arc::new(FileChronicle::open(&options)?);
        let graph = Arc::new(LazyGraph::new(
            graph_options(config, project, state)?,
            root.to_owned(),
            config.graph.url.as_deref().map(|url| GraphServer::new(url, config)).transpose()?,
        ));
        let files = DiskFs::open(project).map_err(|error| {
            ToolError::new(Code::Config, format!("the project cannot be opened: {error}"))
        })?;
        let files: Arc<dyn FileSystem> = Arc::new(files);
        let source = InvariantFile {
            project: project.to_owned(),
            config: config.guardian.clone(),
            check: Arc::clone(check),
        };
        let guardian = Guardian::new(GuardianParts {
            graph: Arc::clone(&graph) as Arc<dyn Graph>,
            chronicle: Arc::clone(&chronicle) as Arc<dyn Chronicle>,
            invariants: Arc::new(move || source.read()),
            clock: Arc::new(now),
            files: Arc::clone(&files),
        });
        Ok(Self {
            chronicle,
            layout: options.layout,
            tells_edits: config.chronicle.edits && options.read_only.is_none(),
            graph,
            project: project.to_owned(),
            repository: config.repository.clone(),
            files,
            guardian: Arc::new(guardian),
            invariants: config.guardian.file(project),
            vigilance: if config.guardian.halts_touched {
                ChronicleCheck::Touched
            } else {
                ChronicleCheck::Checks
            },
        })
    }

    /// The file of invariants, relative to the project.
    #[must_use]
    pub fn invariants_file(&self) -> &str {
        &self.invariants
    }

    /// What reviews plans and knows what must hold.
    #[must_use]
    pub fn guardian(&self) -> &Arc<Guardian> {
        &self.guardian
    }

    /// The code graph.
    pub(crate) fn graph(&self) -> Arc<dyn Graph> {
        Arc::clone(&self.graph) as Arc<dyn Graph>
    }

    /// Where the files of chronicles are.
    pub(crate) fn layout(&self) -> ChronicleLayout {
        self.layout
    }

    /// The chronicle.
    pub(crate) fn chronicle(&self) -> Arc<dyn Chronicle> {
        Arc::clone(&self.chronicle) as Arc<dyn Chronicle>
    }

    pub(crate) fn tools(&self) -> Result<Vec<Arc<dyn DynTool>>, ToolError> {
        let mut tools = knowledge_tools(&self.graph(), &self.chronicle())?;
        tools.extend(plan_tools::plan_tools(&self.guardian, &self.invariants)?);
        Ok(tools)
    }

    pub(crate) fn gate(&self) -> Arc<dyn Gate> {
        Arc::new(GuardianGate::new(Arc::clone(&self.guardian), self.vigilance))
    }

    /// The recorder, with the chronicle before it.
    pub(crate) fn recorder(&self, records: Arc<dyn Recorder>) -> Arc<dyn Recorder> {
        if !self.tells_edits {
            return records;
        }
        let chronicle = self.chronicle();
        Arc::new(EventingRecorder {
            chronicle,
            project: self.project.clone(),
            repository: self.repository.clone(),
            files: Arc::clone(&self.files),
            records,
        })
    }

    /// Gives every line of a chronicle to `show`, oldest first, one at a time.
    ///
    /// # Errors
    /// `EPERMISSION` out of scope, `EINTEGRITY` for a line that is not an event, `ENOTFOUND` where there is no chronicle.
    pub fn read_chronicle(&self, path: &str, mut show: impl FnMut(&str)) -> Result<(), ToolError> {
        let path = chronicle_path(path)?;
        let events = self.chronicle.read(&path, Start::Beginning)?;
        let mut found = false;
        for entry in events {
            let value = serde_json::to_value(entry?.event).unwrap_or_default();
            let line = tgp_contract::canonical::to_string(&value)
                .map_err(|error| ToolError::new(Code::Integrity, error.to_string()))?;
            show(&line);
            found = true;
        }
        if !found {
            if let Some(error) = self.unmigrated(&path) {
                return Err(error);
            }
            let message = format!("there is no chronicle `{path}` yet");
            return Err(ToolError::new(Code::NotFound, message).help(
                "`tgp chronicle append` makes it; `tgp chronicle verify --json` lists those there are",
            ));
        }
        Ok(())
    }

    /// Checks one chronicle, or all of them.
    ///
    /// # Errors
    /// When one cannot be read at all; problems in a readable one are in its report.
    pub fn verify_chronicles(&self, path: Option<&str>) -> Result<Vec<ChronicleReport>, ToolError> {
        match path {
            Some(path) => {
                let path = chronicle_path(path)?;
                match self.chronicle.verify(&path) {
                    Err(error) if error.code == Code::NotFound => {
                        Err(self.unmigrated(&path).unwrap_or(error))
                    }
                    other => Ok(vec![other?]),
                }
            }
            None => self.chronicle.verify_all(),
        }
    }

    /// Says that a chronicle is where the other layout has it, if it is.
    fn unmigrated(&self, path: &RelativePath) -> Option<ToolError> {
        let file = self.chronicle.unmigrated_file_of(path)?;
        let message = format!("`{file}` is a chronicle of an earlier version, and is not read");
        let error = ToolError::new(Code::NotFound, message).detail("unmigrated", file.as_str());
        Some(
            error.help(
                "look at what `tgp chronicle migrate --dry-run` prints, then run it without `--dry-run`",
            ),
        )
    }

    /// Files that would be chronicles after a migration, and are not read until then.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn unmigrated_chronicles(&self) -> Result<Vec<RelativePath>, ToolError> {
        self.chronicle.unmigrated()
    }

    /// The same for the chronicle that `path` names.
    #[must_use]
    pub fn unmigrated_chronicle(&self, path: &str) -> Option<RelativePath> {
        self.chronicle.unmigrated_file_of(&chronicle_path(path).ok()?)
    }

    /// Counts of nodes and relationships at a commit, and how large the store is.
    ///
    /// # Errors
    /// `ENOTFOUND` for a commit that was not ingested.
    pub async fn graph_stats(&self, commit: Option<&str>) -> Result<Stats, ToolError> {
        self.graph.store().await?.stats(commit).await
    }

    /// How far the ingest of this process is; none while there is none.
    #[must_use]
    pub fn graph_progress(&self) -> Option<IngestProgress> {
        self.graph.progress()
    }

    /// What of the history is not in the graph; none where all of it is, and no process is ingesting.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn unread_history(&self) -> Result<Option<UnreadHistory>, ToolError> {
        self.graph.store().await?.unread_history().await
    }

    /// Every node and relationship of a commit, as far as memory bears it.
    ///
    /// # Errors
    /// `ENOTFOUND` for a commit that was not ingested.
    pub async fn graph_export(&self, commit: Option<&str>) -> Result<Export, ToolError> {
        self.graph.store().await?.export(commit, MAX_EXPORT).await
    }
}

/// Distinguishes chronicles of the project from other files by their content. Elsewhere the name decides: what has one
/// there may be another project's.
pub(crate) fn chronicle_probe(project: &Path) -> PathProbe {
    let project = project.to_owned();
    PathProbe::new(move |root, path| root != Root::Project || is_chronicle_file(&project, path))
}

fn graph_options(config: &Config, project: &Path, state: &StateDirectory) -> Result<GraphOptions, ToolError> {
    let place = work_tree_state(config, project, state)?;
    let mut options = GraphOptions::new(place.join(GRAPH_FILE), project);
    options.repository = config.repository.clone();
    options.history = config.graph.history;
    options.max_rows = config.graph.max_rows;
    options.patience = config.graph.timeout;
    if let Some(tests) = &config.tdd.tests {
        options.test_patterns.clone_from(tests);
    }
    Ok(options)
}

/// The file of invariants, as it is at each reading.
struct InvariantFile {
    project: PathBuf,
    config: GuardianConfig,
    check: Arc<RuleFileCheck>,
}

impl InvariantFile {
    fn read(&self) -> Result<Invariants, ToolError> {
        // One that is not read would be a promise that is silently not kept.
        self.check.check(RulePurpose::Invariants)?;
        let name = self.config.file(&self.project);
        let file = self.project.join(&name);
        let is_outside = !real_place(&file).starts_with(&self.project);
        let is_named = self.config.invariants.is_some();
        read_invariants(&file, &name, is_named)
            .map_err(|error| if is_outside { error.without_contents(&name) } else { error })
    }
}

/// Reads the file. A broken link and a missing file that the configuration names are errors.
fn read_invariants(file: &Path, name: &str, is_named: bool) -> Result<Invariants, ToolError> {
    let failed = |error: std::io::Error| {
        let help = if is_named {
            "write the file, or correct `guardian.invariants`"
        } else {
            "correct the file; without a file of that name the project has no invariants"
        };
        ToolError::new(Code::Config, format!("`{name}` cannot be read: {error}")).help(help)
    };
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named && !file.is_symlink() => {
            return Ok(Invariants::default());
        }
        Err(error) => return Err(failed(error)),
        // A pipe would be waited for, and with it every write.
        Ok(found) if !found.is_file() => {
            return Err(failed(std::io::Error::other("it is not a file")));
        }
        Ok(found) if found.len() > MAX_INVARIANTS_BYTES => {
            let message = format!("`{name}` has more than {MAX_INVARIANTS_BYTES} bytes");
            return Err(
                ToolError::new(Code::Config, message).help("keep what must hold short enough to be read")
            );
        }
        Ok(_) => {}
    }
    Invariants::parse(name, &std::fs::read_to_string(file).map_err(failed)?)
}

fn now() -> String {
    tgp_text::rfc3339(tgp_text::now_ms())
}
