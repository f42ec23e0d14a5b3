//! A project for the Guardian: files, a graph that reads their lines, a chronicle in memory, and tools that count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{
    Actor, AppendResult, CallContext, CallRecord, Cancellation, Change, Chronicle, ChronicleEvent, Code,
    Consent, EventActor, FileSystem, Graph, GraphQuery, GraphRows, IngestSummary, Plan, PlanStep,
    RelativePath, SnapshotInfo, SourceLocation, ToolCall, ToolCaller, ToolDefinition, ToolError, ToolResult,
    canonical,
};
use tgp_fs::MemoryFs;
use tgp_guardian::{Guardian, GuardianParts, Invariants};

use crate::cypher::{TestGraph, answer};

/// A tree of files, as the graph has read it.
type Files = BTreeMap<String, String>;

/// A graph of files whose lines say `import PATH`, `fn NAME`, `call PATH#NAME` or `broken`.
#[derive(Default)]
pub(crate) struct LineGraph {
    pub(crate) now: Mutex<Files>,
    pub(crate) commits: Mutex<BTreeMap<String, Files>>,
    pub(crate) behind: Mutex<bool>,
    pub(crate) failure: Mutex<Option<ToolError>>,
    /// Rows that an answer has at most.
    pub(crate) cap: AtomicUsize,
    /// Turns the order of the rows.
    pub(crate) order: AtomicUsize,
    pub(crate) asked: AtomicUsize,
}

impl LineGraph {
    fn facts(files: &Files) -> TestGraph {
        let mut facts = TestGraph::default();
        for (path, content) in files {
            let is_broken = content.lines().any(|line| line == "broken");
            let node = json!({ "_labels": ["File"], "path": path, "test": path.starts_with("tests/"), "broken": is_broken });
            facts.nodes.insert(path.clone(), node);
            for (line, text) in (1..).zip(content.lines()) {
                let Some(name) = text.strip_prefix("fn ") else { continue };
                let node = json!({ "_labels": ["Symbol"], "path": path, "name": name, "qualifiedName": name, "line": line });
                facts.nodes.insert(format!("{path}#{name}"), node);
                facts.edges.push(("DEFINES".to_owned(), path.clone(), format!("{path}#{name}")));
            }
        }
        for (path, content) in files {
            let mut source = path.clone();
            for line in content.lines() {
                if let Some(name) = line.strip_prefix("fn ") {
                    source = format!("{path}#{name}");
                }
                for (word, kind, from) in [("import ", "IMPORTS", path), ("call ", "CALLS", &source)] {
                    if let Some(target) = line.strip_prefix(word).filter(|to| facts.nodes.contains_key(*to)) {
                        facts.edges.push((kind.to_owned(), from.clone(), target.to_owned()));
                    }
                }
            }
        }
        facts
    }

    fn answer(&self, files: &Files, question: &GraphQuery) -> Result<GraphRows, ToolError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if let Some(error) = self.failure.lock().unwrap().clone() {
            return Err(error);
        }
        let (columns, mut rows) = answer(&Self::facts(files), &question.query, &question.params)
            .map_err(|problem| refusal(&question.query, problem))?;
        if !rows.is_empty() {
            let turn = self.order.load(Ordering::SeqCst) % rows.len();
            rows.rotate_left(turn);
        }
        let cap = self.cap.load(Ordering::SeqCst);
        let truncated = cap > 0 && rows.len() > cap;
        if truncated {
            rows.truncate(cap);
        }
        let behind = *self.behind.lock().unwrap();
        Ok(GraphRows {
            columns,
            rows,
            truncated,
            standing: SnapshotInfo { behind, ..SnapshotInfo::default() },
        })
    }
}

/// What cannot be asked, at the place of the name that it is about.
fn refusal(query: &str, problem: String) -> ToolError {
    let name = problem.split('`').nth(1).unwrap_or_default();
    let place = query.find(&format!(" {name}.")).map(|at| {
        let before = &query[..=at];
        let (line, column) =
            (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap().len() + 1);
        SourceLocation {
            file: "query".to_owned(),
            line: line.try_into().unwrap(),
            column: column.try_into().unwrap(),
        }
    });
    let error = ToolError::new(Code::Validation, problem);
    match place {
        Some(place) => error.place(&place),
        None => error,
    }
}

#[async_trait]
impl Graph for LineGraph {
    fn marks_unread_files(&self) -> bool {
        true
    }

    async fn ingest(&self, _commit: &str) -> Result<IngestSummary, ToolError> {
        Ok(IngestSummary::default())
    }

    async fn query(&self, question: GraphQuery) -> Result<GraphRows, ToolError> {
        let files = match &question.commit {
            None => self.now.lock().unwrap().clone(),
            Some(commit) => self.commits.lock().unwrap().get(commit).cloned().ok_or_else(|| {
                ToolError::new(Code::NotFound, format!("`{commit}` was not ingested"))
                    .help("tgp graph ingest")
            })?,
        };
        self.answer(&files, &question)
    }

