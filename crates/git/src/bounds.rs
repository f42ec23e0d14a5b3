//! How large a version of the tool repository may be, checked before anything of it is read.
//!
//! A tree of a few kilobytes can name a hundred million paths, and a packed blob of a megabyte can be gigabytes of
//! zeros. So trees are walked with a budget, and the header of an object is read before its content.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid, Repository};
use tgp_contract::{Code, ToolError};
use tgp_fs::{KERNEL_DIRECTORY, is_default_database};
use tgp_text::{rule_file, truncate};

use crate::entry::{Change, Entry};
use crate::failure::Doing;
use crate::worktree::{MAX_DEPTH, MAX_FILE_BYTES};

/// Files and folders of one version, far more than a library of tools has.
pub(crate) const MAX_ENTRIES: usize = 200_000;
/// All files of one version together; one content under many names counts each time, because it is written each time.
pub(crate) const MAX_TOTAL_BYTES: u64 = 512 << 20;
/// The names of one folder.
const MAX_TREE_BYTES: usize = 16 << 20;
/// A commit is a page of text.
const MAX_COMMIT_BYTES: usize = 1 << 20;
/// The newest commits whose size is checked before the history is walked. What is older was bounded when it was
/// fetched: a `git` that needs too much memory is ended.
const MAX_SIZED_COMMITS: usize = 10_000;
/// A path in a message.
const MAX_SHOWN_CHARS: usize = 80;
const READING: &str = "cannot read a tree";

/// Why a version is not taken over: which limit it exceeds, and where, or what it brings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooLarge {
    #[error("it has more than {MAX_ENTRIES} files and folders (counted up to `{0}`)")]
    Entries(String),
    #[error("`{0}` is more than {MAX_DEPTH} folders deep")]
    Depth(String),
    #[error("`{path}` has {bytes} bytes, more than the {MAX_FILE_BYTES} of one file")]
    File { path: String, bytes: u64 },
    #[error("its files have more than {MAX_TOTAL_BYTES} bytes together (counted up to `{0}`)")]
    Total(String),
    #[error("the list of names in `{path}` has {bytes} bytes, more than {MAX_TREE_BYTES}")]
    Folder { path: String, bytes: usize },
    #[error("`{0}` looks like rules in a place or with a name that nothing reads")]
    UnreadRules(String),
    #[error("commit {id} has {bytes} bytes, more than {MAX_COMMIT_BYTES}")]
    Commit { id: Oid, bytes: usize },
}

impl From<TooLarge> for ToolError {
    fn from(exceeded: TooLarge) -> Self {
        let message = format!("a version of the tool repository is too large to be read: {exceeded}");
        Self::new(Code::Git, message)
            .help("go back to an older version with git in the tool repository, or remove what is too large")
    }
}

/// Why a walk ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    Limit(TooLarge),
    Failed(ToolError),
}

impl From<TooLarge> for Stop {
    fn from(exceeded: TooLarge) -> Self {
        Self::Limit(exceeded)
    }
}

impl From<ToolError> for Stop {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

impl From<Stop> for ToolError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Limit(exceeded) => exceeded.into(),
            Stop::Failed(error) => error,
        }
    }
}

/// Entries that a walk may still meet.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { left: MAX_ENTRIES }
    }

    pub(crate) fn take(&mut self, count: usize, path: &[u8]) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(count).ok_or_else(|| TooLarge::Entries(shown(path)))?;
        Ok(())
    }
}

/// A path for a message: short, and without what acts on a terminal.
fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let clean = |letter: char| if letter.is_control() { '?' } else { letter };
    let short: String = truncate(&text, MAX_SHOWN_CHARS).chars().map(clean).collect();
    if short.is_empty() { ".".to_owned() } else { short }
}

fn below(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = folder.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

fn to_path(path: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(path))
}

