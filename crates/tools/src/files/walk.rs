//! A walk through the project, in the order of its paths, that leaves out what ignore files name.
//!
//! Ignore files are read like any other file of the project: no link is followed, and a pipe with such a name hangs
//! nobody. Those above the project and git's own list of exclusions are outside of it and do not count.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use tgp_contract::{Entry, EntryKind, FsError, RelativePath};

use super::ProjectFiles;

/// Entries one walk looks at; a project with more is walked in part, and that is said.
const MAX_ENTRIES: usize = 1_000_000;
/// Names below each other that a walk follows, as deep as the disk file system writes.
const MAX_DEPTH: usize = 64;
/// Rules of one ignore file that count.
const MAX_RULES: usize = 10_000;
const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;
/// Both kinds of ignore files. A rule of the first kind beats every rule of the second, wherever they stand.
const IGNORE_FILES: [&str; 2] = [".ignore", ".gitignore"];

/// What happens to entries that ignore files name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    Skipped,
    Shown,
}

/// Whether a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    On,
    Stop,
}

/// How much of what it should see a walk has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Coverage {
    Whole,
    /// Directories were left out that cannot be read.
    Unreadable,
    /// A bound was reached, or somebody ended it. A check that depends on the walk must not take it for a whole one.
    Cut,
}

impl Coverage {
    pub(crate) fn is_whole(self) -> bool {
        self == Self::Whole
    }
}

/// How to walk.
pub(crate) struct Walk<'a> {
    pub(crate) files: &'a ProjectFiles,
    pub(crate) ignored: Ignored,
    /// Levels below the start; 1 for its own entries.
    pub(crate) depth: usize,
    /// Asked before every directory.
    pub(crate) is_due: &'a dyn Fn() -> bool,
}

/// The rules that stand on the way from the project to a directory, by kind and from the top down. A rule sees paths
/// relative to the directory of its file.
#[derive(Default)]
struct Rules {
    stacks: [Vec<(RelativePath, Gitignore)>; IGNORE_FILES.len()],
}

impl Walk<'_> {
    /// Visits everything below `start`: files in the order of their paths, a directory before what it holds. Answers
    /// how much of it the walk saw.
    pub(crate) fn each(
        &self,
        start: &RelativePath,
        visit: &mut dyn FnMut(&Entry) -> Flow,
    ) -> Result<Coverage, FsError> {
        let mut rules = Rules::default();
        if self.ignored == Ignored::Skipped {
            let depth = start.parts().count();
            for level in (1..=depth).rev() {
                rules.enter(self.files, &(0..level).fold(start.clone(), |path, _| path.parent()));
            }
        }
        let mut state = State { seen: 0, coverage: Coverage::Whole };
        self.descend(start, 1, &mut rules, &mut state, visit)?;
        Ok(state.coverage)
    }

    fn descend(
        &self,
        directory: &RelativePath,
        level: usize,
        rules: &mut Rules,
        state: &mut State,
        visit: &mut dyn FnMut(&Entry) -> Flow,
    ) -> Result<Flow, FsError> {
        if (self.is_due)() {
            state.coverage = Coverage::Cut;
            return Ok(Flow::Stop);
        }
        let mut entries = match self.files.children(directory) {
            // Below the start, what vanished or cannot be opened is no reason to see nothing at all.
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
        // With a slash behind directories, siblings sort as the paths below them do.
        entries.sort_by(|one, other| sort_key(one).cmp(sort_key(other)));
        let entered = self.ignored == Ignored::Skipped;
        if entered && entries.iter().any(|entry| is_ignore_file(&entry.path)) {
            rules.enter(self.files, directory);
        }
        let flow = self.through(entries, level, rules, state, visit);
        if entered {
            rules.leave(directory);
        }
        flow
    }

    fn through(
        &self,
        entries: Vec<Entry>,
        level: usize,
        rules: &mut Rules,
        state: &mut State,
        visit: &mut dyn FnMut(&Entry) -> Flow,
    ) -> Result<Flow, FsError> {
        for entry in entries {
            let is_directory = entry.kind == EntryKind::Directory;
            if rules.ignore(&entry.path, is_directory) {
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

fn is_ignore_file(path: &RelativePath) -> bool {
    path.name().is_some_and(|name| IGNORE_FILES.contains(&name))
}

struct State {
    seen: usize,
    coverage: Coverage,
}

fn sort_key(entry: &Entry) -> impl Iterator<Item = u8> + '_ {
    let slash = if entry.kind == EntryKind::Directory { "/" } else { "" };
    entry.path.as_str().bytes().chain(slash.bytes())
}

impl Rules {
    fn enter(&mut self, files: &ProjectFiles, directory: &RelativePath) {
        for (name, stack) in IGNORE_FILES.iter().zip(&mut self.stacks) {
            if let Some(rules) = directory.join(name).ok().and_then(|path| read_rules(files, &path)) {
                stack.push((directory.clone(), rules));
            }
        }
    }

    fn leave(&mut self, directory: &RelativePath) {
        for stack in &mut self.stacks {
            stack.pop_if(|(place, _)| place == directory);
        }
    }

    /// The nearest rule of the stronger kind decides.
    fn ignore(&self, path: &RelativePath, is_directory: bool) -> bool {
        for (directory, rules) in self.stacks.iter().flat_map(|stack| stack.iter().rev()) {
            let skip = if directory.is_root() { 0 } else { directory.as_str().len() + 1 };
            let below = path.as_str().get(skip..).unwrap_or_default();
            match rules.matched(below, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// The rules of one file. A file that is too large, no text or no file has none; a rule that is wrong is none.
fn read_rules(files: &ProjectFiles, path: &RelativePath) -> Option<Gitignore> {
    let entry = files.entry(path).ok().flatten()?;
    if entry.kind != EntryKind::File || entry.size > MAX_IGNORE_FILE_BYTES {
        return None;
    }
    let bytes = files.read(path).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let mut builder = GitignoreBuilder::new(".");
    for line in text.trim_start_matches('\u{feff}').lines().take(MAX_RULES) {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
