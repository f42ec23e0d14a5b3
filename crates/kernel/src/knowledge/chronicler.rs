//! Every change of a project file becomes an event of the chronicle before its call is recorded.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tgp_contract::{
    Actor, CallRecord, Chronicle, ChronicleEvent, Code, EventActor, FileEffect, FileSystem, Recorder,
    RelativePath, Root, ToolError, background, canonical, chronicle_of,
};
use tgp_fs::RepositoryAccess;
use tgp_guardian::{AUDIT_FIELD, PROJECT_CHRONICLE};

/// Changes of one call that become an event each. A command that writes more has unpacked or built something: one event
/// covers all that remain, with the hash of their list.
const MAX_EVENTS: usize = 200;

/// Bytes of paths that this one event names; an event has room for a megabyte.
const MAX_LISTED_BYTES: usize = 256 << 10;

/// A recorder that writes to the chronicle first. The event names the call, the record names the event.
pub(crate) struct EventingRecorder {
    pub(crate) chronicle: Arc<dyn Chronicle>,
    /// The project's files, for the ignore rules: build output and similar files have no history.
    pub(crate) project: PathBuf,
    pub(crate) repository: RepositoryAccess,
    pub(crate) files: Arc<dyn FileSystem>,
    pub(crate) records: Arc<dyn Recorder>,
}

#[async_trait]
impl Recorder for EventingRecorder {
    async fn record(&self, record: CallRecord) -> Result<(), ToolError> {
        // The effect has happened: if this future is dropped while the chronicle is written, the record is still
        // made.
        let mut unrecorded = Unrecorded { records: self.records.as_ref(), record: Some(record) };
        let told = match &mut unrecorded.record {
            Some(record) => self.tell(record).await,
            None => Ok(()),
        };
        if let Some(record) = unrecorded.record.take() {
            self.records.record(record).await?;
        }
        told.map_err(|error| {
            let message =
                format!("the change was made and recorded, but the chronicle did not take its event: {error}");
            let mut failed = ToolError::new(Code::Integrity, message);
            failed.details = error.details;
            failed.help("look at the file's chronicle with `tgp chronicle verify`, then repeat nothing: the change stands")
        })
    }

    fn check(&self) -> Result<(), ToolError> {
        self.records.check()
    }

    async fn ready(&self) -> Result<(), ToolError> {
        self.records.ready().await
    }

    /// What was rolled back has changed nothing.
    fn record_cancelled(&self, record: CallRecord) {
        self.records.record_cancelled(record);
    }
}

/// A record that is kept without its events when it is dropped.
struct Unrecorded<'r> {
    records: &'r dyn Recorder,
    record: Option<CallRecord>,
}

impl Drop for Unrecorded<'_> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.records.record_cancelled(record);
        }
    }
}

impl EventingRecorder {
    async fn tell(&self, record: &mut CallRecord) -> Result<(), ToolError> {
        // They stay in the record meanwhile, which may have to be kept as it is.
        let mut files = record.files.clone();
        let told = self.tell_files(record, &mut files).await;
        record.files = files;
        told
    }

    async fn tell_files(&self, record: &CallRecord, files: &mut [FileEffect]) -> Result<(), ToolError> {
        let changed = |file: &&mut FileEffect| {
            file.root == Root::Project && (file.before != file.after || file.executable.is_some())
        };
        let mut changes: Vec<&mut FileEffect> = files.iter_mut().filter(changed).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let paths: Vec<RelativePath> = changes.iter().map(|file| file.path.clone()).collect();
        let (project, access) = (self.project.clone(), self.repository.clone());
        let files = Arc::clone(&self.files);
        let ignored = background::run_bounded(move || {
            let mut ignored = tgp_fs::ignored(&project, &access, &paths, &|file| files.read(file).ok());
            // What git tracks is not a build output, whatever a rule says, and regardless of its author.
            if ignored.contains(&true) {
                let tracked = tgp_graph::tracked(&project, &access, &paths)?;
                ignored.iter_mut().zip(tracked).for_each(|(ignored, tracked)| *ignored &= !tracked);
            }
            Ok(ignored)
        });
        // Where this is unknown, every change is recorded.
        let mut ignored = ignored.await.unwrap_or_default().into_iter();
        changes.retain(|_| !ignored.next().unwrap_or_default());
        // What is gone comes first: an event that says otherwise may be the last one about it.
        changes.sort_by_key(|file| (file.after.is_some(), file.before.is_none()));
        let rest = changes.split_off(changes.len().min(MAX_EVENTS));
        for file in changes {
            file.event = Some(self.append(&file.path, edit(record, file)).await?);
        }
        if rest.is_empty() {
            return Ok(());
        }
        let event = batch(record, &rest)?;
        let id = self.chronicle.append(&project_chronicle()?, event).await?.event_id;
        rest.into_iter().for_each(|file| file.event = Some(id.clone()));
        Ok(())
    }

