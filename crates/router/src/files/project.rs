//! The project as its tools see it: nothing protected, no link followed, and a run's own writes included.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use tgp_contract::{
    Access, Change, Entry, EntryKind, FileFilter, FileSystem, FsError, RelativePath, Root, chronicled,
};
use tgp_fs::{DirectoryEntries, OutsideRules, RepositoryAccess, outside_rules};
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};

use super::directories::{Directories, TEMPORARY_PREFIX};
use super::guarded::{is_at_or_below, is_package};
use super::{check_chronicle, is_protected, is_write_protected};

/// What is below every view of the files.
pub struct ProjectBase {
    /// The disk without the guard that `host` has.
    pub(super) disk: Arc<dyn FileSystem>,
    pub(super) directories: Directories,
    /// The project on the disk.
    pub(super) place: PathBuf,
    /// Where its repository may be.
    pub(super) repository: RepositoryAccess,
    /// What only the kernel writes, but the project's tools may read: the configuration and the packages.
    pub(super) sealed: Vec<RelativePath>,
    /// The tool root, which has its own tools, and git's own files.
    pub(super) hidden: Vec<RelativePath>,
    pub(super) commit_lock: Arc<Mutex<()>>,
}

impl ProjectBase {
    /// Held by a call that changes files which it has read before, and by the commit of a run: so nothing changes
    /// between the read and the write. A run holds it until its database has answered, which is bounded there; those
    /// who wait for it on the runtime leave their thread to others.
    pub async fn commit_lock(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.commit_lock).lock_owned().await
    }

    /// The same on a thread of the blocking pool.
    pub(super) fn commit_lock_blocking(&self) -> MutexGuard<'_, ()> {
        self.commit_lock.blocking_lock()
    }

    /// Whether no call sees a file: `path` of the project, which is at `host`.
    pub(super) fn is_hidden(&self, host: &RelativePath, path: &RelativePath) -> bool {
        is_protected(Root::Project, path)
            || chronicled(path).is_some_and(|file| is_protected(Root::Project, &file))
            || path.parts().any(|part| part.starts_with(TEMPORARY_PREFIX))
            || self.hidden.iter().any(|hidden| is_at_or_below(host, hidden))
    }
}

/// See the module's documentation. Paths are relative to the project.
#[derive(Clone)]
pub struct ProjectFiles {
    pub(super) host: Arc<dyn FileSystem>,
    pub(super) base: Arc<ProjectBase>,
    /// Where the project is in `host`.
    pub(super) project: RelativePath,
    /// What a run has written (its size) or removed (nothing) and not committed, by path in `host`.
    pub(super) pending: Arc<BTreeMap<RelativePath, Option<u64>>>,
    pub(super) overlaid: bool,
    pub(super) filter: Option<FileFilter>,
}

/// What a change left behind.
pub struct Changed {
    pub before: Option<Vec<u8>>,
    pub after: Option<Arc<[u8]>>,
}

impl ProjectFiles {
    /// The path in `host`, if it may be seen at all.
    pub(super) fn within(&self, path: &RelativePath) -> Result<RelativePath, FsError> {
        let host = if path.is_root() { self.project.clone() } else { self.project.join(path.as_str())? };
        if self.is_hidden(&host, path) {
            let reason = "git's own files, the tools, the kernel's state and credentials are out of reach";
            return Err(FsError::Security { path: path.to_string(), reason });
        }
        Ok(host)
    }

    /// The rules for its files that are not in it.
    pub(super) fn outside_rules(&self) -> Vec<OutsideRules> {
        outside_rules(&self.base.place, &self.base.repository)
    }

