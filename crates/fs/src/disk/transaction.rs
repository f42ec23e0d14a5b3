//! A batch on disk: everything is staged beside its place first, then takes its place, or all of it is undone.
//!
//! INVARIANT: from staging to undoing, each file is reached through the directory handle it was staged with. A
//! directory that is renamed or swapped meanwhile changes nothing about where the bytes go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{PoisonError, RwLock};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fsync, linkat, unlinkat};
use tgp_contract::{CommitVote, EntryKind, FsError, RelativePath};

use super::handle::{self, Obstacle, io};
use super::not_a_plain_file;
use super::recovery::{Intent, unlink};
use crate::batch::{Batch, Planned};
use crate::rename::{self, RenameFlags};

const NEW_FILE: Mode = Mode::from_bits_truncate(0o644);
const NEW_DIRECTORY: Mode = Mode::from_bits_truncate(0o755);
const PRIVATE: Mode = Mode::from_bits_truncate(0o600);
const PERMISSIONS: Mode = Mode::from_bits_truncate(0o777);

/// Brings `batch` to disk; `visible` is locked while the files take their places, and while they are rolled
/// back.
///
/// The lock is not held until the commit vote is cast. That vote may depend on a database, and a thread that reads a
/// file meanwhile may be the one that brings its answer. Such a reader sees the new files, as every other program does.
pub(super) fn run(
    root: &OwnedFd,
    batch: &Batch<'_>,
    visible: &RwLock<()>,
    last_word: Option<CommitVote<'_>>,
) -> Result<bool, FsError> {
    if batch.nodes.is_empty() {
        return Ok(last_word.is_none_or(|agree| agree()));
    }
    let mut transaction = Transaction::begin(root, batch, last_word.is_some())?;
    let mut staged = BTreeMap::new();
    for (path, content) in batch.files() {
        staged.insert(path, transaction.stage(path, content)?);
    }
    let hidden = || visible.write().unwrap_or_else(PoisonError::into_inner);
    let placing = hidden();
    let placed = transaction.place_all(batch, &staged).and_then(|()| transaction.sync());
    if let Err(error) = placed {
        transaction.undo();
        return Err(error);
    }
    drop(placing);
    let stands = last_word.is_none_or(|agree| agree());
    if !stands {
        let _undoing = hidden();
        transaction.undo();
    }
    Ok(stands)
}

#[derive(Debug)]
struct Transaction<'r> {
    // Fields are dropped from the top: the temporary files go before the intent that announces them.
    temporaries: Temporaries,
    intent: Intent<'r>,
    directories: BTreeMap<RelativePath, Rc<OwnedFd>>,
    touched: BTreeSet<RelativePath>,
    undo: Vec<Undo>,
    /// The only change of a batch needs no rollback unless there is a commit vote: its rename happens or not.
    alone: bool,
}

/// A file that waits beside its place.
#[derive(Debug)]
struct Staged {
    home: Rc<OwnedFd>,
    temporary: String,
}

/// How to undo one step.
#[derive(Debug)]
enum Undo {
    /// The old file waits under the name of the temporary one.
    Exchange {
        from: Rc<OwnedFd>,
        home: Rc<OwnedFd>,
        temporary: String,
        name: String,
    },
    /// The old file was put aside.
    PutBack {
        home: Rc<OwnedFd>,
        aside: String,
        name: String,
    },
    /// There was no old file.
    Remove {
        home: Rc<OwnedFd>,
        name: String,
    },
    RemoveDirectory {
        home: Rc<OwnedFd>,
        name: String,
    },
}

/// Removes every temporary file of the batch at its end, however it ends.
#[derive(Debug, Default)]
struct Temporaries(Vec<(Rc<OwnedFd>, String)>);

impl Drop for Temporaries {
    fn drop(&mut self) {
        for (home, name) in &self.0 {
            unlink(home, name);
        }
    }
}

impl<'r> Transaction<'r> {
    fn begin(root: &'r OwnedFd, batch: &Batch<'_>, may_be_undone: bool) -> Result<Self, FsError> {
        let here = RelativePath::root();
        let handle = handle::walk(root, &here)?.directory;
        let steps = batch.nodes.values().filter(|node| !matches!(node, Planned::Directory { .. })).count();
        let replaced =
            batch.nodes.values().any(|node| matches!(node, Planned::Directory { replaces_file: true }));
        Ok(Self {
            temporaries: Temporaries::default(),
            intent: Intent::begin(root)?,
            directories: BTreeMap::from([(here, Rc::new(handle))]),
            touched: BTreeSet::new(),
            undo: Vec::new(),
            alone: steps == 1 && !replaced && !may_be_undone,
        })
    }

