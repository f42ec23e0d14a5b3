//! What was written outlives a power failure before it is reported.
//!
//! git2 can sync each object by itself, one after the other, and each costs a turn of the disk's journal. Here all of
//! them are written first and then synced side by side, which the disk answers in one turn. The order is the same:
//! objects before the reference that leads to them, the reference before the answer.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid, Repository, Tree};
use nix::fcntl::OFlag;
use tgp_contract::{Code, ToolError};

use crate::bounds::{Budget, Stop};
use crate::failure::{At, Doing};

/// Beyond this number one sync of the whole disk is cheaper.
const MAX_SINGLE: usize = 64;
/// Commits that are searched for new objects one by one; a longer chain is synced with the whole disk.
const MAX_COMMITS: usize = 64;
/// Enough to have them all in one turn of the disk, and few enough not to be a crowd.
const THREADS: usize = 8;
const READING: &str = "cannot read an object";

/// Syncs the objects that `tips` lead to and `known` does not, together with `files`.
pub(crate) fn secure(
    repo: &Repository,
    tips: &[Oid],
    known: &[Oid],
    files: Vec<PathBuf>,
) -> Result<(), ToolError> {
    let mut paths: BTreeSet<PathBuf> = files.into_iter().collect();
    let objects = repo.path().join("objects");
    let mut written = Ok(());
    let is_small = new_objects(repo, tips, known, &mut |id| {
        let text = id.to_string();
        let (Some(folder), Some(name)) = (text.get(..2), text.get(2..)) else { return };
        let path = objects.join(folder).join(name);
        // One that is in a pack was synced by the git that fetched it.
        if path.exists() {
            paths.insert(objects.join(folder));
            paths.insert(path);
        } else if written.is_ok() {
            written = check_written(repo, id);
        }
    })?;
    written?;
    if is_small && paths.len() <= MAX_SINGLE {
        paths.insert(objects);
        return sync_each(&paths.into_iter().collect::<Vec<PathBuf>>());
    }
    let disk = File::open(repo.path()).at("cannot open", repo.path())?;
    tgp_fs::sync_file_system(&disk).at("cannot sync", repo.path())
}

/// Sees that an object is there. libgit2 reports success for one that it could not write, such as on a full disk.
pub(crate) fn check_written(repo: &Repository, id: Oid) -> Result<(), ToolError> {
    if repo.odb().doing(READING)?.exists(id) {
        return Ok(());
    }
    let message = format!("the object {id} of the tool repository could not be written");
    Err(ToolError::new(Code::Git, message).help("the disk may be full: free some space and try again"))
}

/// Syncs files and folders side by side. One that is gone by now is skipped.
pub(crate) fn sync_each(paths: &[PathBuf]) -> Result<(), ToolError> {
    sync_beside(paths, &mut || Ok(()))
}

/// The same, while this thread waits for the disk in its own way.
pub(crate) fn sync_beside(
    paths: &[PathBuf],
    other: &mut dyn FnMut() -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    // What is there may have been replaced by a link or a pipe; neither is followed or waited for.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let open = |path: &Path| OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    let sync = |path: &Path| match open(path) {
        Ok(file) => file.sync_all().at("cannot sync", path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) if path.is_symlink() => Ok(()),
        Err(error) => Err(error).at("cannot sync", path),
    };
    let share = paths.len().div_ceil(THREADS).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = paths
            .chunks(share)
            .map(|chunk| scope.spawn(move || chunk.iter().try_for_each(|path| sync(path))))
            .collect();
        let other = other();
        let synced = threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(crate::failure::Failure::Thread.into()))
        });
        synced.and(other)
    })
}

/// Returns false when there are too many to read.
fn new_objects(
    repo: &Repository,
    tips: &[Oid],
    known: &[Oid],
    found: &mut dyn FnMut(Oid),
) -> Result<bool, ToolError> {
    let mut walk = repo.revwalk().doing(READING)?;
    for tip in tips {
        walk.push(*tip).doing(READING)?;
    }
    for known in known.iter().filter(|known| repo.find_commit(**known).is_ok()) {
        walk.hide(*known).doing(READING)?;
    }
    let mut budget = Budget::new();
    for (count, id) in walk.enumerate() {
        if count >= MAX_COMMITS {
            return Ok(false);
        }
        let commit = repo.find_commit(id.doing(READING)?).doing(READING)?;
        found(commit.id());
        let base = match commit.parent_count() {
            0 => None,
            _ => Some(commit.parent(0).and_then(|parent| parent.tree()).doing(READING)?),
        };
        let tree = commit.tree().doing(READING)?;
        match new_in_tree(repo, base.as_ref(), &tree, &mut budget, found) {
            Ok(()) => {}
            Err(Stop::Limit(_)) => return Ok(false),
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    Ok(true)
}

/// Objects of `tree` that are not at the same place in `base`.
fn new_in_tree(
    repo: &Repository,
    base: Option<&Tree<'_>>,
    tree: &Tree<'_>,
    budget: &mut Budget,
    found: &mut dyn FnMut(Oid),
) -> Result<(), Stop> {
    if base.is_some_and(|base| base.id() == tree.id()) {
        return Ok(());
    }
    found(tree.id());
    budget.take(tree.len(), b"")?;
    for entry in tree {
        let old = base.and_then(|base| base.get_name_bytes(entry.name_bytes()));
        if old.as_ref().is_some_and(|old| old.id() == entry.id()) {
            continue;
        }
        match entry.kind() {
            Some(ObjectType::Tree) => {
                let old = old.filter(|old| old.kind() == Some(ObjectType::Tree));
                let old = old.map(|old| repo.find_tree(old.id())).transpose().doing(READING)?;
                let new = repo.find_tree(entry.id()).doing(READING)?;
                new_in_tree(repo, old.as_ref(), &new, budget, found)?;
            }
            Some(ObjectType::Blob) => found(entry.id()),
            _ => {}
        }
    }
    Ok(())
}
