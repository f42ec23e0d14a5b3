//! Files that were found gone, and are perhaps only on their way to another name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tgp_contract::RelativePath;
use tokio::time::Instant;

use crate::hints::{Batch, QUIET};

/// How long a deletion is held of which the system says nothing, or something new at each look.
const LONGEST_HOLD: Duration = Duration::from_secs(2);
/// Deletions that are held; whoever removes more at once has not renamed them one by one, and the rest is told at once.
pub(crate) const MAX_HOLDS: usize = 10_000;

/// Deletions that are not told yet. Nothing of them is written down: whoever looks next finds the files gone again.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    all: BTreeMap<RelativePath, Hold>,
}

#[derive(Debug)]
struct Hold {
    /// The name that the file was given last, as far as it was told.
    at: RelativePath,
    /// When it was found gone, or given this name.
    since: Instant,
    /// The end of the last look that found it gone.
    looked: Instant,
    /// Whether the system has told that it left. The other half of a rename is told right after that.
    is_told: bool,
}

impl Holds {
    /// When to look again, if nothing happens before.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.all.values().map(|hold| hold.looked + QUIET).min()
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// Adds what is held to the paths of a batch, and answers which of it is deleted if it is still gone: nothing has
    /// happened there since it was found gone, and so the other half of a rename would be known by now.
    pub(crate) fn join(&mut self, batch: &mut Batch, now: Instant) -> BTreeSet<RelativePath> {
        let mut certain = BTreeSet::new();
        for (path, hold) in &mut self.all {
            let at = follow(&hold.at, batch);
            if at != hold.at {
                hold.at = at;
                hold.since = now;
            }
            let is_hinted = names(&batch.paths, path) || names(&batch.paths, &hold.at);
            if is_hinted {
                hold.is_told = names(&batch.left, &hold.at);
            }
            let is_quiet = hold.is_told && !is_hinted && now >= hold.looked + QUIET;
            if is_quiet || now >= hold.since + LONGEST_HOLD {
                certain.insert(path.clone());
            }
        }
        let held = self.all.iter().flat_map(|(path, hold)| [path, &hold.at]);
        batch.paths.extend(held.cloned());
        certain
    }

    /// Holds what a look for a batch has found gone, and nothing else.
    pub(crate) fn keep(&mut self, doubtful: Vec<RelativePath>, batch: &Batch, now: Instant) {
        let mut before = std::mem::take(&mut self.all);
        for path in doubtful {
            let hold = match before.remove(&path) {
                Some(hold) => Hold { looked: now, ..hold },
                None => {
                    let at = follow(&path, batch);
                    Hold { is_told: names(&batch.left, &at), at, since: now, looked: now }
                }
            };
            self.all.insert(path, hold);
        }
    }
}

/// The name that a file has after the renames of a batch, of itself or of a folder above it.
fn follow(path: &RelativePath, batch: &Batch) -> RelativePath {
    let mut at = path.clone();
    for (from, to) in &batch.renames {
        if at == *from {
            at = to.clone();
        } else if let Some(rest) = at.as_str().strip_prefix(from.as_str())
            && let Some(rest) = rest.strip_prefix('/')
            && let Ok(moved) = to.join(rest)
        {
            at = moved;
        }
    }
    at
}

/// Whether a path or a folder above it is among some.
fn names(paths: &BTreeSet<RelativePath>, path: &RelativePath) -> bool {
    let mut at = path.clone();
    loop {
        if paths.contains(&at) {
            return true;
        }
        if at.is_root() {
            return false;
        }
        at = at.parent();
    }
}
