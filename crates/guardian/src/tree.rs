//! The files that a plan is about, as each step leaves them for the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tgp_contract::{
    Change, Code, EntryKind, FileSystem, FsError, RelativePath, Root, ToolError, Visibility, background,
    canonical,
};

use crate::planned_actions::{PlannedAction, Replacement};

/// Larger files are not source; a plan can replace or delete them, not edit them.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Bytes of all files that a plan touches and brings along.
pub(super) const MAX_PLAN_BYTES: usize = 64 << 20;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Text(Vec<u8>),
    /// It is there, and this is why it was not read.
    Unread(String),
    /// No file can be there, and this is why.
    Blocked(String),
}

/// What a step would do that cannot be done.
pub(super) struct Obstacle {
    pub(super) path: RelativePath,
    pub(super) fact: String,
    pub(super) reason: String,
}

/// Files by path: what they were at first, and what they are after the steps so far.
pub(super) struct Tree {
    first: BTreeMap<RelativePath, State>,
    now: BTreeMap<RelativePath, State>,
    /// The step that removed a file, counted from 1.
    removed: BTreeMap<RelativePath, usize>,
}

impl Tree {
    /// Reads the files that a plan is about. `known` are those of the graph. What may not be seen is not read: it is
    /// as if it did not exist.
    pub(super) async fn read(
        files: Arc<dyn FileSystem>,
        paths: BTreeSet<RelativePath>,
        known: BTreeSet<String>,
        visible: Visibility,
    ) -> Result<Self, ToolError> {
        let shows = move |path: &RelativePath| visible.shows(Root::Project, path);
        let read = move || -> Result<BTreeMap<RelativePath, State>, ToolError> {
            let mut room = MAX_PLAN_BYTES;
            let mut first = BTreeMap::new();
            for path in paths {
                // A file where a directory should be is known, too: a step may remove it first.
                for ancestor in ancestors(&path) {
                    if shows(&ancestor)
                        && let Ok(Some(entry)) = files.entry(&ancestor)
                        && entry.kind != EntryKind::Directory
                    {
                        let why = "it is not part of the plan".to_owned();
                        first.entry(ancestor).or_insert(State::Unread(why));
                    }
                }
                let state = match shows(&path) {
                    true => look(files.as_ref(), &path, &known, &mut room)?,
                    false => State::Absent,
                };
                first.insert(path, state);
            }
            Ok(first)
        };
        let first = background::run(read).await?;
        Ok(Self { now: first.clone(), first, removed: BTreeMap::new() })
    }

    fn state(&self, path: &RelativePath) -> &State {
        self.now.get(path).unwrap_or(&State::Absent)
    }

    /// SHA-256 of what is at a path after the steps so far, where it was read.
    pub(super) fn hash(&self, path: &RelativePath) -> Option<String> {
        match self.state(path) {
            State::Text(content) => Some(canonical::sha256_hex(content)),
            State::Absent | State::Unread(_) | State::Blocked(_) => None,
        }
    }

    /// Takes one step, or says why it cannot be taken.
    pub(super) fn take(&mut self, step: usize, act: &PlannedAction) -> Result<(), Obstacle> {
        match act {
            PlannedAction::Create { path, content } => {
                self.free(path)?;
                self.set(path, State::Text(content.clone().into_bytes()));
            }
            PlannedAction::Write { path, content } => {
                self.not_blocked(path)?;
                self.set(path, State::Text(content.clone().into_bytes()));
            }
            PlannedAction::Edit { path, edits } => {
                let text = self.edited(path, edits)?;
                self.set(path, State::Text(text));
            }
            PlannedAction::Delete { path, .. } => {
                self.there(path, "deleted")?;
                self.remove(step, path);
            }
            PlannedAction::Rename { path, to } => {
                self.there(path, "renamed")?;
                self.free(to)?;
                let content = self.state(path).clone();
                if let State::Unread(why) = content {
                    let fact = format!("`{path}` cannot be read: {why}");
                    let reason = "what cannot be read cannot be renamed".to_owned();
                    return Err(Obstacle { path: path.clone(), fact, reason });
                }
                self.remove(step, path);
                self.set(to, content);
            }
            PlannedAction::Call { .. } => {}
        }
        Ok(())
    }

    fn set(&mut self, path: &RelativePath, state: State) {
        self.removed.remove(path);
        self.now.insert(path.clone(), state);
    }

    fn remove(&mut self, step: usize, path: &RelativePath) {
        self.removed.insert(path.clone(), step);
        self.now.insert(path.clone(), State::Absent);
    }

    fn free(&self, path: &RelativePath) -> Result<(), Obstacle> {
        self.not_blocked(path)?;
        if *self.state(path) == State::Absent {
            return Ok(());
        }
        let is_own = self.first.get(path) == Some(&State::Absent);
        let fact = if is_own {
            format!("an earlier step makes `{path}` already")
        } else {
            format!("`{path}` exists already")
        };
        Err(Obstacle { path: path.clone(), fact, reason: "it cannot be created again".to_owned() })
    }

