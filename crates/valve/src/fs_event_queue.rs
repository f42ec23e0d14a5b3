//! Where the system says that something has happened. It is believed only that one should look there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Event, EventKind};
use tgp_contract::{ChronicleLayout, RelativePath};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::mutex::locked;
use crate::tree::{EXCLUDE, is_always_ignored, is_chronicle_name};

/// A pause after which a change counts as over: editors write a file in several steps.
pub(crate) const QUIET: Duration = Duration::from_millis(50);
/// A stream of changes without a pause is scanned all the same.
pub(crate) const LONGEST: Duration = Duration::from_millis(500);
/// More paths than this are not scanned one by one.
const MAX_PATHS: usize = 10_000;

/// What one batch of hints says.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) paths: BTreeSet<RelativePath>,
    /// Those of them that came, went or moved: what is watched there may be another directory now.
    pub(crate) moved: BTreeSet<RelativePath>,
    /// Those of them whose last hint says that they left: for good, or to a name that may yet be found.
    pub(crate) left: BTreeMap<RelativePath, Leaving>,
    /// Renames of which both names are known, in order.
    pub(crate) renames: Vec<(RelativePath, RelativePath)>,
    /// Why the whole tree is to be scanned.
    pub(crate) whole: Option<String>,
    /// Whether the file of personas may be another.
    pub(crate) personas: bool,
}

#[derive(Debug, Default)]
struct Inner {
    batch: Batch,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// Hints that were not processed yet. The thread of the watcher adds, the loop takes.
#[derive(Debug, Default)]
pub(crate) struct FsEventQueue {
    inner: Mutex<Inner>,
    bell: Notify,
}

impl FsEventQueue {
    /// Waits for the first hint.
    pub(crate) async fn any(&self) {
        loop {
            let rung = self.bell.notified();
            if locked(&self.inner).first.is_some() {
                return;
            }
            rung.await;
        }
    }

    /// Waits until nothing more is said, or for as long as changes may wait.
    pub(crate) async fn settled(&self) {
        loop {
            let until = {
                let inner = locked(&self.inner);
                let (Some(first), Some(last)) = (inner.first, inner.last) else { return };
                (last + QUIET).min(first + LONGEST)
            };
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    pub(crate) fn take(&self) -> Batch {
        std::mem::take(&mut *locked(&self.inner)).batch
    }

    /// Asks for a scan of the whole tree.
    pub(crate) fn whole(&self, reason: &str) {
        self.add(|batch| {
            batch.whole.get_or_insert_with(|| reason.to_owned());
        });
    }

    fn add(&self, add: impl FnOnce(&mut Batch)) {
        {
            let mut inner = locked(&self.inner);
            add(&mut inner.batch);
            if inner.batch.paths.len() > MAX_PATHS || inner.batch.renames.len() > MAX_PATHS {
                inner.batch.whole.get_or_insert_with(|| "too many changes at once".to_owned());
            }
            if inner.batch.whole.is_some() {
                inner.batch.paths.clear();
                inner.batch.moved.clear();
                inner.batch.left.clear();
                inner.batch.renames.clear();
            }
            let now = Instant::now();
            inner.first.get_or_insert(now);
            inner.last = Some(now);
        }
        self.bell.notify_one();
    }

    /// Takes an event of the watcher.
    pub(crate) fn told(
        &self,
        told: notify::Result<Event>,
        root: &Path,
        personas_file: &RelativePath,
        layout: ChronicleLayout,
    ) {
        let event = match told {
            Ok(event) => event,
            Err(error) => return self.whole(&format!("the watcher failed: {error}")),
        };
        if event.need_rescan() {
            return self.whole("the queue of the system was full");
        }
        let inside = |path: &Path| RelativePath::new(path.strip_prefix(root).ok()?.to_str()?).ok();
        if event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both))
            && let [from, to] = event.paths.as_slice()
            && let (Some(from), Some(to)) = (inside(from), inside(to))
        {
            self.add(|batch| batch.renames.push((from, to)));
        }
        for (number, path) in event.paths.iter().enumerate() {
            let Some(course) = course(event.kind, number) else { return };
            let is_moved = course != Course::Stayed;
            let Ok(path) = path.strip_prefix(root) else { continue };
            let Some(path) = path.to_str().and_then(|path| RelativePath::new(path).ok()) else {
                // A name that no event can contain: the scan of its folder reports it.
                if let Some(folder) = speakable(path)
                    && !is_always_ignored(&folder)
                {
                    self.path(folder, Course::Stayed);
                }
                continue;
            };
            if path.is_root() {
                self.whole("the project's folder itself was changed");
            } else if path == *personas_file || personas_file.is_inside(&path) {
                self.add(|batch| {
                    batch.personas = true;
                    // Its folder is watched for its sake alone.
                    if is_moved && path != *personas_file {
                        batch.moved.insert(path.clone());
                    }
                });
                if !is_always_ignored(&path) {
                    self.path(path, course);
                }
            } else if path.as_str() == EXCLUDE {
                self.whole("the rules of git were changed");
            } else if !is_always_ignored(&path) && !is_own_writing(&path, event.kind, layout) {
                self.path(path, course);
            }
        }
    }

    fn path(&self, path: RelativePath, course: Course) {
        self.add(|batch| {
            if batch.whole.is_none() {
                if course != Course::Stayed {
                    batch.moved.insert(path.clone());
                }
                match course {
                    Course::Stayed => {}
                    Course::Came => {
                        batch.left.remove(&path);
                    }
                    Course::Left(leaving) => {
                        batch.left.insert(path.clone(), leaving);
                    }
                }
                batch.paths.insert(path);
            }
        });
    }
}

/// Whether something came to a path or left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Stayed,
    Came,
    Left(Leaving),
}

/// How something left its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    Removed,
    Renamed,
}

/// What an event says of one of its paths; nothing for an event that is none of ours.
fn course(kind: EventKind, number: usize) -> Option<Course> {
    match kind {
        // Our own reading is among these.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Course::Stayed),
        EventKind::Access(_) | EventKind::Other => None,
        EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some(Course::Came),
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) if number > 0 => Some(Course::Came),
        EventKind::Modify(ModifyKind::Name(_)) => Some(Course::Left(Leaving::Renamed)),
        EventKind::Remove(_) => Some(Course::Left(Leaving::Removed)),
        EventKind::Any | EventKind::Modify(_) => Some(Course::Stayed),
    }
}

/// Whether it is only a chronicle that was written to, as our own are all the time. A folder may have such a name too, and
/// then it comes, goes or moves.
fn is_own_writing(path: &RelativePath, kind: EventKind, layout: ChronicleLayout) -> bool {
    let is_folder = matches!(
        kind,
        EventKind::Create(CreateKind::Folder)
            | EventKind::Remove(RemoveKind::Folder)
            | EventKind::Modify(ModifyKind::Name(_))
    );
    !is_folder && path.name().is_some_and(|name| is_chronicle_name(name, layout))
}

/// The nearest folder above a path that has a name.
fn speakable(path: &Path) -> Option<RelativePath> {
    path.ancestors().skip(1).find_map(|above| RelativePath::new(above.to_str()?).ok())
}
