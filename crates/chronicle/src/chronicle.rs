//! The chronicles of one project.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tgp_contract::{
    AppendResult, Chronicle, ChronicleEvent, ChronicleLayout, ChronicleRevision, RelativePath, ToolError,
};

use crate::append::{self, AppendOutcome};
use crate::dedup_cache::DedupCache;
use crate::dirfd::{Missing, Project};
use crate::events::{self, Events, Start};
use crate::failure::{Doing, Failure};
use crate::migrate::{self, Migration, MigrationReport};
use crate::options::{ChronicleOptions, ChronicleSync};
use crate::scope::Scope;
use crate::torn::Quarantined;
use crate::verify::{self, ChronicleReport};

/// Events that may wait for the disk together when they are kept in batches.
const MAX_UNSYNCED: usize = 64;
/// Notes of torn lines that are kept for callers. More of them in one process is a disk that fails.
const MAX_NOTES: usize = 256;

/// The chronicles of a project, as files. Clones are the same chronicle.
#[derive(Clone, Debug)]
pub struct FileChronicle {
    keeper: Arc<ChronicleInner>,
}

/// What all calls share.
#[derive(Debug)]
pub(crate) struct ChronicleInner {
    pub(crate) project: Project,
    pub(crate) scope: Scope,
    pub(crate) layout: ChronicleLayout,
    pub(crate) durability: ChronicleSync,
    pub(crate) lock_wait: Duration,
    read_only: Option<ToolError>,
    pub(crate) known: DedupCache,
    waiting: Mutex<Waiting>,
    notes: Mutex<Vec<Quarantined>>,
}

/// Files with events that were not synced yet.
#[derive(Debug, Default)]
struct Waiting {
    files: BTreeSet<RelativePath>,
    events: usize,
}

impl FileChronicle {
    /// # Errors
    /// `ECONFIG` for a scope that is not a list of globs, and when the project cannot be opened.
    pub fn open(options: &ChronicleOptions) -> Result<Self, ToolError> {
        let scope = Scope::new(&options.scope)?;
        let project =
            Project::open(&options.project).doing("cannot open the project", &RelativePath::root())?;
        let keeper = ChronicleInner {
            project,
            scope,
            layout: options.layout,
            durability: options.durability,
            lock_wait: options.lock_wait,
            read_only: options.read_only.clone(),
            known: DedupCache::default(),
            waiting: Mutex::default(),
            notes: Mutex::default(),
        };
        Ok(Self { keeper: Arc::new(keeper) })
    }

    /// [`Chronicle::append`] for a caller that may block, with what was found at the end of the file.
    ///
    /// # Errors
    /// As [`Chronicle::append`]; `ECONFLICT` when another process keeps the lock, `ESECURITY` for a link or a special
    /// file, `EINTEGRITY` for a file that does not end as a chronicle does.
    pub fn append_blocking(
        &self,
        file: &RelativePath,
        event: ChronicleEvent,
    ) -> Result<AppendOutcome, ToolError> {
        self.keeper.check_writable()?;
        Ok(append::append(&self.keeper, file, event)?)
    }

    /// The events of a chronicle from `start` on, read while they are asked for. None where there is no such chronicle.
    /// Blocks as files do.
    ///
    /// # Errors
    /// `EPERMISSION` outside the scope, `EVALIDATION` for an offset at which no line begins.
    pub fn read(&self, file: &RelativePath, start: Start) -> Result<Events, ToolError> {
        Ok(Events::open(&self.keeper, file, start)?)
    }

    /// [`Chronicle::tail`] for a caller that may block.
    ///
    /// # Errors
    /// As [`Chronicle::tail`]; `EVALIDATION` when so many events are too much for one list.
    pub fn tail_blocking(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        events::tail(&self.keeper, file, most)
    }

    /// Reads a whole chronicle, and says what is wrong with it. Blocks as files do.
    ///
    /// # Errors
    /// `ENOTFOUND` where there is no such chronicle; what is wrong with its lines is in the report.
    pub fn verify(&self, file: &RelativePath) -> Result<ChronicleReport, ToolError> {
        Ok(verify::verify(&self.keeper, file)?)
    }

    /// Shows the events of a chronicle with the numbers of their lines, oldest first. Lines that are not events are left
    /// out, and nothing is shown where there is no such chronicle. Blocks as files do.
    ///
    /// # Errors
    /// `EPERMISSION` outside the scope, and when the file cannot be read.
    pub fn each_event(
        &self,
        file: &RelativePath,
        each: &mut dyn FnMut(u64, ChronicleEvent),
    ) -> Result<(), ToolError> {
        Ok(verify::each_event(&self.keeper, file, each)?)
    }

