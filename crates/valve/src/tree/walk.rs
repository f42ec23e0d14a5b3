//! What is in the tree, or in a part of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use tgp_contract::RelativePath;
use tgp_fs::MAX_RULE_BYTES;

use super::rules::is_own_name;
use super::{RULE_FILES, Rules, Stamp, Tree};

/// Files of a project. A project with more contains data, which belongs in an ignore file.
const MAX_FILES: usize = 2_000_000;
/// Names that cannot be reported and folders that cannot be read; more of them say nothing new.
const MAX_BLIND: usize = 10_000;

/// What is scanned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Whole,
    /// These paths and all below them.
    Paths(BTreeSet<RelativePath>),
}

/// What cannot be seen, and so is neither there nor gone.
#[derive(Debug)]
pub(crate) enum ScanObstacle {
    /// A directory or file that cannot be read. What is known of it and below it stays as it was.
    Unreadable(RelativePath, io::Error),
    /// A name in this directory that no event can contain.
    Unspeakable(RelativePath, String),
    /// Rules that are not applied.
    Rules(RelativePath, &'static str),
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) files: Vec<(RelativePath, Stamp)>,
    pub(crate) blind: Vec<ScanObstacle>,
    /// The directories whose rules were read.
    pub(crate) ruled: BTreeSet<RelativePath>,
    pub(crate) rules: Rules,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum WalkError {
    Root(io::Error),
    TooMany(usize),
    Stopped,
}

/// One walk.
pub(crate) struct Walk<'t> {
    pub(crate) tree: &'t Tree,
    pub(crate) stop: &'t AtomicBool,
    /// Called for each directory before it is read, so that nothing can happen in it unseen.
    pub(crate) enter: &'t mut dyn FnMut(&RelativePath),
}

