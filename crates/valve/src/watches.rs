//! One watch for each directory that is not ignored, so that a folder of a million ignored files costs nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};
use tgp_contract::{ChronicleLayout, RelativePath};

use crate::fs_event_queue::FsEventQueue;
use crate::tree::EXCLUDE;

/// The directories that are watched.
///
/// The system knows a directory by its inode, and keeps reporting under the old name when it was moved. So whatever
/// came, went or moved is forgotten first, with all below it, and watched again when it is entered: before it is
/// read, so that nothing can happen in between.
pub(crate) struct Watches {
    watcher: RecommendedWatcher,
    root: PathBuf,
    watched: BTreeSet<RelativePath>,
    /// Why not everything can be watched.
    pub(crate) failed: Option<String>,
}

impl Watches {
    pub(crate) fn new(
        root: PathBuf,
        hints: &Arc<FsEventQueue>,
        personas_file: &RelativePath,
        layout: ChronicleLayout,
    ) -> Result<Self, notify::Error> {
        let (hints, told_root, file) = (Arc::clone(hints), root.clone(), personas_file.clone());
        let watcher = notify::recommended_watcher(move |told| {
            hints.told(told, &told_root, &file, layout);
        })?;
        let mut watches = Self { watcher, root, watched: BTreeSet::new(), failed: None };
        watches.enter_own(personas_file);
        Ok(watches)
    }

    /// Watches what no walk enters: the folders of the file of personas and of git's own rules.
    pub(crate) fn enter_own(&mut self, personas_file: &RelativePath) {
        self.enter(&personas_file.parent());
        if let Ok(exclude) = RelativePath::new(EXCLUDE) {
            self.enter(&exclude.parent());
        }
    }

    pub(crate) fn enter(&mut self, directory: &RelativePath) {
        if self.failed.is_some() || self.watched.contains(directory) {
            return;
        }
        let path = if directory.is_root() { self.root.clone() } else { self.root.join(directory.as_str()) };
        match self.watcher.watch(&path, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.watched.insert(directory.clone());
            }
            Err(error) if has_run_out(&error) => self.failed = Some(error.to_string()),
            // It is gone or unreadable; the walk finds out.
            Err(_) => {}
        }
    }

    /// Watches nothing at or below a path any more.
    pub(crate) fn forget(&mut self, path: &RelativePath) {
        let below: Vec<RelativePath> = self
            .watched
            .range(path.clone()..)
            .take_while(|watched| watched.as_str().starts_with(path.as_str()))
            .filter(|watched| watched.is_inside(path))
            .cloned()
            .collect();
        for directory in below {
            // The watcher has forgotten it by itself, where it saw it go.
            let _ = self.watcher.unwatch(&self.root.join(directory.as_str()));
            self.watched.remove(&directory);
        }
    }
}

/// Whether the limit of watches or open files is reached.
fn has_run_out(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => {
            matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EMFILE | libc::ENFILE | libc::ENOMEM))
        }
        _ => false,
    }
}
