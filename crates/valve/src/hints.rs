//! Where the system says that something has happened. It is believed only that one should look there.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};
use tgp_contract::RelativePath;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::locked;
use crate::tree::{EXCLUDE, is_always_ignored};

/// A pause after which a change counts as over: editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(50);
/// A stream of changes without a pause is looked at all the same.
const LONGEST: Duration = Duration::from_millis(500);
/// More paths than this are not looked at one by one.
const MAX_PATHS: usize = 10_000;

/// What one batch of hints says.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) paths: BTreeSet<RelativePath>,
    /// Those of them that came, went or moved: what is watched there may be another directory now.
    pub(crate) moved: BTreeSet<RelativePath>,
    /// Why the whole tree is to be looked at.
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

/// Hints that were not looked at yet. The thread of the watcher adds, the loop takes.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    inner: Mutex<Inner>,
    bell: Notify,
}

impl Hints {
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

    /// Asks for a look at the whole tree.
    pub(crate) fn whole(&self, reason: &str) {
        self.add(|batch| {
            batch.whole.get_or_insert_with(|| reason.to_owned());
        });
    }

    fn add(&self, add: impl FnOnce(&mut Batch)) {
        {
            let mut inner = locked(&self.inner);
            add(&mut inner.batch);
            if inner.batch.paths.len() > MAX_PATHS {
                inner.batch.whole.get_or_insert_with(|| "too many changes at once".to_owned());
            }
            if inner.batch.whole.is_some() {
                inner.batch.paths.clear();
                inner.batch.moved.clear();
            }
            let now = Instant::now();
            inner.first.get_or_insert(now);
            inner.last = Some(now);
        }
        self.bell.notify_one();
    }

    /// Takes what the watcher tells.
    pub(crate) fn told(&self, told: notify::Result<Event>, root: &Path, personas_file: &RelativePath) {
        let event = match told {
            Ok(event) => event,
            Err(error) => return self.whole(&format!("the watcher failed: {error}")),
        };
        if event.need_rescan() {
            return self.whole("the queue of the system was full");
        }
        let is_moved = match event.kind {
            // Our own reading is among these.
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) | EventKind::Other => return,
            EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => true,
            EventKind::Any | EventKind::Modify(_) => false,
        };
        for path in &event.paths {
            let Ok(path) = path.strip_prefix(root) else { continue };
            let Some(path) = path.to_str().and_then(|path| RelativePath::new(path).ok()) else {
                // A name that cannot be told of: whoever looks at its folder says so.
                if let Some(folder) = speakable(path)
                    && !is_always_ignored(&folder)
                {
                    self.path(folder, false);
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
                    self.path(path, is_moved);
                }
            } else if path.as_str() == EXCLUDE {
                self.whole("the rules of git were changed");
            } else if !is_always_ignored(&path) {
                self.path(path, is_moved);
            }
        }
    }

    fn path(&self, path: RelativePath, is_moved: bool) {
        self.add(|batch| {
            if batch.whole.is_none() {
                if is_moved {
                    batch.moved.insert(path.clone());
                }
                batch.paths.insert(path);
            }
        });
    }
}

/// The nearest folder above a path that has a name.
fn speakable(path: &Path) -> Option<RelativePath> {
    path.ancestors().skip(1).find_map(|above| RelativePath::new(above.to_str()?).ok())
}