impl Walk<'_> {
    pub(crate) fn run(mut self, scope: &Scope) -> Result<Seen, WalkError> {
        // A root that is gone is an outage, and not a reason to report a thousand deleted files.
        if !self.tree.is_in_place().map_err(WalkError::Root)? {
            return Err(WalkError::Root(io::Error::other("another folder was put in its place")));
        }
        let mut seen = Seen { rules: Rules::new(self.tree.layout()), ..Seen::default() };
        seen.rules.add_outside(&self.tree.outside_rules());
        match scope {
            Scope::Whole => self.descend(RelativePath::root(), &mut seen)?,
            Scope::Paths(paths) => {
                let mut last: Option<&RelativePath> = None;
                for path in paths {
                    // Sorted, but `a-b` is between `a` and `a/b`, so the set itself is asked.
                    let is_covered = last.is_some_and(|last| path.is_inside(last))
                        || ancestors(path).any(|directory| paths.contains(&directory));
                    if !is_covered {
                        last = Some(path);
                        self.look_at(path, &mut seen)?;
                    }
                }
            }
        }
        Ok(seen)
    }

    fn look_at(&mut self, path: &RelativePath, seen: &mut Seen) -> Result<(), WalkError> {
        if path.is_root() {
            return self.descend(RelativePath::root(), seen);
        }
        if super::is_always_ignored(path) {
            return Ok(());
        }
        let mut above: Vec<RelativePath> = ancestors(path).collect();
        above.reverse();
        for directory in above {
            if !directory.is_root() {
                match fs::symlink_metadata(self.tree.at(&directory)) {
                    Ok(data) if data.is_dir() => {}
                    Ok(_) => return Ok(()),
                    Err(error) => {
                        note_hidden(seen, directory, error);
                        return Ok(());
                    }
                }
                if seen.rules.ignores(&directory, true) {
                    return Ok(());
                }
            }
            self.rule(&directory, seen);
        }
        match fs::symlink_metadata(self.tree.at(path)) {
            Ok(data) if data.is_dir() => {
                if seen.rules.ignores(path, true) {
                    Ok(())
                } else {
                    self.descend(path.clone(), seen)
                }
            }
            Ok(data) if data.is_file() => {
                let is_ignored = seen.rules.ignores(path, false) || self.tree.is_old_chronicle(path);
                if !is_ignored && !self.tree.is_printed(&Stamp::of(&data)) {
                    add(seen, path.clone(), Stamp::of(&data))?;
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => {
                note_hidden(seen, path.clone(), error);
                Ok(())
            }
        }
    }

    /// Reads the rules of one directory, once.
    fn rule(&mut self, directory: &RelativePath, seen: &mut Seen) {
        if seen.ruled.insert(directory.clone()) {
            for name in RULE_FILES {
                if let Ok(path) = directory.join(name) {
                    self.read_rules(&path, seen);
                }
            }
        }
    }

    fn read_rules(&self, path: &RelativePath, seen: &mut Seen) {
        let file = match self.tree.open_file(path) {
            Ok(file) => file,
            Err(error) => {
                if is_hidden(&error) {
                    blind(seen, ScanObstacle::Rules(path.clone(), "it cannot be read"));
                }
                return;
            }
        };
        if !file.metadata().is_ok_and(|data| data.is_file()) {
            return;
        }
        let mut bytes = Vec::new();
        let read = file.take(MAX_RULE_BYTES + 1).read_to_end(&mut bytes);
        if bytes.len() as u64 > MAX_RULE_BYTES {
            blind(seen, ScanObstacle::Rules(path.clone(), "it is larger than 256 KiB"));
        } else if read.is_err() {
            blind(seen, ScanObstacle::Rules(path.clone(), "it cannot be read"));
        } else {
            seen.rules.add(path.clone(), String::from_utf8_lossy(&bytes).into_owned());
        }
    }

    fn descend(&mut self, top: RelativePath, seen: &mut Seen) -> Result<(), WalkError> {
        let mut waiting = vec![top];
        while let Some(directory) = waiting.pop() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(WalkError::Stopped);
            }
            (self.enter)(&directory);
            let entries = match fs::read_dir(self.tree.at(&directory)) {
                Ok(entries) => entries,
                Err(error) if directory.is_root() => return Err(WalkError::Root(error)),
                Err(error) => {
                    note_hidden(seen, directory, error);
                    continue;
                }
            };
            self.rule(&directory, seen);
            for entry in entries {
                match entry {
                    Ok(entry) => self.entry(&directory, &entry, seen, &mut waiting)?,
                    Err(error) => blind(seen, ScanObstacle::Unreadable(directory.clone(), error)),
                }
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        directory: &RelativePath,
        entry: &fs::DirEntry,
        seen: &mut Seen,
        waiting: &mut Vec<RelativePath>,
    ) -> Result<(), WalkError> {
        let name = entry.file_name();
        let Ok(kind) = entry.file_type() else { return Ok(()) };
        let path = match name.to_str() {
            Some(name) if is_own_name(directory, name, kind.is_dir(), self.tree.layout()) => return Ok(()),
            Some(name) => directory.join(name).ok().filter(|path| path.name() == Some(name)),
            None => None,
        };
        let is_interesting = kind.is_dir() || kind.is_file();
        let Some(path) = path else {
            if is_interesting {
                let shown = name.to_string_lossy().escape_debug().to_string();
                blind(seen, ScanObstacle::Unspeakable(directory.clone(), shown));
            }
            return Ok(());
        };
        if !is_interesting || seen.rules.ignores(&path, kind.is_dir()) {
            return Ok(());
        }
        if kind.is_dir() {
            waiting.push(path);
            return Ok(());
        }
        match entry.metadata() {
            Ok(data) if data.is_file() => {
                let stamp = Stamp::of(&data);
                let is_skipped = self.tree.is_printed(&stamp) || self.tree.is_old_chronicle(&path);
                if is_skipped { Ok(()) } else { add(seen, path, stamp) }
            }
            Ok(_) => Ok(()),
            Err(error) => {
                note_hidden(seen, path, error);
                Ok(())
            }
        }
    }
}

fn ancestors(path: &RelativePath) -> impl Iterator<Item = RelativePath> {
    let mut next = (!path.is_root()).then(|| path.parent());
    std::iter::from_fn(move || {
        let directory = next.take()?;
        if !directory.is_root() {
            next = Some(directory.parent());
        }
        Some(directory)
    })
}

fn add(seen: &mut Seen, path: RelativePath, stamp: Stamp) -> Result<(), WalkError> {
    if seen.files.len() >= MAX_FILES {
        return Err(WalkError::TooMany(MAX_FILES));
    }
    seen.files.push((path, stamp));
    Ok(())
}

fn blind(seen: &mut Seen, what: ScanObstacle) {
    // What is unreadable decides about deletions, so it is never left out.
    if seen.blind.len() < MAX_BLIND || matches!(what, ScanObstacle::Unreadable(..)) {
        seen.blind.push(what);
    }
}

/// Notes what is there and cannot be seen; what is not there any more is not new.
fn note_hidden(seen: &mut Seen, path: RelativePath, error: io::Error) {
    if is_hidden(&error) {
        blind(seen, ScanObstacle::Unreadable(path, error));
    }
}

/// Whether something is there that cannot be seen, rather than nothing.
fn is_hidden(error: &io::Error) -> bool {
    let is_gone = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    !is_gone && error.raw_os_error() != Some(libc::ELOOP)
}