    /// Writes the new content of `path` to a temporary file in its directory, or in the nearest one that exists:
    /// the missing ones will be made on the same disk.
    fn stage(&mut self, path: &RelativePath, content: &[u8]) -> Result<Staged, FsError> {
        let parent = path.parent();
        let (place, home) = self.nearest(&parent)?;
        self.intent.note(&place)?;
        let old = match path.name() {
            Some(name) if place == parent => handle::stat(&home, name, path)?,
            _ => None,
        };
        let temporary = self.intent.temporary_name();
        // A new file is made with its final mode, so that the process's umask applies.
        let mode = if old.is_some() { PRIVATE } else { NEW_FILE };
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let handle = openat(&home, temporary.as_str(), flags, mode).map_err(|errno| io(path, errno))?;
        self.temporaries.0.push((Rc::clone(&home), temporary.clone()));
        let mut file = File::from(handle);
        let failed = |source| FsError::Io { path: path.clone(), source };
        file.write_all(content).map_err(failed)?;
        if let Some(old) = old {
            keep_owner_and_mode(&file, &old).map_err(|errno| io(path, errno))?;
        }
        file.sync_all().map_err(failed)?;
        Ok(Staged { home, temporary })
    }

    fn place_all(
        &mut self,
        batch: &Batch<'_>,
        staged: &BTreeMap<&RelativePath, Staged>,
    ) -> Result<(), FsError> {
        for (path, node) in &batch.nodes {
            if matches!(node, Planned::Directory { replaces_file: true }) {
                self.put_aside(path)?;
            }
        }
        for (path, node) in &batch.nodes {
            match node {
                Planned::Directory { .. } => drop(self.make(path)?),
                Planned::File(_) => {
                    if let Some(staged) = staged.get(path) {
                        self.place(path, staged)?;
                    }
                }
                Planned::Removed => {}
            }
        }
        // Removals come last: a move that is cut short by a kill then leaves two files and not none.
        for (path, node) in &batch.nodes {
            if *node == Planned::Removed {
                self.put_aside(path)?;
            }
        }
        Ok(())
    }

