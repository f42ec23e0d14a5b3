//! A project in a temporary folder, and events for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tgp_chronicle::{ChronicleOptions, FileChronicle, Start};
use tgp_contract::{ChronicleEvent, ChronicleLayout, Code, EventActor, RelativePath, ToolError};

pub struct Project {
    pub folder: TempDir,
    pub chronicle: FileChronicle,
}

impl Project {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let chronicle = FileChronicle::open(&beside(folder.path())).unwrap();
        Self { folder, chronicle }
    }

    /// A second one on the same files, which knows nothing of what the first has seen.
    pub fn again(&self) -> FileChronicle {
        FileChronicle::open(&beside(self.folder.path())).unwrap()
    }

    pub fn disk(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.disk(path).parent().unwrap()).unwrap();
        std::fs::write(self.disk(path), content).unwrap();
    }

    pub fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.disk(path)).unwrap()
    }

    /// Whether the event was new.
    pub fn append(&self, path: &str, event: ChronicleEvent) -> Result<bool, ToolError> {
        Ok(self.chronicle.append_blocking(&at(path), event)?.appended.appended)
    }

    pub fn events(&self, path: &str) -> Result<Vec<ChronicleEvent>, ToolError> {
        self.chronicle
            .read(&at(path), Start::Beginning)?
            .map(|entry| entry.map(|entry| entry.event))
            .collect()
    }

    /// The lines of `count` events, as they are in a file.
    pub fn lines(count: usize) -> Vec<Vec<u8>> {
        let project = Self::new();
        for number in 0..count {
            project.append("src/a.sage", event(number)).unwrap();
        }
        project.bytes("src/a.sage").split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }
}

/// Chronicles beside the sources: what a file holds does not depend on where it is, and a name is its path there. What
/// depends on it is in `layout` and `migrate`.
pub fn beside(folder: &Path) -> ChronicleOptions {
    ChronicleOptions { layout: ChronicleLayout::Beside, ..ChronicleOptions::new(folder) }
}

pub fn at(path: &str) -> RelativePath {
    RelativePath::new(path).unwrap()
}

pub fn event(number: usize) -> ChronicleEvent {
    let fields =
        json!({ "number": number, "text": format!("the {number}. event, with \"quotes\" and ünicode") });
    event_with(fields.as_object().unwrap().clone())
}

pub fn event_with(fields: Map<String, Value>) -> ChronicleEvent {
    ChronicleEvent {
        event_id: None,
        kind: "EDIT".to_owned(),
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
        actor: EventActor { agent: "tester".to_owned(), id: "1".to_owned() },
        file_path: Some("src/a.ts".to_owned()),
        fields,
    }
}

pub fn number(event: &ChronicleEvent) -> usize {
    usize::try_from(event.fields["number"].as_u64().unwrap()).unwrap()
}

/// This very test program, running one test alone.
pub fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[track_caller]
pub fn assert_code<T: std::fmt::Debug>(result: Result<T, ToolError>, code: Code) -> ToolError {
    let error = result.unwrap_err();
    assert_eq!(error.code, code, "{error}");
    assert!(!error.help_of().unwrap_or_default().is_empty(), "{error} says no next step");
    error
}
