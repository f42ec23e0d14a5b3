//! Files that were found gone, and are perhaps only on their way to another name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tgp_contract::RelativePath;
use tokio::time::Instant;

use crate::fs_event_queue::{Batch, LONGEST, Leaving, QUIET};
use crate::reconcile::UncertainDeletion;

/// How long a deletion is held of which the system says nothing, or something new at each scan.
const LONGEST_HOLD: Duration = Duration::from_secs(2);

/// Deletions that are not reported yet. They are not stored: the next scan finds the files gone again.
#[derive(Debug, Default)]
pub(crate) struct PendingDeletions {
    all: BTreeMap<RelativePath, Hold>,
}

#[derive(Debug)]
struct Hold {
    /// The name that the file was given last, as far as the system reported it.
    at: RelativePath,
    /// When it was found gone, or seen to have this name.
    since: Instant,
    /// The end of the last scan that found it gone.
    looked: Instant,
    /// What the system has reported of its leaving.
    leaving: Option<Leaving>,
}

impl PendingDeletions {
    /// When to scan again, if nothing happens before.
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
            let is_hinted =
                [path, &hold.at].into_iter().any(|path| above(path).any(|at| batch.paths.contains(&at)));
            if is_hinted {
                hold.leaving = leaving(batch, &hold.at);
            }
            let until = match hold.leaving {
                Some(Leaving::Removed) if !is_hinted => hold.looked + QUIET,
                // It has gone to an unwatched place, which may be a folder that the next scan finds.
                Some(Leaving::Renamed) if !is_hinted => (hold.looked + QUIET).max(hold.since + LONGEST),
                _ => hold.since + LONGEST_HOLD,
            };
            if now >= until {
                certain.insert(path.clone());
            }
        }
        let held = self.all.iter().flat_map(|(path, hold)| [path, &hold.at]);
        batch.paths.extend(held.cloned());
        certain
    }

    /// Holds what the scan for a batch has found gone, and nothing else.
    pub(crate) fn keep(&mut self, doubtful: Vec<UncertainDeletion>, batch: &Batch, now: Instant) {
        let mut before = std::mem::take(&mut self.all);
        for UncertainDeletion { path, met } in doubtful {
            let hold = match (before.remove(&path), met) {
                (_, Some(at)) => Hold { at, since: now, looked: now, leaving: None },
                (Some(hold), None) => Hold { looked: now, ..hold },
                (None, None) => {
                    let at = follow(&path, batch);
                    Hold { leaving: leaving(batch, &at), at, since: now, looked: now }
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

/// What a batch reports of the leaving of a path, or of the nearest folder above it that left.
fn leaving(batch: &Batch, path: &RelativePath) -> Option<Leaving> {
    above(path).find_map(|at| batch.left.get(&at).copied())
}

/// A path and all folders above it.
fn above(path: &RelativePath) -> impl Iterator<Item = RelativePath> {
    std::iter::successors(Some(path.clone()), |at| (!at.is_root()).then(|| at.parent()))
}