    /// Whether the gates let a call see it.
    fn shows(&self, path: &RelativePath) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter(Root::Project, path, Access::Read))
    }

    fn is_hidden(&self, host: &RelativePath, path: &RelativePath) -> bool {
        self.base.is_hidden(host, path)
    }

    pub(super) fn is_sealed(&self, host: &RelativePath) -> bool {
        self.base.sealed.iter().any(|sealed| is_at_or_below(host, sealed)) || is_package(host, &self.project)
    }

    /// The file system that knows `host`. No run writes what is sealed, so the disk has the truth about it.
    fn reader(&self, host: &RelativePath) -> &dyn FileSystem {
        if self.is_sealed(host) { self.base.disk.as_ref() } else { self.host.as_ref() }
    }

    /// The exact bytes of a file.
    pub fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        let host = self.within(path)?;
        if !self.shows(path) {
            return Err(FsError::NotFound(path.clone()));
        }
        self.reader(&host).read(&host).map_err(|error| self.as_named(error, path))
    }

    /// What is at `path`, without following links.
    pub fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        let host = self.within(path)?;
        if !path.is_root() && !self.shows(path) {
            return Ok(None);
        }
        let entry = self.reader(&host).entry(&host).map_err(|error| self.as_named(error, path))?;
        Ok(entry.map(|entry| Entry { path: path.clone(), ..entry }))
    }

    /// The entries of one directory, in no order and without what is out of reach.
    pub fn children(&self, directory: &RelativePath) -> Result<DirectoryEntries, FsError> {
        let host = self.within(directory)?;
        if !directory.is_root() && !self.shows(directory) {
            return Err(FsError::NotFound(directory.clone()));
        }
        let pending = self.pending_in(&host);
        let on_disk = match self.base.directories.children(&host) {
            // Only a run has made it.
            Err(FsError::NotFound(_)) if pending.values().any(Option::is_some) => DirectoryEntries::default(),
            other => other.map_err(|error| self.as_named(error, directory))?,
        };
        let mut entries: BTreeMap<RelativePath, Entry> =
            on_disk.entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
        for (path, entry) in pending {
            match entry {
                Some(entry) => entries.insert(path, entry),
                None => entries.remove(&path),
            };
        }
        let named = |entry: Entry| {
            let name = entry.path.name()?;
            let path = directory.join(name).ok()?;
            (!self.is_hidden(&entry.path, &path) && self.shows(&path)).then_some(Entry { path, ..entry })
        };
        Ok(DirectoryEntries {
            entries: entries.into_values().filter_map(named).collect(),
            unnamed: on_disk.unnamed,
        })
    }

    /// What a run has left in `directory` of `host`: an entry, or nothing where one was removed.
    fn pending_in(&self, directory: &RelativePath) -> BTreeMap<RelativePath, Option<Entry>> {
        let depth = directory.parts().count();
        let mut found = BTreeMap::new();
        for (path, size) in self.pending.iter().filter(|(path, _)| path.is_inside(directory)) {
            let levels = path.parts().count() - depth;
            let child = (1..levels).fold(path.clone(), |path, _| path.parent());
            let entry = match (size, levels) {
                (_, 0) => continue,
                (Some(size), 1) => Some(Entry { path: child.clone(), kind: EntryKind::File, size: *size }),
                (None, 1) => None,
                (Some(_), _) => Some(Entry { path: child.clone(), kind: EntryKind::Directory, size: 0 }),
                (None, _) => continue,
            };
            found.insert(child, entry);
        }
        found
    }

    /// Changes one file: `decide` gets the current content and returns the new one (`None`: the file is removed).
    /// No other write comes in between.
    pub fn change<E: From<FsError>>(
        &self,
        path: &RelativePath,
        decide: impl FnOnce(Option<&[u8]>) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Changed, E> {
        let host = self.within(path)?;
        let _lock = self.base.commit_lock_blocking();
        let changed = self.decided(path, decide)?;
        let change = match &changed.after {
            Some(content) => Change::Write { path: host, content: Arc::clone(content) },
            None => Change::Remove { path: host },
        };
        self.host.apply(&[change]).map_err(|error| self.as_named(error, path))?;
        Ok(changed)
    }

    /// What [`ProjectFiles::change`] would do, without doing it.
    pub fn decided<E: From<FsError>>(
        &self,
        path: &RelativePath,
        decide: impl FnOnce(Option<&[u8]>) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Changed, E> {
        let host = self.within(path)?;
        if self.is_sealed(&host) || is_write_protected(Root::Project, path) {
            let reason = "the kernel's configuration, its rules and the packages are read-only";
            return Err(FsError::Security { path: path.to_string(), reason }.into());
        }
        let before = match self.read(path) {
            Ok(bytes) => Some(bytes),
            Err(FsError::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let after: Option<Arc<[u8]>> = decide(before.as_deref())?.map(Arc::from);
        check_chronicle(path, || before.clone(), after.as_deref())?;
        Ok(Changed { before, after })
    }

    /// How many entries these new files and directories bring, with the directories on the way that are made for them.
    pub fn new_entries<'p>(&self, paths: impl IntoIterator<Item = &'p RelativePath>) -> u64 {
        let mut new: BTreeSet<RelativePath> = BTreeSet::new();
        for path in paths {
            let mut path = path.clone();
            // The path itself is new; those above it are until one is there.
            while !path.is_root() && new.insert(path.clone()) {
                path = path.parent();
                if !matches!(self.entry(&path), Ok(None)) {
                    break;
                }
            }
        }
        new.len() as u64
    }

    /// Whether nothing is in a directory, of what is out of reach neither.
    pub fn is_empty_directory(&self, path: &RelativePath) -> Result<bool, FsError> {
        let host = self.within(path)?;
        let on_disk = self.base.directories.children(&host).map_err(|error| self.as_named(error, path))?;
        Ok(on_disk.entries.is_empty() && on_disk.unnamed == 0)
    }

    /// Removes a directory that is empty; answers whether it was.
    pub fn remove_empty_directory(&self, path: &RelativePath) -> Result<bool, FsError> {
        let host = self.within(path)?;
        if self.is_sealed(&host) || self.overlaid {
            let reason = "this directory cannot be removed here";
            return Err(FsError::Security { path: path.to_string(), reason });
        }
        let _lock = self.base.commit_lock_blocking();
        self.base.directories.remove_empty(&host).map_err(|error| self.as_named(error, path))
    }

    /// The error with the path as the caller named it: `host` may be above the project.
    pub(super) fn as_named(&self, error: FsError, asked: &RelativePath) -> FsError {
        let skip = self.project.parts().count();
        let name = |path: RelativePath| {
            let names: Vec<&str> = path.parts().skip(skip).collect();
            RelativePath::new(&names.join("/")).unwrap_or_else(|_| asked.clone())
        };
        match error {
            FsError::NotFound(path) => FsError::NotFound(name(path)),
            FsError::IsDirectory(path) => FsError::IsDirectory(name(path)),
            FsError::NotDirectory(path) => FsError::NotDirectory(name(path)),
            FsError::Security { reason, .. } => FsError::Security { path: asked.to_string(), reason },
            FsError::TooLarge { path, size, limit } => FsError::TooLarge { path: name(path), size, limit },
            FsError::TooDeep { path, limit } => FsError::TooDeep { path: name(path), limit },
            FsError::TooMany { path, limit } => FsError::TooMany { path: name(path), limit },
            FsError::NotText { path, offset } => FsError::NotText { path: name(path), offset },
            FsError::Io { path, source } => FsError::Io { path: name(path), source },
            other @ FsError::Path(_) => other,
        }
    }
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