    fn not_blocked(&self, path: &RelativePath) -> Result<(), Obstacle> {
        let is_file = |path: &RelativePath| matches!(self.state(path), State::Text(_) | State::Unread(_));
        let why = match (self.state(path), ancestors(path).into_iter().find(is_file)) {
            (_, Some(ancestor)) => format!("`{ancestor}` is a file, not a directory"),
            (State::Blocked(why), None) => why.clone(),
            (State::Absent | State::Text(_) | State::Unread(_), None) => return Ok(()),
        };
        let fact = format!("`{path}`: {why}");
        Err(Obstacle { path: path.clone(), reason: "no file can be there".to_owned(), fact })
    }

    fn there(&self, path: &RelativePath, what: &str) -> Result<(), Obstacle> {
        self.not_blocked(path)?;
        if *self.state(path) != State::Absent {
            return Ok(());
        }
        let fact = match self.removed.get(path) {
            Some(step) => format!("step {step} removes `{path}`"),
            None => {
                format!("`{path}` is neither in the graph nor in the work tree, and no earlier step makes it")
            }
        };
        Err(Obstacle { path: path.clone(), reason: format!("it cannot be {what}"), fact })
    }

    fn edited(&self, path: &RelativePath, edits: &[Replacement]) -> Result<Vec<u8>, Obstacle> {
        self.there(path, "edited")?;
        let obstacle = |fact: String| Obstacle {
            path: path.clone(),
            reason: format!("`{path}` cannot be edited so"),
            fact,
        };
        let mut text = match self.state(path) {
            State::Text(content) => std::str::from_utf8(content)
                .map_err(|_| obstacle("it is not UTF-8 text".to_owned()))?
                .to_owned(),
            State::Unread(why) => return Err(obstacle(why.clone())),
            State::Absent | State::Blocked(_) => String::new(),
        };
        for (index, edit) in edits.iter().enumerate() {
            let places = text.matches(edit.search.as_str()).count();
            let number = index + 1;
            if places == 0 {
                return Err(obstacle(format!("the text that edit {number} replaces does not occur")));
            }
            // `matches` does not count places that overlap, and `fs_edit` would refuse them.
            let last = text.rfind(edit.search.as_str());
            if !edit.all && (places > 1 || last != text.find(edit.search.as_str())) {
                return Err(obstacle(format!("the text that edit {number} replaces occurs more than once")));
            }
            let grown = places.saturating_mul(edit.replace.len()).saturating_add(text.len());
            if grown > MAX_PLAN_BYTES {
                return Err(obstacle(format!("edit {number} makes it too large")));
            }
            text = text.replace(edit.search.as_str(), &edit.replace);
        }
        Ok(text.into_bytes())
    }

    /// What the steps so far change in sum.
    pub(super) fn changes(&self) -> Vec<Change> {
        let changed = self.now.iter().filter(|(path, state)| self.first.get(*path) != Some(*state));
        changed
            .filter_map(|(path, state)| match state {
                State::Text(content) => {
                    Some(Change::Write { path: path.clone(), content: content.as_slice().into() })
                }
                State::Absent => Some(Change::Remove { path: path.clone() }),
                State::Unread(_) | State::Blocked(_) => None,
            })
            .collect()
    }
}

/// What is at a path of the work tree.
fn look(
    files: &dyn FileSystem,
    path: &RelativePath,
    known: &BTreeSet<String>,
    room: &mut usize,
) -> Result<State, ToolError> {
    let entry = match files.entry(path) {
        Ok(Some(entry)) => entry,
        Ok(None) if known.contains(path.as_str()) => {
            return Ok(State::Unread("the work tree does not have it".to_owned()));
        }
        // Below a file there is nothing; what is in the way is found when the step is taken.
        Ok(None) | Err(FsError::NotDirectory(_)) => return Ok(State::Absent),
        Err(error) => return Ok(State::Blocked(error.to_string())),
    };
    Ok(match entry.kind {
        EntryKind::Directory => State::Blocked("it is a directory".to_owned()),
        EntryKind::Other => State::Unread("it is a link or a special file".to_owned()),
        EntryKind::File if entry.size > MAX_FILE_BYTES => {
            State::Unread(format!("it has {} bytes, more than {MAX_FILE_BYTES}", entry.size))
        }
        EntryKind::File => {
            let content = files.read(path)?;
            *room = room.checked_sub(content.len()).ok_or_else(too_large)?;
            State::Text(content)
        }
    })
}

/// The directories that contain a path, but for the root.
fn ancestors(path: &RelativePath) -> Vec<RelativePath> {
    std::iter::successors(Some(path.parent()), |path| Some(path.parent()))
        .take_while(|path| !path.is_root())
        .collect()
}

fn too_large() -> ToolError {
    ToolError::new(Code::Budget, format!("the plan touches more than {MAX_PLAN_BYTES} bytes"))
        .help("make several plans of it")
}
