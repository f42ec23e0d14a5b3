//! Changes that are held back: a run writes here, and its writes reach the base together or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tgp_contract::{Change, CommitVote, Entry, EntryKind, FileSystem, FsError, RelativePath};

use crate::FileLimits;
use crate::batch::{Batch, Planned, below, not_a_plain_file, nothing_at, refuse_reserved};

/// A file system over another one. Reads fall through; writes and removals stay until [`OverlayFs::commit`], and
/// are gone when the overlay is dropped before that.
///
/// A directory that was made here and emptied again is visible here, but a commit does not bring it to the base.
pub struct OverlayFs {
    base: Arc<dyn FileSystem>,
    limits: FileLimits,
    pending: RwLock<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    nodes: BTreeMap<RelativePath, Node>,
    bytes: u64,
}

#[derive(Debug)]
enum Node {
    File(Arc<[u8]>),
    /// A directory that the base does not have. Where the base has a file at this path, the file is removed first.
    Directory {
        replaces_file: bool,
    },
    /// The base has a file here; it is hidden, and removed on commit.
    Removed,
}

impl OverlayFs {
    #[must_use]
    pub fn new(base: Arc<dyn FileSystem>) -> Self {
        Self::with_limits(base, FileLimits::default())
    }

    /// `limits.total_bytes` bounds the bytes that wait for a commit.
    #[must_use]
    pub fn with_limits(base: Arc<dyn FileSystem>, limits: FileLimits) -> Self {
        Self { base, limits, pending: RwLock::default() }
    }

    /// What a commit would do now: the removals, then the writes, each sorted by path.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.pending().changes()
    }

    /// Applies everything to the base in one batch. When the base refuses, the changes stay here.
    ///
    /// # Errors
    /// As [`FileSystem::apply`] of the base.
    pub fn commit(&self) -> Result<(), FsError> {
        self.commit_if(None).map(|_| ())
    }

    /// The same, where `last_word` decides at the very end. Returns whether the changes were kept; if not, they stay
    /// here.
    ///
    /// # Errors
    /// As [`FileSystem::apply_if`] of the base.
    pub fn commit_if(&self, last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        // The lock is not held over the base's work, which may wait for a database: a reader of this overlay need
        // not wait for it. What is written meanwhile is not part of this commit and stays here.
        let changes = self.pending().changes();
        let stands = if changes.is_empty() {
            last_word.is_none_or(|agree| agree())
        } else {
            self.base.apply_if(&changes, last_word)?
        };
        if stands {
            self.pending_mut().forget(&changes);
        }
        Ok(stands)
    }

    /// Forgets everything that was not committed.
    pub fn discard(&self) {
        *self.pending_mut() = Pending::default();
    }

    fn pending(&self) -> RwLockReadGuard<'_, Pending> {
        self.pending.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending_mut(&self) -> RwLockWriteGuard<'_, Pending> {
        self.pending.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn base_kind(&self, path: &RelativePath) -> Result<Option<EntryKind>, FsError> {
        Ok(self.base.entry(path)?.map(|entry| entry.kind))
    }

    fn kind(&self, pending: &Pending, path: &RelativePath) -> Result<Option<EntryKind>, FsError> {
        match pending.nodes.get(path) {
            Some(node) => Ok(node.kind()),
            None => self.base_kind(path),
        }
    }
}

