//! The state of test-driven work: what may be written now, and what runs and writes make of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use tgp_contract::{
    Access, Actor, CallRecord, Change, Code, Effect, FileFilter, Gate, GateRequest, MAX_CHRONICLE_LINE_BYTES,
    RelativePath, Root, Stage, Target, TddMode, TddState, ToolError, ToolResult, Verdict, background,
    canonical, has_chronicle_name, is_chronicle_content,
};
use tgp_fs::{Directory, HardLinks, Stamp};
use tgp_tdd::{
    Contents, FileHasher, FileKind, Scope, Selection, SourceSnapshot, Tdd, TestRun, Transition, Write,
    WriteKind, WriteRequest,
};

use super::policy::TddView;
use crate::Workspace;
use crate::files::{Coverage, Flow, IgnorePolicy, Walk};

/// What the gate reads of a test file in the result of `test_tool`. One that was not run has no hash of its source.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolTests {
    path: RelativePath,
    tool_path: Option<RelativePath>,
    test_sha256: String,
    tool_sha256: Option<String>,
    passed: u64,
    failed: u64,
    #[serde(default)]
    inconclusive: bool,
}

/// The tool whose runs the gate notes by itself: those of forged tools.
const TEST_TOOL: &str = "test_tool";

/// Hashes kept in memory, by the file's stamp.
const MAX_HASHES: usize = 100_000;

/// A larger file is data and no source; it counts by its size.
const MAX_HASHED_BYTES: u64 = 16 << 20;

/// A larger file is not compared with a new one line by line.
const MAX_COMPARED_BYTES: u64 = 1 << 20;

/// Holds code to its tests.
pub struct StateGate {
    tdd: Arc<Tdd>,
    disk: Arc<DiskHashes>,
    /// Those that say which files a caller may not see. They know this gate too, so none keeps the other alive.
    others: OnceLock<Vec<Weak<dyn Gate>>>,
}

impl StateGate {
    /// `project` and `tool_root` are the directories on disk.
    #[must_use]
    pub fn new(tdd: Tdd, project: &Path, tool_root: &Path) -> Self {
        // A root that cannot be opened has no files; the boot has opened both already.
        let open = |root: &Path| Directory::open(root).ok();
        let disk = DiskHashes { project: open(project), tool_root: open(tool_root), known: Mutex::default() };
        Self { tdd: Arc::new(tdd), disk: Arc::new(disk), others: OnceLock::new() }
    }

    /// Names in refusals only files that these gates let the caller read.
    pub fn keep_hidden(&self, gates: &[Arc<dyn Gate>]) {
        let _ = self.others.set(gates.iter().map(Arc::downgrade).collect());
    }

