//! A valve that reads every file on request, and remembers their hashes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use tgp_contract::{
    CHRONICLE_DIRECTORY, Chronicle, ChronicleEvent, Code, EventActor, PROJECT_CHRONICLE, RelativePath,
    ToolError, canonical, chronicle_of, has_chronicle_name, is_chronicle_content,
};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::oneshot;

/// Files that one scan takes; more were not meant for a fake.
const MAX_FILES: usize = 10_000;
/// How often a watch scans.
const SCAN_EVERY: Duration = Duration::from_millis(20);
/// Folders whose files never trigger anything.
const IGNORED: [&str; 3] = [".git", CHRONICLE_DIRECTORY, ".tgp"];

/// A persona that wants to know of changes to files whose path contains one of the filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persona {
    pub name: String,
    pub filters: Vec<String>,
}

/// Reads all files, compares them with what it remembers, and reports the difference to personas.
pub struct FakeValve {
    project: PathBuf,
    /// Where it remembers from one scan to the next, also over restarts.
    memory: PathBuf,
    personas: Vec<Persona>,
    chronicle: Arc<dyn Chronicle>,
}

/// A file that is not what it was.
struct Difference {
    path: RelativePath,
    change: &'static str,
    written: Option<SystemTime>,
}

impl FakeValve {
    #[must_use]
    pub fn new(
        project: impl Into<PathBuf>,
        memory: impl Into<PathBuf>,
        personas: Vec<Persona>,
        chronicle: Arc<dyn Chronicle>,
    ) -> Self {
        Self { project: project.into(), memory: memory.into(), personas, chronicle }
    }

    /// One scan. The first one only remembers. Returns the reasons of events that no chronicle may take.
    ///
    /// # Errors
    /// When files cannot be read, or the chronicle fails otherwise than by its scope.
    pub async fn scan(&self) -> Result<Vec<String>, ToolError> {
        let now = self.look()?;
        let Some(before) = self.remembered()? else {
            self.remember(&now)?;
            return Ok(Vec::new());
        };
        let mut skipped = Vec::new();
        for difference in differences(&before, &now) {
            for persona in &self.personas {
                let path = difference.path.as_str();
                let Some(filter) = persona.filters.iter().find(|filter| path.contains(filter.as_str()))
                else {
                    continue;
                };
                skipped.extend(self.tell(persona, filter, &difference).await?);
            }
        }
        self.remember(&now)?;
        Ok(skipped)
    }

    /// Scans again and again until `stopped` completes or its sender is gone, and once more then.
    ///
    /// # Errors
    /// As [`FakeValve::scan`].
    pub async fn watch(&self, mut stopped: oneshot::Receiver<()>) -> Result<(), ToolError> {
        loop {
            let is_stopped = tokio::time::timeout(SCAN_EVERY, &mut stopped).await.is_ok();
            self.scan().await?;
            if is_stopped {
                return Ok(());
            }
        }
    }

    async fn tell(
        &self,
        persona: &Persona,
        filter: &str,
        difference: &Difference,
    ) -> Result<Option<String>, ToolError> {
        let at = difference.written.map_or_else(OffsetDateTime::now_utc, OffsetDateTime::from);
        let timestamp = at.format(&Rfc3339).map_err(|error| internal(&error))?;
        let mut fields = Map::new();
        fields.insert("persona".to_owned(), json!(persona.name));
        fields.insert("change".to_owned(), json!(difference.change));
        fields.insert("trigger".to_owned(), json!({ "type": "filter", "details": filter }));
        let event = ChronicleEvent {
            event_id: None,
            kind: "VALVE_PERSONA_TRIGGER".to_owned(),
            timestamp,
            actor: EventActor { agent: "valve".to_owned(), id: "watcher".to_owned() },
            file_path: Some(difference.path.as_str().to_owned()),
            fields,
        };
        let beside = chronicle_of(&difference.path)?;
        let mut reason = None;
        for chronicle in [beside, RelativePath::new(PROJECT_CHRONICLE)?] {
            match self.chronicle.append(&chronicle, event.clone()).await {
                Ok(_) => return Ok(None),
                Err(error) if error.code == Code::Permission => reason = Some(error.message),
                Err(error) => return Err(error),
            }
        }
        Ok(reason)
    }

    /// The hash and the time of every file.
    fn look(&self) -> Result<BTreeMap<RelativePath, (String, SystemTime)>, ToolError> {
        let mut files = BTreeMap::new();
        let mut folders = vec![RelativePath::root()];
        while let Some(folder) = folders.pop() {
            let listed =
                std::fs::read_dir(self.project.join(folder.as_str())).map_err(|error| internal(&error))?;
            for entry in listed {
                let entry = entry.map_err(|error| internal(&error))?;
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                // A file that is gone by now is one that the next scan does not find.
                let Some(metadata) = there(entry.metadata())? else { continue };
                let path = folder.join(&name)?;
                if metadata.is_dir() && !IGNORED.contains(&name.as_str()) {
                    folders.push(path);
                } else if metadata.is_file() {
                    let Some(bytes) = there(std::fs::read(entry.path()))? else { continue };
                    // In some layouts chronicles are beside the files that they are about.
                    if has_chronicle_name(&path) && is_chronicle_content(&bytes) {
                        continue;
                    }
                    let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    files.insert(path, (canonical::sha256_hex(&bytes), written));
                }
            }
            if files.len() > MAX_FILES {
                let message = format!("there are more than {MAX_FILES} files");
                return Err(ToolError::new(Code::Budget, message).help("use a real valve"));
            }
        }
        Ok(files)
    }

    fn remembered(&self) -> Result<Option<BTreeMap<RelativePath, String>>, ToolError> {
        match std::fs::read(&self.memory) {
            Ok(bytes) => {
                let hashes: BTreeMap<String, String> =
                    serde_json::from_slice(&bytes).map_err(|error| internal(&error))?;
                let known = hashes.into_iter().map(|(path, hash)| Ok((RelativePath::new(&path)?, hash)));
                known.collect::<Result<_, ToolError>>().map(Some)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(internal(&error)),
        }
    }

    fn remember(&self, files: &BTreeMap<RelativePath, (String, SystemTime)>) -> Result<(), ToolError> {
        let hashes: Map<String, Value> =
            files.iter().map(|(path, (hash, _))| (path.as_str().to_owned(), json!(hash))).collect();
        let folder = self.memory.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|error| internal(&error))?;
        std::fs::write(&self.memory, Value::Object(hashes).to_string()).map_err(|error| internal(&error))
    }
}

/// What has changed, deletions first and then by the time of writing.
fn differences(
    before: &BTreeMap<RelativePath, String>,
    now: &BTreeMap<RelativePath, (String, SystemTime)>,
) -> Vec<Difference> {
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    let mut found: Vec<Difference> =
        gone.map(|path| Difference { path: path.clone(), change: "deleted", written: None }).collect();
    for (path, (hash, written)) in now {
        let change = match before.get(path) {
            None => "created",
            Some(known) if known != hash => "changed",
            Some(_) => continue,
        };
        found.push(Difference { path: path.clone(), change, written: Some(*written) });
    }
    found.sort_by(|one, other| (one.written, &one.path).cmp(&(other.written, &other.path)));
    found
}

/// What was read of something; none where it is gone.
fn there<T>(read: std::io::Result<T>) -> Result<Option<T>, ToolError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(internal(&error)),
    }
}

fn internal(error: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(Code::Internal, format!("the valve cannot go on: {error}"))
        .help("check that the project can be read")
}