    /// In the file's own chronicle where that is in scope, else in the project's own chronicle.
    async fn append(&self, path: &RelativePath, event: ChronicleEvent) -> Result<String, ToolError> {
        // A name that leaves no room for the ending has no chronicle.
        if let Ok(own) = chronicle_of(path) {
            match self.chronicle.append(&own, event.clone()).await {
                Err(error) if error.code == Code::Permission => {}
                other => return Ok(other?.event_id),
            }
        }
        Ok(self.chronicle.append(&project_chronicle()?, event).await?.event_id)
    }
}

fn project_chronicle() -> Result<RelativePath, ToolError> {
    Ok(RelativePath::new(PROJECT_CHRONICLE)?)
}

fn change_of(file: &FileEffect) -> &'static str {
    match (&file.before, &file.after) {
        (_, None) => "deleted",
        (None, Some(_)) => "created",
        (Some(_), Some(_)) => "changed",
    }
}

fn edit(record: &CallRecord, file: &FileEffect) -> ChronicleEvent {
    let FileEffect { before, after, diff, executable, .. } = file;
    let mut fields = json!({ "change": change_of(file), "before": before, "after": after, "diffRef": diff });
    if let (Some(executable), Some(fields)) = (executable, fields.as_object_mut()) {
        fields.insert("executable".to_owned(), json!(executable));
    }
    event(record, "EDIT", Some(file.path.to_string()), fields)
}

fn batch(record: &CallRecord, files: &[&mut FileEffect]) -> Result<ChronicleEvent, ToolError> {
    let list: Vec<Value> = files
        .iter()
        .map(|file| json!({ "path": file.path, "before": file.before, "after": file.after }))
        .collect();
    let count = list.len();
    let hash = canonical::hash(&Value::Array(list))
        .map_err(|error| ToolError::new(Code::Internal, error.to_string()))?;
    let mut bytes = 0;
    let named: Vec<Value> = files
        .iter()
        .take_while(|file| {
            bytes += file.path.as_str().len();
            bytes < MAX_LISTED_BYTES
        })
        .map(|file| json!({ "path": file.path, "change": change_of(file) }))
        .collect();
    let omitted = named.len() < count;
    let fields = json!({ "count": count, "listRef": hash, "paths": named, "pathsOmitted": omitted });
    Ok(event(record, "EDITS", None, fields))
}

/// An event of a call. Its time is the call's, so that recording it twice has no effect.
fn event(record: &CallRecord, kind: &str, file_path: Option<String>, fields: Value) -> ChronicleEvent {
    let (agent, id) = match &record.context.actor {
        Actor::Person(name) => ("person", name.as_str()),
        Actor::Agent(name) => ("agent", name.as_str()),
        Actor::Tool(path) => ("tool", path.as_str()),
    };
    let mut all = Map::new();
    if let Value::Object(fields) = fields {
        all.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    }
    let tool = record.tool.as_deref().unwrap_or(&record.call.tool);
    all.insert("tool".to_owned(), json!(tool));
    // The entry of the call, by the names that the audit gives to its parts.
    let entry = json!({
        "session": record.context.session,
        "callId": record.call.id,
        "time": record.started_ms,
    });
    all.insert(AUDIT_FIELD.to_owned(), entry);
    let actor = EventActor { agent: agent.to_owned(), id: id.to_owned() };
    ChronicleEvent {
        event_id: None,
        kind: kind.to_owned(),
        timestamp: tgp_text::rfc3339(record.started_ms),
        actor,
        file_path,
        fields: all,
    }
}