    /// The verdict, once more where it names files of which some may be hidden from the caller. One that reads files
    /// (`proposed` is compared with them) knows from the beginning which are hidden.
    async fn without_hidden<J>(&self, request: GateRequest<'_>, judge: J) -> Verdict
    where
        J: Fn(&Tdd, &dyn FileHasher) -> Verdict + Clone + Send + 'static,
    {
        let first = judge.clone();
        let verdict = match request.proposed {
            Some(_) => None,
            None => Some(self.off_executor(move |tdd, disk| first(tdd, disk)).await),
        };
        // Only such a refusal names files that the call does not name.
        if let Some(verdict) = &verdict
            && !matches!(verdict, Verdict::Deny { error, .. } if error.code == Code::State)
        {
            return verdict.clone();
        }
        let mut filters = Vec::new();
        for gate in self.others.get().into_iter().flatten().filter_map(Weak::upgrade) {
            filters.extend(gate.file_filter(request).await);
        }
        if let Some(verdict) = verdict
            && filters.is_empty()
        {
            return verdict;
        }
        self.off_executor(move |tdd, disk| judge(tdd, &Shown { disk, filters })).await
    }

    #[must_use]
    pub fn tdd(&self) -> &Tdd {
        &self.tdd
    }

    /// The files as they are now.
    #[must_use]
    pub fn disk(&self) -> &dyn FileHasher {
        self.disk.as_ref()
    }

    /// Notes which tests the project has before any work begins, so that one that appears later is new.
    ///
    /// # Errors
    /// When the state cannot be kept, or the project cannot be read.
    pub fn begin(&self, workspace: &Workspace) -> Result<(), ToolError> {
        if self.tdd.has_begun(&Scope::Project)? {
            return Ok(());
        }
        let snapshot = self.snapshot(workspace, |kind| kind == FileKind::Test)?;
        self.tdd.begin(&Scope::Project, &snapshot)
    }

    /// Test and code files of the project, as they are now.
    ///
    /// # Errors
    /// When there are too many, or the project cannot be read.
    pub fn sources(&self, workspace: &Workspace) -> Result<SourceSnapshot, ToolError> {
        self.snapshot(workspace, |kind| kind != FileKind::Exempt)
    }

    fn snapshot(
        &self,
        workspace: &Workspace,
        wanted: impl Fn(FileKind) -> bool,
    ) -> Result<SourceSnapshot, ToolError> {
        let files = workspace.project_files();
        let walk =
            Walk { files: &files, ignored: IgnorePolicy::Skipped, depth: usize::MAX, is_due: &|| false };
        let mut snapshot = SourceSnapshot::new();
        let mut problem = None;
        let walked = walk.each(&RelativePath::root(), &mut |entry| {
            let file = self.tdd.classify(Root::Project, &entry.path);
            if entry.kind != tgp_contract::EntryKind::File || !wanted(file.kind) {
                return Flow::On;
            }
            // One that an earlier version has left beside its source.
            if has_chronicle_name(&entry.path) && self.disk.is_chronicle(&entry.path) {
                return Flow::On;
            }
            let Some(hash) = self.disk.hash(Root::Project, &entry.path) else { return Flow::On };
            match snapshot.insert(entry.path.clone(), hash) {
                Ok(()) => Flow::On,
                Err(error) => {
                    problem = Some(error);
                    Flow::Stop
                }
            }
        })?;
        if let Some(error) = problem {
            return Err(ToolError::new(Code::Config, error.to_string())
                .help("name generated files in `tdd.exempt` of the configuration, or in an ignore file"));
        }
        // What was not read could be the very file that a test is about.
        if walked.coverage == Coverage::Cut {
            let message = "the project is too large to be looked through for its tests and their code";
            return Err(ToolError::new(Code::Security, message)
                .help("name generated directories in an ignore file, or remove what is not needed"));
        }
        Ok(snapshot)
    }

    /// Judges on the blocking pool: the store may be busy, and files are hashed. A judgement that panics denies.
    async fn off_executor(
        &self,
        judge: impl FnOnce(&Tdd, &DiskHashes) -> Verdict + Send + 'static,
    ) -> Verdict {
        let (tdd, disk) = (Arc::clone(&self.tdd), Arc::clone(&self.disk));
        let judged = background::run(move || Ok(judge(&tdd, &disk))).await;
        judged.unwrap_or_else(|error| Verdict::Deny { rule: "tdd".to_owned(), error })
    }

    /// Notes a run of the project's tests.
    ///
    /// # Errors
    /// When the state cannot be kept.
    pub fn note_run(&self, run: &TestRun) -> Result<Transition, ToolError> {
        self.tdd.note_run(run)
    }

    /// Notes what `test_tool` has found out about forged tools, one run for each test file.
    fn note_tool_runs(&self, record: &CallRecord) {
        let ToolResult::Done(data) = &record.result else { return };
        for file in data.get("files").and_then(Value::as_array).into_iter().flatten() {
            // A file that was not run shows nothing. Each is read by itself, so that one cannot hide the others.
            let Ok(report) = ToolTests::deserialize(file) else { continue };
            if let Some(run) = self.tool_run(&report, record) {
                // A state that cannot be kept admits nothing: the next judgement finds that out.
                let _ = self.tdd.note_run(&run);
            }
        }
    }

    fn tool_run(&self, report: &ToolTests, record: &CallRecord) -> Option<TestRun> {
        let (test, tool) = (report.path.clone(), report.tool_path.clone()?);
        let mut before = SourceSnapshot::new();
        before.insert(test.clone(), report.test_sha256.clone()).ok()?;
        if let Some(hash) = &report.tool_sha256 {
            before.insert(tool.clone(), hash.clone()).ok()?;
        }
        let mut after = SourceSnapshot::new();
        for path in [&test, &tool] {
            if let Some(hash) = self.disk.hash(Root::Tools, path) {
                after.insert(path.clone(), hash).ok()?;
            }
        }
        // A file without tests has failed for the caller, and shows nothing of the tool.
        let is_failure = report.failed > 0;
        let failed = if report.inconclusive { 0 } else { report.failed };
        Some(TestRun {
            scope: Scope::parse(tool.as_str())?,
            command: format!("{TEST_TOOL} {test}"),
            selection: Selection::Whole,
            exit_code: Some(i32::from(is_failure)),
            passed: Some(report.passed),
            failed: Some(failed),
            failing_files: Some(if failed > 0 { vec![test] } else { Vec::new() }),
            before,
            after,
            started_ms: record.started_ms,
            duration_ms: record.duration_us / 1000,
        })
    }
}

#[async_trait]
impl Gate for StateGate {
    fn stage(&self) -> Stage {
        Stage::State
    }