/// The entries of one folder by name. Its size is known before it is read.
fn entries(
    repo: &Repository,
    tree: Oid,
    path: &[u8],
    budget: &mut Budget,
) -> Result<BTreeMap<Vec<u8>, (Entry, bool)>, Stop> {
    let odb = repo.odb().doing(READING)?;
    let (bytes, _) = odb.read_header(tree).doing(READING)?;
    if bytes > MAX_TREE_BYTES {
        return Err(TooLarge::Folder { path: shown(path), bytes }.into());
    }
    let tree = repo.find_tree(tree).doing(READING)?;
    budget.take(tree.len(), path)?;
    let entries = tree.iter().map(|entry| {
        let is_folder = entry.kind() == Some(ObjectType::Tree);
        (entry.name_bytes().to_vec(), (Entry { id: entry.id(), mode: entry.filemode() }, is_folder))
    });
    Ok(entries.collect())
}

fn check_depth(path: &[u8]) -> Result<(), TooLarge> {
    if path.iter().filter(|byte| **byte == b'/').count() >= MAX_DEPTH {
        return Err(TooLarge::Depth(shown(path)));
    }
    Ok(())
}

/// Every file of a tree, whatever its name.
pub(crate) fn files(repo: &Repository, tree: Oid) -> Result<Vec<(PathBuf, Entry)>, Stop> {
    let mut files = Vec::new();
    let mut budget = Budget::new();
    let mut open = vec![(Vec::new(), tree)];
    while let Some((folder, tree)) = open.pop() {
        for (name, (entry, is_folder)) in entries(repo, tree, &folder, &mut budget)? {
            let path = below(&folder, &name);
            if is_folder {
                check_depth(&path)?;
                open.push((path, entry.id));
            } else {
                files.push((to_path(path), entry));
            }
        }
    }
    files.sort_by(|(one, _), (other, _)| one.as_os_str().as_bytes().cmp(other.as_os_str().as_bytes()));
    Ok(files)
}

/// Adds to `found` what differs between two trees. Where it stops, `found` has what was met until then.
pub(crate) fn compare(
    repo: &Repository,
    old: Option<Oid>,
    new: Option<Oid>,
    found: &mut Vec<Change>,
) -> Result<(), Stop> {
    let mut budget = Budget::new();
    let mut open = vec![(Vec::new(), old, new)];
    while let Some((folder, old, new)) = open.pop() {
        if old == new {
            continue;
        }
        let mut side = |tree: Option<Oid>| {
            tree.map_or_else(|| Ok(BTreeMap::new()), |tree| entries(repo, tree, &folder, &mut budget))
        };
        let (mut before, after) = (side(old)?, side(new)?);
        let mut pairs: Vec<_> = after
            .into_iter()
            .map(|(name, new)| {
                let old = before.remove(&name);
                (name, old, Some(new))
            })
            .collect();
        pairs.extend(before.into_iter().map(|(name, old)| (name, Some(old), None)));
        for (name, old, new) in pairs {
            if old == new {
                continue;
            }
            let path = below(&folder, &name);
            let folder_of = |side: Option<(Entry, bool)>| side.filter(|(_, is_folder)| *is_folder);
            let file_of = |side: Option<(Entry, bool)>| {
                side.filter(|(_, is_folder)| !is_folder).map(|(entry, _)| entry)
            };
            let (from, to) = (folder_of(old), folder_of(new));
            if from.is_some() || to.is_some() {
                check_depth(&path)?;
                open.push((path.clone(), from.map(|(entry, _)| entry.id), to.map(|(entry, _)| entry.id)));
            }
            let (old, new) = (file_of(old), file_of(new));
            if old != new {
                found.push(Change { path: to_path(path), old, new });
            }
        }
    }
    Ok(())
}

/// The file at `path` in a tree of the history, which may be of any size: one in a folder that is too large to be read
/// counts as absent.
pub(crate) fn entry_at(repo: &Repository, tree: Oid, path: &Path) -> Result<Option<Entry>, ToolError> {
    let mut tree = tree;
    let mut parts = path.iter().peekable();
    let mut folder = Vec::new();
    while let Some(name) = parts.next() {
        let found = match entries(repo, tree, &folder, &mut Budget::new()) {
            Ok(mut found) => found.remove(name.as_bytes()),
            Err(Stop::Limit(_)) => None,
            Err(Stop::Failed(error)) => return Err(error),
        };
        match found {
            Some((entry, _)) if parts.peek().is_none() => return Ok(Some(entry)),
            Some((entry, true)) => tree = entry.id,
            _ => return Ok(None),
        }
        folder = below(&folder, name.as_bytes());
    }
    Ok(None)
}