    async fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError> {
        let before = self.now.lock().unwrap().clone();
        let mut after = before.clone();
        for change in changes {
            let path = change.path().as_str().to_owned();
            match change {
                Change::Write { content, .. } => {
                    after.insert(path, String::from_utf8(content.to_vec()).unwrap());
                }
                Change::Remove { .. } => {
                    after.remove(&path);
                }
            }
        }
        questions
            .iter()
            .map(|question| Ok((self.answer(&before, question)?, self.answer(&after, question)?)))
            .collect()
    }
}

/// A chronicle in memory that keeps each event once, in files of the usual scope.
#[derive(Default)]
pub(crate) struct MemoryChronicle {
    pub(crate) files: Mutex<BTreeMap<RelativePath, Vec<ChronicleEvent>>>,
    pub(crate) torn: Mutex<BTreeSet<String>>,
}

impl MemoryChronicle {
    pub(crate) fn of(&self, file: &str) -> Vec<ChronicleEvent> {
        self.files.lock().unwrap().get(&path(file)).cloned().unwrap_or_default()
    }

    pub(crate) fn kinds(&self, file: &str) -> Vec<String> {
        self.of(file).into_iter().map(|event| event.kind).collect()
    }

    fn scope(file: &RelativePath) -> Result<(), ToolError> {
        let is_inside = file.parent().as_str() == ".sage" || file.is_inside(&path("src"));
        if is_inside && file.as_str().ends_with(".sage") {
            return Ok(());
        }
        Err(ToolError::new(Code::Permission, format!("`{file}` is outside the scope of the chronicle")))
    }
}

#[async_trait]
impl Chronicle for MemoryChronicle {
    async fn append(&self, file: &RelativePath, event: ChronicleEvent) -> Result<AppendResult, ToolError> {
        // Others get their turn between a read and an append.
        tokio::task::yield_now().await;
        Self::scope(file)?;
        let event_id = event.compute_id().unwrap();
        let mut files = self.files.lock().unwrap();
        let events = files.entry(file.clone()).or_default();
        let appended = !events.iter().any(|known| known.event_id.as_ref() == Some(&event_id));
        if appended {
            events.push(ChronicleEvent { event_id: Some(event_id.clone()), ..event });
        }
        Ok(AppendResult { event_id, appended })
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        tokio::task::yield_now().await;
        if self.torn.lock().unwrap().contains(file.as_str()) {
            return Err(ToolError::new(Code::Integrity, format!("`{file}` cannot be understood")));
        }
        let events = self.files.lock().unwrap().get(file).cloned().unwrap_or_default();
        Ok(events.iter().skip(events.len().saturating_sub(most)).cloned().collect())
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        let torn: Vec<RelativePath> = self.torn.lock().unwrap().iter().map(|file| path(file)).collect();
        let mut files: BTreeSet<RelativePath> = self.files.lock().unwrap().keys().cloned().collect();
        files.extend(torn);
        Ok(files.into_iter().collect())
    }
}

/// A project and its Guardian.
pub(crate) struct World {
    pub(crate) graph: Arc<LineGraph>,
    pub(crate) chronicle: Arc<MemoryChronicle>,
    pub(crate) files: Arc<dyn FileSystem>,
    pub(crate) rules: Arc<Mutex<String>>,
    pub(crate) clock: Arc<AtomicUsize>,
    pub(crate) guardian: Arc<Guardian>,
}

impl World {
    /// Files that both the graph and the work tree have.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::on(Arc::new(MemoryFs::new()), files)
    }

    pub(crate) fn on(disk: Arc<dyn FileSystem>, files: &[(&str, &str)]) -> Self {
        let graph = Arc::new(LineGraph::default());
        for (name, content) in files {
            disk.write(&path(name), content.as_bytes()).unwrap();
            graph.now.lock().unwrap().insert((*name).to_owned(), (*content).to_owned());
        }
        let chronicle: Arc<MemoryChronicle> = Arc::default();
        let (rules, clock) = (Arc::default(), Arc::default());
        let guardian = guardian(&graph, chronicle.clone(), &disk, &rules, &clock);
        Self { graph, chronicle, files: disk, rules, clock, guardian }
    }

    /// Another process on the same project, with its own clock.
    pub(crate) fn another(&self, ahead: usize) -> Arc<Guardian> {
        self.another_on(self.chronicle.clone(), ahead)
    }

    /// The same with another way to the chronicle.
    pub(crate) fn another_on(&self, chronicle: Arc<dyn Chronicle>, ahead: usize) -> Arc<Guardian> {
        let clock = Arc::new(AtomicUsize::new(ahead));
        guardian(&self.graph, chronicle, &self.files, &self.rules, &clock)
    }

    pub(crate) fn rules(&self, yaml: &str) {
        yaml.clone_into(&mut self.rules.lock().unwrap());
    }

    pub(crate) async fn event(&self, file: &str, kind: &str, about: Option<&str>, fields: Value) {
        let second = self.clock.fetch_add(1, Ordering::SeqCst);
        let event = ChronicleEvent {
            event_id: None,
            kind: kind.to_owned(),
            timestamp: stamp(second),
            actor: EventActor { agent: "test".to_owned(), id: "1".to_owned() },
            file_path: about.map(str::to_owned),
            fields: fields.as_object().cloned().unwrap_or_default(),
        };
        self.chronicle.append(&path(file), event).await.unwrap();
    }
}