    fn name(&self) -> &str {
        "tdd"
    }

    async fn judge(&self, request: GateRequest<'_>) -> Verdict {
        let actor = &request.context.actor;
        let is_judged_later = has_dry_run(request);
        let tool = request.definition.name.as_str();
        let asked = WriteRequest { actor, tool, targets: request.targets, is_judged_later };
        // Most calls read, and another thread would take longer than the judgement.
        if let Some(verdict) = self.tdd.judge_at_once(asked) {
            return verdict;
        }
        let (actor, tool) = (actor.clone(), request.definition.name.clone());
        let targets = request.targets.to_vec();
        self.without_hidden(request, move |tdd, current| {
            let tool = tool.as_str();
            let asked = WriteRequest { actor: &actor, tool, targets: &targets, is_judged_later };
            tdd.judge(asked, current)
        })
        .await
    }

    async fn judge_changes(&self, request: GateRequest<'_>) -> Verdict {
        let (actor, tool) = (request.context.actor.clone(), request.definition.name.clone());
        let targets = request.targets.to_vec();
        let proposed = request.proposed.map(<[Change]>::to_vec).unwrap_or_default();
        // Of a call that was tried these are its targets; of a running call they are what it changes.
        let is_tried = has_dry_run(request);
        self.without_hidden(request, move |tdd, current| {
            let writes: Vec<Write> = targets
                .iter()
                .filter_map(Target::file)
                .filter(|(.., access)| !is_tried || matches!(access, Access::Write | Access::Delete))
                .map(|(root, path, access)| {
                    let exists = current.hash(root, path).is_some();
                    let kind = match access {
                        Access::Delete => WriteKind::Delete,
                        Access::Read | Access::Write | Access::Append if exists => WriteKind::Modify,
                        Access::Read | Access::Write | Access::Append => WriteKind::Create,
                    };
                    let change =
                        proposed.iter().find(|change| root == Root::Project && change.path() == path);
                    let after = match change {
                        Some(Change::Write { content, .. }) => Contents::Known(Arc::clone(content)),
                        Some(Change::Remove { .. }) | None => Contents::Unknown,
                    };
                    Write { root, path: path.clone(), kind, after }
                })
                .collect();
            tdd.judge_writes(&actor, tool.as_str(), &writes, current)
        })
        .await
    }

    async fn needs_proposed_files(&self, request: GateRequest<'_>) -> bool {
        if self.tdd.mode() == TddMode::Explore || matches!(request.context.actor, Actor::Person(_)) {
            return false;
        }
        // Whatever the state is: it may be another one when the contents are judged.
        let is_code = |(root, path, access): &(Root, &RelativePath, Access)| {
            let is_write = *root == Root::Project && *access == Access::Write;
            is_write && self.tdd.classify(*root, path).kind == FileKind::Code
        };
        let mut code = request.targets.iter().filter_map(Target::file).filter(is_code).peekable();
        code.peek().is_some()
            && background::in_place(|| code.any(|(root, path, _)| !self.disk.has(root, path)))
    }

    async fn judge_commit(&self, request: GateRequest<'_>) -> Verdict {
        self.judge(request).await
    }

