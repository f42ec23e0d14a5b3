//! What this process knows of the tools in the working tree, and how much of it the searcher knows.
//!
//! The cost of reading all tools grows with their number, so it happens once. After that only what differs between the
//! commit that was read and the branch is read again and passed to the searcher.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tgp_contract::{FileSystem, RelativePath, ToolError, ToolMetadata};
use tgp_git::ToolRepo;
use tgp_registry::is_tool;

use super::catalogue::MetaSync;
use super::library::ToolLibrary;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct IndexState {
    /// Every tool; nothing when all have to be read (again).
    tools: Option<BTreeMap<RelativePath, Arc<ToolMetadata>>>,
    /// The head of the branch when they were read.
    head: Option<String>,
    /// True when `meta.json` says the same.
    mended: bool,
    /// The tools that the searcher does not know as they are; `None` when it may know none of them.
    untold: Option<BTreeSet<RelativePath>>,
}

/// A tool as it was passed to the searcher; `None` where its removal was passed.
type Told = (RelativePath, Option<Arc<ToolMetadata>>);

impl IndexState {
    fn all(&self) -> Vec<Arc<ToolMetadata>> {
        self.tools.iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Takes what was found at `paths`, which may be nothing.
    fn take(&mut self, paths: Vec<RelativePath>, found: Vec<Arc<ToolMetadata>>) {
        let Some(tools) = self.tools.as_mut() else { return };
        let mut found: BTreeMap<RelativePath, Arc<ToolMetadata>> =
            found.into_iter().map(|tool| (tool.path.clone(), tool)).collect();
        for path in paths {
            let is_new = match found.remove(&path) {
                Some(tool) => {
                    let before = tools.insert(path.clone(), Arc::clone(&tool));
                    before.is_none_or(|before| !Arc::ptr_eq(&before, &tool))
                }
                None => tools.remove(&path).is_some(),
            };
            if let Some(untold) = self.untold.as_mut().filter(|_| is_new) {
                untold.insert(path);
            }
        }
    }

    fn is_as(&self, (path, tool): &Told) -> bool {
        let current = self.tools.as_ref().and_then(|tools| tools.get(path));
        match (current, tool) {
            (Some(current), Some(told)) => Arc::ptr_eq(current, told),
            (None, None) => true,
            _ => false,
        }
    }

    /// Notes what the searcher was given. What has changed meanwhile is passed again: of two concurrent updates the
    /// slower one may have passed the older version.
    fn note(&mut self, told: &[Told]) {
        let outdated: Vec<bool> = told.iter().map(|told| !self.is_as(told)).collect();
        let Some(untold) = self.untold.as_mut() else { return };
        for ((path, _), is_outdated) in told.iter().zip(outdated) {
            if is_outdated {
                untold.insert(path.clone());
            } else {
                untold.remove(path);
            }
        }
    }

    /// The same for all that the searcher knows.
    fn note_all(&mut self, told: &[Told]) {
        let Some(tools) = &self.tools else { return };
        let known: BTreeMap<&RelativePath, &Option<Arc<ToolMetadata>>> =
            told.iter().map(|(path, tool)| (path, tool)).collect();
        let new = tools.keys().filter(|path| !known.contains_key(path)).cloned();
        let outdated = told.iter().filter(|told| !self.is_as(told)).map(|(path, _)| path.clone());
        self.untold = Some(new.chain(outdated).collect());
    }
}

impl ToolLibrary {
    /// Ensures that the searcher knows every tool. Returns what had to be repaired on the way.
    pub(super) async fn survey(
        &self,
        files: &Arc<dyn FileSystem>,
        patience: Duration,
        care: MetaSync,
    ) -> Result<Vec<String>, ToolError> {
        let mut warnings = Vec::new();
        let head = self.head();
        // In this order: a working tree that does not move after the branch was read is not behind it.
        let is_moving = self.git().is_ok_and(ToolRepo::is_moving);
        let mut known = self.known.lock().await;
        // Another process, or a rebase, may have brought tools that this process has not seen.
        if known.tools.is_none() || known.head != head {
            known.mended = false;
            match self.changed_since(&known, head.as_deref()).await {
                Some(paths) => {
                    let found = self.catalogue.scan_some(files, paths.clone()).await?;
                    known.take(paths, found);
                }
                None => {
                    let tools = self.catalogue.scan(files).await?;
                    known.tools = Some(tools.into_iter().map(|tool| (tool.path.clone(), tool)).collect());
                    known.untold = None;
                    known.head = None;
                }
            }
            // What was read while it moved is read again.
            if !is_moving {
                known.head = head;
            }
        }
        if care == MetaSync::Mend && !known.mended && !self.is_read_only() {
            warnings = self.catalogue.mend(files, &known.all())?;
            known.mended = true;
        }
        drop(known);
        // Embedding takes its time; a write must not wait for it.
        match tokio::time::timeout(patience, self.tell()).await {
            Ok(Ok(())) => {}
            // They can be found by their words already.
            Ok(Err(error)) => warnings.push(format!("the tools could not be embedded: {}", error.message)),
            Err(_) => {}
        }
        Ok(warnings)
    }

    /// The tools that differ between what was read and `head`; `None` when all have to be read.
    async fn changed_since(&self, known: &IndexState, head: Option<&str>) -> Option<Vec<RelativePath>> {
        known.tools.as_ref()?;
        let changed = self.git().ok()?.changed(known.head.as_deref()?, head?).await.ok()??;
        Some(changed.into_iter().filter(is_tool).collect())
    }

    /// Takes a tool that was just written, and passes it to the searcher; where that fails, all are read next
    /// time.
    pub(super) async fn learn(&self, path: &RelativePath, content: Vec<u8>, patience: Duration) {
        if !is_tool(path) {
            return;
        }
        let described = self.catalogue.describe(vec![(path.clone(), content)]).await;
        let mut known = self.known.lock().await;
        match described {
            // What else came with the same move is seen by the next survey, which finds another head.
            Ok(described) => known.take(vec![path.clone()], described),
            Err(_) => known.tools = None,
        }
        drop(known);
        let _ = tokio::time::timeout(patience, self.tell()).await;
    }

    /// Forgets everything: all tools are read next time.
    pub(super) async fn forget(&self) {
        *self.known.lock().await = IndexState::default();
    }

    /// Passes to the searcher what it does not know yet.
    async fn tell(&self) -> Result<(), ToolError> {
        let known = self.known.lock().await;
        let Some(tools) = &known.tools else { return Ok(()) };
        let copy = |told: &[Told]| -> Vec<ToolMetadata> {
            told.iter().filter_map(|(_, tool)| tool.as_deref().cloned()).collect()
        };
        let Some(untold) = &known.untold else {
            let told: Vec<Told> =
                tools.iter().map(|(path, tool)| (path.clone(), Some(Arc::clone(tool)))).collect();
            drop(known);
            self.searcher.update(copy(&told)).await?;
            self.known.lock().await.note_all(&told);
            return Ok(());
        };
        if untold.is_empty() {
            return Ok(());
        }
        let told: Vec<Told> =
            untold.iter().map(|path| (path.clone(), tools.get(path).map(Arc::clone))).collect();
        drop(known);
        for (path, _) in told.iter().filter(|(_, tool)| tool.is_none()) {
            self.searcher.remove(path).await;
        }
        let inserted = self.searcher.insert(copy(&told)).await;
        let mut known = self.known.lock().await;
        match inserted {
            Ok(_) => known.note(&told),
            Err(_) => known.untold = None,
        }
        inserted.map(|_| ())
    }
}
