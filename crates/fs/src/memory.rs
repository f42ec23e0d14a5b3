//! A file system that lives in memory: scratch space of a run, and the base of many tests.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use tgp_contract::{Change, CommitVote, Entry, EntryKind, FileSystem, FsError, RelativePath};

use crate::FileLimits;
use crate::batch::{Batch, Planned, below, nothing_at, refuse_reserved};

/// A tree of files in memory. As on disk, directories are made by the writes below them and stay when they empty.
#[derive(Debug, Default)]
pub struct MemoryFs {
    limits: FileLimits,
    tree: RwLock<Tree>,
}

#[derive(Debug, Default)]
struct Tree {
    nodes: BTreeMap<RelativePath, Node>,
    bytes: u64,
}

#[derive(Debug)]
enum Node {
    File(Vec<u8>),
    Directory,
}

impl MemoryFs {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_limits(limits: FileLimits) -> Self {
        Self { limits, tree: RwLock::default() }
    }

    fn tree(&self) -> std::sync::RwLockReadGuard<'_, Tree> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileSystem for MemoryFs {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        refuse_reserved(path)?;
        let tree = self.tree();
        if path.is_root() {
            return Err(FsError::IsDirectory(path.clone()));
        }
        match tree.nodes.get(path) {
            Some(Node::File(content)) => Ok(content.clone()),
            Some(Node::Directory) => Err(FsError::IsDirectory(path.clone())),
            None => Err(nothing_at(path, &|path| Ok(tree.kind(path)))),
        }
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        refuse_reserved(path)?;
        if path.is_root() {
            return Ok(Some(Entry { path: path.clone(), kind: EntryKind::Directory, size: 0 }));
        }
        Ok(self.tree().nodes.get(path).map(|node| node.entry(path)))
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        refuse_reserved(directory)?;
        let tree = self.tree();
        match tree.kind(directory) {
            Some(EntryKind::Directory) => {}
            Some(_) => return Err(FsError::NotDirectory(directory.clone())),
            None => return Err(nothing_at(directory, &|path| Ok(tree.kind(path)))),
        }
        let entries: Vec<Entry> =
            below(&tree.nodes, directory).map(|(path, node)| node.entry(path)).collect();
        self.limits.check_entries(directory, entries.len())?;
        Ok(entries)
    }

    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        let batch = Batch::plan(changes, &self.limits, &|path| Ok(tree.kind(path)))?;
        let replaced: u64 = batch.nodes.keys().filter_map(|path| tree.nodes.get(path)).map(Node::size).sum();
        let bytes = batch.bytes_on_top_of(tree.bytes.saturating_sub(replaced), &self.limits)?;
        if !last_word.is_none_or(|agree| agree()) {
            return Ok(false);
        }
        for (path, node) in batch.nodes {
            match node {
                Planned::File(content) => tree.nodes.insert(path, Node::File(content.to_vec())),
                Planned::Directory { .. } => tree.nodes.insert(path, Node::Directory),
                Planned::Removed => tree.nodes.remove(&path),
            };
        }
        tree.bytes = bytes;
        Ok(true)
    }
}

impl Tree {
    fn kind(&self, path: &RelativePath) -> Option<EntryKind> {
        if path.is_root() {
            return Some(EntryKind::Directory);
        }
        self.nodes.get(path).map(Node::kind)
    }
}

impl Node {
    fn kind(&self) -> EntryKind {
        match self {
            Self::File(_) => EntryKind::File,
            Self::Directory => EntryKind::Directory,
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::File(content) => content.len() as u64,
            Self::Directory => 0,
        }
    }

    fn entry(&self, path: &RelativePath) -> Entry {
        Entry { path: path.clone(), kind: self.kind(), size: self.size() }
    }
}