    fn place(&mut self, path: &RelativePath, staged: &Staged) -> Result<(), FsError> {
        let Some(name) = path.name() else { return Err(FsError::IsDirectory(path.clone())) };
        let parent = path.parent();
        let home = self.make(&parent)?;
        let Staged { home: from, temporary } = staged;
        self.touched.insert(parent);
        let replaced = handle::stat(&home, name, path)?.is_some();
        if replaced {
            refuse_all_but_files(&home, name, path)?;
        }
        if replaced && !self.alone {
            match exchange(from, temporary, &home, name) {
                Ok(()) => {
                    self.undo.push(Undo::Exchange {
                        from: Rc::clone(from),
                        temporary: temporary.clone(),
                        home,
                        name: name.to_owned(),
                    });
                    // Only a check after the swap is free of races. What is not a file goes back by the undo.
                    return refuse_all_but_files(from, temporary, path);
                }
                Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                    self.link_aside(path, &home, name)?;
                }
                Err(errno) => return Err(io(path, errno)),
            }
        }
        renameat(from, temporary.as_str(), &home, name).map_err(|errno| io(path, errno))?;
        if !replaced {
            self.undo.push(Undo::Remove { home, name: name.to_owned() });
        }
        Ok(())
    }

    /// Keeps the old file under a second name, on disks that cannot exchange two files.
    fn link_aside(&mut self, path: &RelativePath, home: &Rc<OwnedFd>, name: &str) -> Result<(), FsError> {
        let aside = self.intent.temporary_name();
        linkat(home, name, home, aside.as_str(), AtFlags::empty()).map_err(|errno| io(path, errno))?;
        self.temporaries.0.push((Rc::clone(home), aside.clone()));
        refuse_all_but_files(home, &aside, path)?;
        self.undo.push(Undo::PutBack { home: Rc::clone(home), aside, name: name.to_owned() });
        Ok(())
    }

    /// Takes the file at `path` away; it is removed for good when the batch is done.
    fn put_aside(&mut self, path: &RelativePath) -> Result<(), FsError> {
        let Some(name) = path.name() else { return Err(FsError::IsDirectory(path.clone())) };
        let parent = path.parent();
        let (place, home) = self.nearest(&parent)?;
        if place != parent {
            return Ok(());
        }
        self.intent.note(&place)?;
        let aside = self.intent.temporary_name();
        match renameat(&home, name, &home, aside.as_str()) {
            Ok(()) => {}
            Err(Errno::ENOENT) => return Ok(()),
            Err(errno) => return Err(io(path, errno)),
        }
        self.touched.insert(parent);
        self.undo.push(Undo::PutBack { home: Rc::clone(&home), aside: aside.clone(), name: name.to_owned() });
        refuse_all_but_files(&home, &aside, path)?;
        self.temporaries.0.push((home, aside));
        Ok(())
    }

    /// The handle of the directory at `path`, or of the last one on the way that exists.
    fn nearest(&mut self, path: &RelativePath) -> Result<(RelativePath, Rc<OwnedFd>), FsError> {
        if let Some(known) = self.directories.get(path) {
            return Ok((path.clone(), Rc::clone(known)));
        }
        let parent = path.parent();
        let (place, home) = self.nearest(&parent)?;
        let Some(name) = path.name().filter(|_| place == parent) else { return Ok((place, home)) };
        match handle::step(&home, name, || path.clone())? {
            Ok(next) => Ok((path.clone(), self.keep(path, next))),
            Err(_) => Ok((place, home)),
        }
    }

    /// The handle of the directory at `path`, which is made when it is missing.
    fn make(&mut self, path: &RelativePath) -> Result<Rc<OwnedFd>, FsError> {
        let (mut place, mut home) = self.nearest(path)?;
        let depth = place.parts().count();
        for name in path.parts().skip(depth) {
            let below = place.join(name)?;
            match mkdirat(&home, name, NEW_DIRECTORY) {
                Ok(()) => {
                    self.undo.push(Undo::RemoveDirectory { home: Rc::clone(&home), name: name.to_owned() });
                    self.touched.insert(place);
                }
                // Another process was faster; the next call says whether it is a directory.
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(io(&below, errno)),
            }
            let next = match handle::step(&home, name, || below.clone())? {
                Ok(next) => next,
                Err(Obstacle::Missing) => return Err(FsError::NotFound(below)),
                Err(Obstacle::File(file)) => return Err(FsError::NotDirectory(file)),
            };
            home = self.keep(&below, next);
            place = below;
        }
        Ok(home)
    }

    fn keep(&mut self, path: &RelativePath, handle: OwnedFd) -> Rc<OwnedFd> {
        let handle = Rc::new(handle);
        self.directories.insert(path.clone(), Rc::clone(&handle));
        handle
    }

    /// Waits until the names are on disk, too.
    fn sync(&self) -> Result<(), FsError> {
        for path in &self.touched {
            if let Some(handle) = self.directories.get(path) {
                fsync(handle).map_err(|errno| io(path, errno))?;
            }
        }
        Ok(())
    }

    /// Goes back step by step. Each step works on handles that are open, so it needs nothing that could run out;
    /// where one fails all the same, the others are still undone.
    fn undo(&mut self) {
        while let Some(step) = self.undo.pop() {
            let _ = match step {
                Undo::Exchange { from, temporary, home, name } => exchange(&from, &temporary, &home, &name),
                Undo::PutBack { home, aside, name } => renameat(&home, aside.as_str(), &home, name.as_str()),
                Undo::Remove { home, name } => unlinkat(&home, name.as_str(), UnlinkatFlags::NoRemoveDir),
                Undo::RemoveDirectory { home, name } => {
                    unlinkat(&home, name.as_str(), UnlinkatFlags::RemoveDir)
                }
            };
        }
    }
}

fn refuse_all_but_files(home: &OwnedFd, name: &str, path: &RelativePath) -> Result<(), FsError> {
    match handle::stat(home, name, path)?.as_ref().map(handle::kind) {
        Some(EntryKind::File) => Ok(()),
        Some(EntryKind::Directory) => Err(FsError::IsDirectory(path.clone())),
        Some(EntryKind::Other) => Err(not_a_plain_file(path)),
        None => Err(FsError::NotFound(path.clone())),
    }
}

/// Gives a replacement what the old file had. Bits that raise privileges are not carried over to new content.
fn keep_owner_and_mode(file: &File, old: &FileStat) -> Result<(), Errno> {
    let mut mode = Mode::from_bits_truncate(old.st_mode) & PERMISSIONS;
    let new = fstat(file)?;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let owner = (Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
        // Where giving the file away is not allowed, the group's rights must not pass to another group.
        if fchown(file, owner.0, owner.1).is_err() {
            mode -= Mode::S_IRWXG;
        }
    }
    fchmod(file, mode)
}

/// Swaps two files in one step.
fn exchange(from: &OwnedFd, temporary: &str, home: &OwnedFd, name: &str) -> Result<(), Errno> {
    rename::rename(from, temporary, home, name, RenameFlags::EXCHANGE)
}
