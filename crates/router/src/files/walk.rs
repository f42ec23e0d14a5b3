//! A walk through the project, in the order of its paths, that leaves out what ignore files name.
//!
//! What is ignored is for `tgp-fs` to say. The project's ignore files are read like any other file of it: no link is
//! followed, and a pipe with such a name does not block the walk.

use tgp_contract::{Entry, EntryKind, FsError, RelativePath};
use tgp_fs::{DirectoryEntries, IgnoreRules, MAX_RULE_BYTES, RULE_FILES};

use super::ProjectFiles;

/// Entries one walk visits; a project with more is walked in part, and that is said.
const MAX_ENTRIES: usize = 1_000_000;
/// Names below each other that a walk follows, as deep as the disk file system writes.
const MAX_DEPTH: usize = 64;

/// What happens to entries that ignore files name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnorePolicy {
    Skipped,
    Shown,
}

/// Whether a walk continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    On,
    Stop,
}

/// How much of what it should see a walk has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    Whole,
    /// Directories were left out that cannot be read.
    Unreadable,
    /// A bound was reached, or the callback ended it. A check that depends on the walk must not take it for a whole
    /// one.
    Cut,
}

/// What a walk has left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkSummary {
    pub coverage: Coverage,
    /// Names that no path can hold, most of them because they are not UTF-8.
    pub unnamed: u64,
}

impl WalkSummary {
    /// Whether the walk has shown everything that is not ignored.
    pub fn is_whole(self) -> bool {
        self.coverage == Coverage::Whole && self.unnamed == 0
    }
}

/// How to walk.
pub struct Walk<'a> {
    pub files: &'a ProjectFiles,
    pub ignored: IgnorePolicy,
    /// Levels below the start; 1 for its own entries.
    pub depth: usize,
    /// Asked before every directory.
    pub is_due: &'a dyn Fn() -> bool,
}

impl Walk<'_> {
    /// Visits everything below `start`: files in the order of their paths, a directory before what it holds. Returns
    /// how much of it the walk saw.
    pub fn each(
        &self,
        start: &RelativePath,
        visit: &mut dyn FnMut(&Entry) -> Flow,
    ) -> Result<WalkSummary, FsError> {
        let mut rules = IgnoreRules::default();
        if self.ignored == IgnorePolicy::Skipped {
            rules = rules.with_outside(&self.files.outside_rules());
            let depth = start.parts().count();
            for level in (1..=depth).rev() {
                enter(&mut rules, self.files, &(0..level).fold(start.clone(), |path, _| path.parent()));
            }
        }
        let mut state = State { seen: 0, coverage: Coverage::Whole, unnamed: 0 };
        self.descend(start, 1, &mut rules, &mut state, visit)?;
        Ok(WalkSummary { coverage: state.coverage, unnamed: state.unnamed })
    }

    fn descend(
        &self,
        directory: &RelativePath,
        level: usize,
        rules: &mut IgnoreRules,
        state: &mut State,
        visit: &mut dyn FnMut(&Entry) -> Flow,
    ) -> Result<Flow, FsError> {
        if (self.is_due)() {
            state.coverage = Coverage::Cut;
            return Ok(Flow::Stop);
        }
        let DirectoryEntries { mut entries, unnamed } = match self.files.children(directory) {
            // Below the start, what vanished or cannot be opened is not a reason to see nothing at all.
            Err(FsError::NotFound(_) | FsError::NotDirectory(_) | FsError::Security { .. }) if level > 1 => {
                return Ok(Flow::On);
            }
            Err(FsError::Io { source, .. }) if level > 1 => {
                let denied = source.kind() == std::io::ErrorKind::PermissionDenied;
                let coverage = if denied { Coverage::Unreadable } else { Coverage::Cut };
                state.coverage = state.coverage.max(coverage);
                return Ok(Flow::On);
            }
            other => other?,
        };
        state.unnamed += unnamed;
        // With a slash behind directories, siblings sort as the paths below them do.
        entries.sort_by(|one, other| sort_key(one).cmp(sort_key(other)));
        let entered = self.ignored == IgnorePolicy::Skipped;
        let has_rules = entered && entries.iter().any(|entry| is_rule_file(&entry.path));
        if has_rules {
            enter(rules, self.files, directory);
        }
        let flow = self.through(entries, level, rules, state, visit);
        if has_rules {
            rule_files(directory).for_each(|file| rules.unset(&file));
        }
        flow
    }

    fn through(
        &self,
        entries: Vec<Entry>,
        level: usize,
        rules: &mut IgnoreRules,
        state: &mut State,
        visit: &mut dyn FnMut(&Entry) -> Flow,
    ) -> Result<Flow, FsError> {
        for entry in entries {
            let is_directory = entry.kind == EntryKind::Directory;
            if self.ignored == IgnorePolicy::Skipped && rules.ignores(&entry.path, is_directory) {
                continue;
            }
            state.seen += 1;
            if state.seen > MAX_ENTRIES {
                state.coverage = Coverage::Cut;
                return Ok(Flow::Stop);
            }
            if visit(&entry) == Flow::Stop {
                state.coverage = Coverage::Cut;
                return Ok(Flow::Stop);
            }
            if !is_directory || level >= self.depth {
                continue;
            }
            if level >= MAX_DEPTH {
                state.coverage = Coverage::Cut;
                continue;
            }
            if self.descend(&entry.path, level + 1, rules, state, visit)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::On)
    }
}

fn is_rule_file(path: &RelativePath) -> bool {
    path.name().is_some_and(|name| RULE_FILES.contains(&name))
}

fn rule_files(directory: &RelativePath) -> impl Iterator<Item = RelativePath> {
    RULE_FILES.iter().filter_map(|name| directory.join(name).ok())
}

struct State {
    seen: usize,
    coverage: Coverage,
    unnamed: u64,
}

fn sort_key(entry: &Entry) -> impl Iterator<Item = u8> + '_ {
    let slash = if entry.kind == EntryKind::Directory { "/" } else { "" };
    entry.path.as_str().bytes().chain(slash.bytes())
}

/// Reads the rules of one directory. A file that is too large or no plain file has none.
fn enter(rules: &mut IgnoreRules, files: &ProjectFiles, directory: &RelativePath) {
    for file in rule_files(directory) {
        let Ok(Some(entry)) = files.entry(&file) else { continue };
        if entry.kind == EntryKind::File
            && entry.size <= MAX_RULE_BYTES
            && let Ok(bytes) = files.read(&file)
        {
            rules.set(&file, &bytes);
        }
    }
}