impl FileSystem for OverlayFs {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        refuse_reserved(path)?;
        let pending = self.pending();
        match pending.nodes.get(path) {
            Some(Node::File(content)) => Ok(content.to_vec()),
            Some(Node::Directory { .. }) => Err(FsError::IsDirectory(path.clone())),
            Some(Node::Removed) => Err(FsError::NotFound(path.clone())),
            None => match self.base.read(path) {
                // A parent may differ from the base's, so a miss is explained from what is seen here.
                Err(FsError::NotFound(_) | FsError::NotDirectory(_)) => {
                    Err(nothing_at(path, &|path| self.kind(&pending, path)))
                }
                answer => answer,
            },
        }
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        refuse_reserved(path)?;
        match self.pending().nodes.get(path) {
            Some(node) => Ok(node.entry(path)),
            None => self.base.entry(path),
        }
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        refuse_reserved(directory)?;
        let pending = self.pending();
        match self.kind(&pending, directory)? {
            Some(EntryKind::Directory) => {}
            Some(EntryKind::File) => return Err(FsError::NotDirectory(directory.clone())),
            Some(EntryKind::Other) => return Err(not_a_plain_file(directory)),
            None => return Err(nothing_at(directory, &|path| self.kind(&pending, path))),
        }
        let mut merged: BTreeMap<RelativePath, Entry> = BTreeMap::new();
        if !pending.nodes.contains_key(directory) {
            merged.extend(self.base.list(directory)?.into_iter().map(|entry| (entry.path.clone(), entry)));
        }
        for (path, node) in below(&pending.nodes, directory) {
            match node.entry(path) {
                Some(entry) => merged.insert(path.clone(), entry),
                None => merged.remove(path),
            };
        }
        self.limits.check_entries(directory, merged.len())?;
        Ok(merged.into_values().collect())
    }

    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        let mut pending = self.pending_mut();
        let batch = Batch::plan(changes, &self.limits, &|path| self.kind(&pending, path))?;
        let replaced: u64 =
            batch.nodes.keys().filter_map(|path| pending.nodes.get(path)).map(Node::size).sum();
        let bytes = batch.bytes_on_top_of(pending.bytes.saturating_sub(replaced), &self.limits)?;
        // Everything that can fail happens before the first node is touched.
        let mut merged = Vec::with_capacity(batch.nodes.len());
        for (path, planned) in batch.nodes {
            let node = match planned {
                Planned::File(content) => Some(Node::File(content.into())),
                // Another process may have made the same directory since the batch was planned.
                Planned::Directory { .. } => {
                    let replaces_file = self.base_kind(&path)? == Some(EntryKind::File);
                    Some(Node::Directory { replaces_file })
                }
                Planned::Removed => self.base_kind(&path)?.map(|_| Node::Removed),
            };
            merged.push((path, node));
        }
        let mut replaced = Vec::with_capacity(merged.len());
        for (path, node) in merged {
            let put = node.as_ref().and_then(Node::content);
            let before = match node {
                Some(node) => pending.nodes.insert(path.clone(), node),
                None => pending.nodes.remove(&path),
            };
            replaced.push(Replaced { path, put, before });
        }
        pending.bytes = bytes;
        drop(pending);
        // As on the disk, the changes are in place and can still be rolled back: `last_word` may take a while, and no
        // lock is held meanwhile.
        if !last_word.is_none_or(|agree| agree()) {
            self.pending_mut().restore(replaced);
            return Ok(false);
        }
        Ok(true)
    }
}

impl fmt::Debug for OverlayFs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OverlayFs")
            .field("limits", &self.limits)
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

/// What a batch has put at a path, and what was there before.
struct Replaced {
    path: RelativePath,
    put: Option<Arc<[u8]>>,
    before: Option<Node>,
}

impl Pending {
    /// Forgets changes that have reached the base, unless the path was changed again since.
    fn forget(&mut self, changes: &[Change]) {
        let contents: BTreeMap<&RelativePath, &Arc<[u8]>> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Write { path, content } => Some((path, content)),
                Change::Remove { .. } => None,
            })
            .collect();
        let removed: BTreeSet<&RelativePath> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Remove { path } => Some(path),
                Change::Write { .. } => None,
            })
            .collect();
        self.nodes.retain(|path, node| match node {
            Node::File(content) => {
                !contents.get(path).is_some_and(|committed| Arc::ptr_eq(committed, content))
            }
            Node::Removed => !removed.contains(path),
            // The base has it now, or it was empty and does not reach the base.
            Node::Directory { .. } => false,
        });
        self.count();
    }

    /// Takes a batch back, except where its paths were changed again since.
    fn restore(&mut self, replaced: Vec<Replaced>) {
        for Replaced { path, put, before } in replaced.into_iter().rev() {
            let found = self.nodes.get(&path).and_then(Node::content);
            let is_own = match (&put, &found) {
                (Some(put), Some(found)) => Arc::ptr_eq(put, found),
                (None, None) => true,
                _ => false,
            };
            if is_own {
                match before {
                    Some(before) => self.nodes.insert(path, before),
                    None => self.nodes.remove(&path),
                };
            }
        }
        self.count();
    }

    fn count(&mut self) {
        self.bytes = self.nodes.values().map(Node::size).sum();
    }

    fn changes(&self) -> Vec<Change> {
        // Removals come first: a file may have to make way for a directory of the same name.
        let removals = self.nodes.iter().filter_map(|(path, node)| match node {
            Node::Removed | Node::Directory { replaces_file: true } => {
                Some(Change::Remove { path: path.clone() })
            }
            Node::File(_) | Node::Directory { .. } => None,
        });
        let writes = self.nodes.iter().filter_map(|(path, node)| match node {
            Node::File(content) => Some(Change::Write { path: path.clone(), content: Arc::clone(content) }),
            Node::Directory { .. } | Node::Removed => None,
        });
        removals.chain(writes).collect()
    }
}

impl Node {
    fn kind(&self) -> Option<EntryKind> {
        match self {
            Self::File(_) => Some(EntryKind::File),
            Self::Directory { .. } => Some(EntryKind::Directory),
            Self::Removed => None,
        }
    }

    fn content(&self) -> Option<Arc<[u8]>> {
        match self {
            Self::File(content) => Some(Arc::clone(content)),
            Self::Directory { .. } | Self::Removed => None,
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::File(content) => content.len() as u64,
            Self::Directory { .. } | Self::Removed => 0,
        }
    }

    fn entry(&self, path: &RelativePath) -> Option<Entry> {
        self.kind().map(|kind| Entry { path: path.clone(), kind, size: self.size() })
    }
}