    /// The file of the chronicle with this name, whether it is there or not.
    ///
    /// # Errors
    /// `EPERMISSION` outside the scope, and for a name that no file can have.
    pub fn file_of(&self, name: &RelativePath) -> Result<RelativePath, ToolError> {
        Ok(self.keeper.file_of(name)?)
    }

    /// Moves the chronicles whose files are where the other layout has them. Only a person may want that: their author
    /// is unknown.
    ///
    /// # Errors
    /// When the project cannot be read or written; what is wrong with one file is in the report.
    pub fn migrate(&self, extent: Migration) -> Result<MigrationReport, ToolError> {
        if extent == Migration::Apply {
            self.keeper.check_writable()?;
        }
        Ok(migrate::migrate(&self.keeper, extent)?)
    }

    /// The files that [`FileChronicle::migrate`] would read: those of the other layout that begin as a chronicle does.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn unmigrated(&self) -> Result<Vec<RelativePath>, ToolError> {
        Ok(migrate::unmigrated(&self.keeper)?)
    }

    /// The file of the other layout that would be this chronicle's after a migration, if there is one.
    #[must_use]
    pub fn unmigrated_file_of(&self, name: &RelativePath) -> Option<RelativePath> {
        migrate::unmigrated_file_of(&self.keeper, name)
    }

    /// [`FileChronicle::verify`] of every chronicle, sorted by name.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn verify_all(&self) -> Result<Vec<ChronicleReport>, ToolError> {
        self.files_blocking()?.iter().map(|file| self.verify(file)).collect()
    }

    /// [`Chronicle::files`] for a caller that may block.
    ///
    /// # Errors
    /// As [`Chronicle::files`].
    pub fn files_blocking(&self) -> Result<Vec<RelativePath>, ToolError> {
        Ok(self.keeper.project.chronicles(&self.keeper.scope, self.keeper.layout)?)
    }

    /// Waits until every event that this chronicle has kept is on the disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync(&self) -> Result<(), ToolError> {
        Ok(self.keeper.sync()?)
    }

    /// The torn lines that were set aside since this was opened or last asked.
    #[must_use]
    pub fn take_set_aside(&self) -> Vec<Quarantined> {
        std::mem::take(&mut self.keeper.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let chronicle = self.clone();
        let done = tokio::task::spawn_blocking(move || work(chronicle)).await;
        done.unwrap_or_else(|error| Err(Failure::Thread(error.to_string()).into()))
    }
}

#[async_trait]
impl Chronicle for FileChronicle {
    async fn append(&self, file: &RelativePath, event: ChronicleEvent) -> Result<AppendResult, ToolError> {
        let file = file.clone();
        self.blocking(move |chronicle| Ok(chronicle.append_blocking(&file, event)?.appended)).await
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        let file = file.clone();
        self.blocking(move |chronicle| chronicle.tail_blocking(&file, most)).await
    }

    fn revision(&self, file: &RelativePath) -> Option<ChronicleRevision> {
        events::revision(&self.keeper, file)
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        self.blocking(|chronicle| chronicle.files_blocking()).await
    }
}

impl ChronicleInner {
    fn check_writable(&self) -> Result<(), ToolError> {
        self.read_only.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn note(&self, set_aside: &Quarantined) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < MAX_NOTES {
            notes.push(set_aside.clone());
        }
    }

    /// Counts an event that waits for the disk. Returns whether enough of them wait.
    pub(crate) fn unsynced(&self, file: &RelativePath) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.files.insert(file.clone());
        waiting.events += 1;
        waiting.events >= MAX_UNSYNCED
    }

    pub(crate) fn sync(&self) -> Result<(), Failure> {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let mut outcome = Ok(());
        for file in &waiting.files {
            if let Err(failure) = self.sync_file(file) {
                // It waits again, so that the next sync does not pass over it.
                self.unsynced(file);
                outcome = Err(failure);
            }
        }
        outcome
    }

    /// The file of the chronicle with this name, if it is one that may be read and written.
    pub(crate) fn file_of(&self, name: &RelativePath) -> Result<RelativePath, Failure> {
        self.scope.check(name)?;
        self.layout.file_of(name).map_err(|_| Failure::NoRoom(name.clone()))
    }

    fn sync_file(&self, name: &RelativePath) -> Result<(), Failure> {
        let path = &self.file_of(name)?;
        let Some(directory) = self.project.directory(&path.parent(), Missing::Refuse)? else { return Ok(()) };
        match directory.open(path.name().unwrap_or_default())? {
            Some(file) => file.sync_data().doing("cannot sync", path),
            // It was removed, and there is nothing left to lose.
            None => Ok(()),
        }
    }
}