/// The content of a file, when it is one that a working tree may hold.
pub(crate) fn blob<'r>(repo: &'r Repository, id: Oid, path: &Path) -> Result<git2::Blob<'r>, ToolError> {
    const READING: &str = "cannot read an object";
    let (bytes, _) = repo.odb().and_then(|odb| odb.read_header(id)).doing(READING)?;
    if bytes as u64 > MAX_FILE_BYTES {
        let path = shown(path.as_os_str().as_bytes());
        return Err(TooLarge::File { path, bytes: bytes as u64 }.into());
    }
    repo.find_blob(id).doing(READING)
}

/// Checks a version before it is taken over: its newest commits, its entries, and the size of each file.
pub(crate) fn check_version(repo: &Repository, tip: Oid, known: &[Oid]) -> Result<(), Stop> {
    check_commits(repo, tip, known)?;
    let tree = repo.find_commit(tip).doing("cannot read a commit")?.tree_id();
    let odb = repo.odb().doing(READING)?;
    let mut sizes: BTreeMap<Oid, u64> = BTreeMap::new();
    let mut total = 0_u64;
    for (path, entry) in files(repo, tree)? {
        let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
        let parts: Vec<&str> =
            std::iter::once(KERNEL_DIRECTORY).chain(names.iter().map(AsRef::as_ref)).collect();
        let path = path.as_os_str().as_bytes();
        if rule_file(&parts).is_some_and(|file| !file.is_read) {
            return Err(TooLarge::UnreadRules(shown(path)).into());
        }
        if !entry.is_plain() {
            continue;
        }
        let bytes = match sizes.get(&entry.id) {
            Some(bytes) => *bytes,
            None => odb.read_header(entry.id).doing("cannot read an object")?.0 as u64,
        };
        sizes.insert(entry.id, bytes);
        if bytes > MAX_FILE_BYTES {
            return Err(TooLarge::File { path: shown(path), bytes }.into());
        }
        total = total.saturating_add(bytes);
        if total > MAX_TOTAL_BYTES {
            return Err(TooLarge::Total(shown(path)).into());
        }
    }
    Ok(())
}

/// The name in the root of a version, whose size was checked, that is one of the default database. Its files belong to one
/// machine: the kernel would open what a remote brings.
pub(crate) fn default_database(repo: &Repository, tip: Oid) -> Result<Option<String>, ToolError> {
    let tree = repo.find_commit(tip).and_then(|commit| commit.tree()).doing(READING)?;
    let name = tree
        .iter()
        .map(|entry| entry.name_bytes().to_vec())
        .find(|name| std::str::from_utf8(name).is_ok_and(is_default_database));
    Ok(name.map(|name| shown(&name)))
}

/// Checks the sizes of the newest commits, from `tip` back to what is `known`.
fn check_commits(repo: &Repository, tip: Oid, known: &[Oid]) -> Result<(), Stop> {
    const READING: &str = "cannot read a commit";
    let odb = repo.odb().doing(READING)?;
    let mut seen: HashSet<Oid> = known.iter().copied().collect();
    let mut open = VecDeque::from([tip]);
    let mut looked_at = 0_usize;
    while let Some(id) = open.pop_front() {
        if !seen.insert(id) {
            continue;
        }
        looked_at += 1;
        if looked_at > MAX_SIZED_COMMITS {
            break;
        }
        let bytes = match odb.read_header(id) {
            // Behind the oldest commit of a shallow clone there is nothing.
            Err(error) if error.code() == git2::ErrorCode::NotFound && id != tip => continue,
            header => header.doing(READING)?.0,
        };
        if bytes > MAX_COMMIT_BYTES {
            return Err(TooLarge::Commit { id, bytes }.into());
        }
        open.extend(repo.find_commit(id).doing(READING)?.parent_ids());
    }
    Ok(())
}