fn guardian(
    graph: &Arc<LineGraph>,
    chronicle: Arc<dyn Chronicle>,
    files: &Arc<dyn FileSystem>,
    rules: &Arc<Mutex<String>>,
    clock: &Arc<AtomicUsize>,
) -> Arc<Guardian> {
    let (rules, clock) = (Arc::clone(rules), Arc::clone(clock));
    Arc::new(Guardian::new(GuardianParts {
        graph: Arc::clone(graph) as Arc<dyn Graph>,
        chronicle,
        invariants: Arc::new(move || Invariants::parse(".sage/invariants.yml", &rules.lock().unwrap())),
        clock: Arc::new(move || stamp(clock.fetch_add(1, Ordering::SeqCst))),
        files: Arc::clone(files),
    }))
}

fn stamp(second: usize) -> String {
    format!("2026-01-01T{:02}:{:02}:{:02}Z", second / 3600 % 24, second / 60 % 60, second % 60)
}

pub(crate) fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

pub(crate) fn plan(steps: Value) -> Plan {
    let steps: Vec<PlanStep> = serde_json::from_value(steps).unwrap();
    Plan { id: "plan-123".to_owned(), steps }
}

pub(crate) fn context() -> CallContext {
    CallContext {
        actor: Actor::Agent("test".to_owned()),
        session: "s".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    }
}

/// Tools on real files, every call of which is counted.
pub(crate) struct CountingTools {
    pub(crate) files: Arc<dyn FileSystem>,
    pub(crate) graph: Arc<LineGraph>,
    pub(crate) made: Mutex<Vec<ToolCall>>,
    /// What a tool fails with.
    pub(crate) failures: BTreeMap<String, ToolError>,
}

impl CountingTools {
    pub(crate) fn new(world: &World) -> Self {
        Self {
            files: Arc::clone(&world.files),
            graph: Arc::clone(&world.graph),
            made: Mutex::default(),
            failures: BTreeMap::new(),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.made.lock().unwrap().iter().map(|call| call.tool.clone()).collect()
    }

    fn perform(&self, call: &ToolCall) -> Result<Value, ToolError> {
        if let Some(error) = self.failures.get(&call.tool) {
            return Err(error.clone());
        }
        let word =
            |name: &str| call.arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if !call.tool.starts_with("fs_") {
            return Ok(json!({ "ran": call.tool }));
        }
        let file = path(&word("path"));
        let before = self.files.read(&file).ok();
        let hash = before.as_deref().map(canonical::sha256_hex);
        let expected = call.arguments.get("expected_sha256").and_then(Value::as_str);
        if expected.is_some() && expected != hash.as_deref() {
            return Err(ToolError::new(Code::Conflict, "it was changed"));
        }
        let text = before.clone().map(|bytes| String::from_utf8(bytes).unwrap());
        let after = match call.tool.as_str() {
            "fs_read" => {
                // Two lines a page, as `fs_read` has them: each with its end.
                let text = text.ok_or_else(|| ToolError::new(Code::NotFound, "no such file"))?;
                let first = usize::try_from(call.arguments["offset"].as_u64().unwrap()).unwrap();
                let lines: Vec<&str> = text.split_inclusive('\n').collect();
                let page: String = lines.iter().skip(first - 1).take(2).copied().collect();
                let mut data = json!({ "content": page, "sha256": hash });
                if lines.len() > first + 1 {
                    data["nextOffset"] = json!(first + 2);
                }
                return Ok(data);
            }
            "fs_write" => Some(word("content")),
            "fs_edit" => {
                let mut text = text.ok_or_else(|| ToolError::new(Code::NotFound, "no such file"))?;
                for edit in call.arguments["edits"].as_array().unwrap() {
                    text = text.replace(edit["search"].as_str().unwrap(), edit["replace"].as_str().unwrap());
                }
                Some(text)
            }
            "fs_delete" => None,
            other => return Err(ToolError::new(Code::NotFound, format!("no tool `{other}`"))),
        };
        let mut known = self.graph.now.lock().unwrap();
        match after {
            Some(content) => {
                self.files.write(&file, content.as_bytes())?;
                known.insert(file.as_str().to_owned(), content);
            }
            None => {
                self.files.remove(&file)?;
                known.remove(file.as_str());
            }
        }
        Ok(json!({ "path": file }))
    }
}

#[async_trait]
impl ToolCaller for CountingTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        Vec::new()
    }

    async fn call(&self, call: ToolCall, context: CallContext, _cancelled: Cancellation<'_>) -> CallRecord {
        self.made.lock().unwrap().push(call.clone());
        let result = ToolResult::from(self.perform(&call));
        CallRecord { tool: Some(call.tool.clone()), ..CallRecord::ended(call, context, result) }
    }
}
