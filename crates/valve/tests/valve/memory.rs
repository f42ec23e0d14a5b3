//! A chronicle that keeps its events in memory, and can be made to fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use async_trait::async_trait;
use tgp_contract::{AppendResult, Chronicle, ChronicleEvent, Code, RelativePath, ToolError};

#[derive(Default)]
pub struct MemoryChronicle {
    files: Mutex<BTreeMap<RelativePath, Vec<ChronicleEvent>>>,
    /// Chronicles that fail for now.
    pub broken: Mutex<BTreeSet<String>>,
    /// Nothing may be written at all.
    pub is_closed: Mutex<bool>,
}

fn is_in_scope(path: &str) -> bool {
    let in_folder = path.strip_prefix(".sage/").is_some_and(|name| !name.contains('/'));
    path.ends_with(".sage") && (in_folder || path.starts_with("src/"))
}

#[async_trait]
impl Chronicle for MemoryChronicle {
    async fn append(
        &self,
        file: &RelativePath,
        mut event: ChronicleEvent,
    ) -> Result<AppendResult, ToolError> {
        if *self.is_closed.lock().unwrap() || !is_in_scope(file.as_str()) {
            return Err(ToolError::new(Code::Permission, format!("`{file}` is outside the scope")).help("no"));
        }
        if self.broken.lock().unwrap().contains(file.as_str()) {
            return Err(ToolError::new(Code::Internal, format!("`{file}` is broken for now")).help("wait"));
        }
        let event_id = event.compute_id().unwrap();
        assert_eq!(*event.event_id.get_or_insert_with(|| event_id.clone()), event_id);
        let mut files = self.files.lock().unwrap();
        let events = files.entry(file.clone()).or_default();
        let appended = !events.contains(&event);
        if appended {
            events.push(event);
        }
        Ok(AppendResult { event_id, appended })
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        let files = self.files.lock().unwrap();
        let events = files.get(file).cloned().unwrap_or_default();
        Ok(events[events.len().saturating_sub(most)..].to_vec())
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        Ok(self.files.lock().unwrap().keys().cloned().collect())
    }
}