    fn on_finished(&self, record: &CallRecord) {
        if !record.files.is_empty() {
            let _ = background::in_place(|| self.tdd.note_changes(&record.files));
        }
        if record.tool.as_deref() == Some(TEST_TOOL) {
            background::in_place(|| self.note_tool_runs(record));
        }
    }
}

impl TddView for StateGate {
    fn mode(&self) -> TddMode {
        self.tdd.mode()
    }

    fn state(&self, targets: &[Target]) -> TddState {
        let scope = targets
            .iter()
            .filter_map(Target::file)
            .find_map(|(root, path, _)| self.tdd.classify(root, path).scope)
            .unwrap_or(Scope::Project);
        // An unknown state admits the least.
        self.tdd.state(&scope).unwrap_or(TddState::Halted)
    }
}

/// Whether a call is tried without effect before it runs, so that the files it would leave can be judged.
fn has_dry_run(request: GateRequest<'_>) -> bool {
    request.definition.effect == Effect::Write && request.definition.dry_run
}

/// Hashes of the files on disk, from memory where their stamps are as they were. No link is followed on the way to one.
struct DiskHashes {
    project: Option<Directory>,
    tool_root: Option<Directory>,
    known: Mutex<BTreeMap<(Root, RelativePath), (Stamp, String)>>,
}

impl DiskHashes {
    fn known(&self) -> MutexGuard<'_, BTreeMap<(Root, RelativePath), (Stamp, String)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, root: Root, path: &RelativePath) -> Option<File> {
        let root = match root {
            Root::Tools => self.tool_root.as_ref(),
            Root::Project => self.project.as_ref(),
            // Work outside the project has no tests.
            Root::Host => None,
        };
        let directory = root?.descend(&path.parent()).ok()?;
        directory.open_file(path.name()?, HardLinks::Read).ok()
    }

    fn has(&self, root: Root, path: &RelativePath) -> bool {
        self.open(root, path).is_some()
    }

    fn is_chronicle(&self, path: &RelativePath) -> bool {
        let mut beginning = Vec::new();
        let file = self.open(Root::Project, path);
        let read = file.map(|file| file.take(MAX_CHRONICLE_LINE_BYTES as u64).read_to_end(&mut beginning));
        matches!(read, Some(Ok(_))) && is_chronicle_content(&beginning)
    }
}

/// The disk for a caller who may not see all of it.
struct Shown<'a> {
    disk: &'a DiskHashes,
    filters: Vec<FileFilter>,
}

impl FileHasher for Shown<'_> {
    fn hash(&self, root: Root, path: &RelativePath) -> Option<String> {
        self.disk.hash(root, path)
    }

    fn read(&self, root: Root, path: &RelativePath) -> Option<Vec<u8>> {
        self.disk.read(root, path)
    }

    fn shows(&self, root: Root, path: &RelativePath) -> bool {
        self.filters.iter().all(|filter| filter(root, path, Access::Read))
    }
}

impl FileHasher for DiskHashes {
    fn read(&self, root: Root, path: &RelativePath) -> Option<Vec<u8>> {
        let file = self.open(root, path)?;
        if file.metadata().ok()?.len() > MAX_COMPARED_BYTES {
            return None;
        }
        let mut content = Vec::new();
        file.take(MAX_COMPARED_BYTES).read_to_end(&mut content).ok()?;
        Some(content)
    }

    fn hash(&self, root: Root, path: &RelativePath) -> Option<String> {
        let file = self.open(root, path)?;
        let metadata = file.metadata().ok()?;
        let stamp = Stamp::of(&metadata);
        let key = (root, path.clone());
        if let Some((seen, hash)) = self.known().get(&key)
            && *seen == stamp
        {
            return Some(hash.clone());
        }
        // Before the first byte: a file that was just written may be written again within one tick of its clock.
        let is_settled = stamp.is_settled(SystemTime::now());
        let mut content = Vec::new();
        file.take(MAX_HASHED_BYTES).read_to_end(&mut content).ok()?;
        if metadata.len() > MAX_HASHED_BYTES {
            content.extend_from_slice(&metadata.len().to_be_bytes());
        }
        // Not under the lock: others look up their files meanwhile.
        let hash = canonical::sha256_hex(&content);
        if is_settled {
            let mut known = self.known();
            if known.len() >= MAX_HASHES {
                known.clear();
            }
            known.insert(key, (stamp, hash.clone()));
        }
        Some(hash)
    }
}
