//! What has to be written to put the files of a session back.

use std::collections::{BTreeMap, BTreeSet};

use tgp_contract::{RelativePath, Root};

use super::images::{ImageLine, LoggedBefore, LoggedChange, UnkeptReason};

/// A file that can be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UndoStep {
    pub(super) path: RelativePath,
    /// SHA-256 of what the session left; none when it removed the file.
    pub(super) left: Option<String>,
    pub(super) restore: RestoredState,
    /// Whether another program changed the file between two changes of the session: then this is what it is put back to.
    pub(super) keeps_other_change: bool,
}

/// What a file is put back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RestoredState {
    Absent { missing_parents: usize },
    File { sha256: String, mode: u32 },
}

impl RestoredState {
    pub(super) fn sha256(&self) -> Option<&str> {
        match self {
            Self::Absent { .. } => None,
            Self::File { sha256, .. } => Some(sha256),
        }
    }
}

/// What a log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UndoPlan {
    pub(super) steps: Vec<UndoStep>,
    /// Files that cannot be put back, and why.
    pub(super) unkept: Vec<(RelativePath, String)>,
    /// Whether the session made more changes than were noted.
    pub(super) is_cut: bool,
}

impl UndoPlan {
    /// Reads a log. `current` is the SHA-256 of a file as it is now.
    pub(super) fn of(lines: &[ImageLine], current: &dyn Fn(&RelativePath) -> Option<String>) -> Self {
        let mut plan = Self { is_cut: lines.contains(&ImageLine::Full), ..Self::default() };
        let mut made: BTreeMap<&str, bool> = BTreeMap::new();
        for line in lines {
            if let ImageLine::Ended { batch, made: was_made } = line {
                made.insert(batch, *was_made);
            }
        }
        let mut files: BTreeMap<RelativePath, Vec<&LoggedChange>> = BTreeMap::new();
        let mut outside: BTreeSet<RelativePath> = BTreeSet::new();
        for line in lines {
            match line {
                ImageLine::Change(change) if change.root != Root::Project => {
                    outside.insert(change.path.clone());
                }
                ImageLine::Change(change) => files.entry(change.path.clone()).or_default().push(change),
                ImageLine::Undone { paths } => paths.iter().for_each(|path| drop(files.remove(path))),
                ImageLine::Ended { .. } | ImageLine::Full => {}
            }
        }
        plan.unkept.extend(outside.into_iter().map(|path| (path, UnkeptReason::Outside.words())));
        for (path, changes) in files {
            let now = current(&path);
            let changes = with_effect(&changes, &made, now.as_deref());
            plan.add(path, &changes);
        }
        plan
    }

    fn add(&mut self, path: RelativePath, changes: &[&LoggedChange]) {
        let Some(last) = changes.last() else { return };
        // Back to where the session's own changes follow each other.
        let mut first = changes.len() - 1;
        while let Some((before, this)) =
            first.checked_sub(1).and_then(|at| Some((changes.get(at)?, changes.get(first)?)))
        {
            if hash_before(this) != Some(before.after.as_deref()) {
                break;
            }
            first -= 1;
        }
        let Some(start) = changes.get(first) else { return };
        let restore = match &start.before {
            LoggedBefore::Absent { missing_parents } => {
                RestoredState::Absent { missing_parents: *missing_parents }
            }
            LoggedBefore::File { sha256, mode } => {
                RestoredState::File { sha256: sha256.clone(), mode: *mode }
            }
            LoggedBefore::Unkept { reason, .. } => return self.unkept.push((path, reason.words())),
        };
        self.steps.push(UndoStep { path, left: last.after.clone(), restore, keeps_other_change: first > 0 });
    }
}

/// The SHA-256 of a file before a change, where it is known; none within it where there was no file.
fn hash_before(change: &LoggedChange) -> Option<Option<&str>> {
    match &change.before {
        LoggedBefore::Absent { .. } => Some(None),
        LoggedBefore::File { sha256, .. } => Some(Some(sha256)),
        LoggedBefore::Unkept { sha256, .. } => sha256.as_deref().map(Some),
    }
}

/// Only changes that were made. Of one that a kill has cut off, what follows it tells.
fn with_effect<'a>(
    changes: &[&'a LoggedChange],
    made: &BTreeMap<&str, bool>,
    now: Option<&str>,
) -> Vec<&'a LoggedChange> {
    let mut found = Vec::with_capacity(changes.len());
    for (number, change) in changes.iter().enumerate() {
        let was_made = made.get(change.batch.as_str()).copied().unwrap_or_else(|| {
            let next = match changes.get(number + 1) {
                Some(next) => hash_before(next),
                None => Some(now),
            };
            next != hash_before(change)
        });
        if was_made {
            found.push(*change);
        }
    }
    found
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
