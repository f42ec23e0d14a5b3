//! What a list of changes comes to, worked out before anything is touched.
//!
//! The changes of a batch are read one after the other, each against the tree as the earlier ones leave it. The
//! plan then holds one node for each path, and every conflict was found before the first effect.

use std::collections::BTreeMap;

use tgp_contract::{Change, EntryKind, FsError, RelativePath};

use crate::FileLimits;

/// Names that begin like this belong to the disk file system: they are hidden in listings and swept after a crash.
pub(crate) const TEMPORARY_PREFIX: &str = ".tgp-tmp-";

/// What a batch leaves at one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned<'a> {
    File(&'a [u8]),
    /// A directory that does not exist yet. Its path may be that of a file that the same batch removes.
    Directory {
        replaces_file: bool,
    },
    /// A file that was there is gone.
    Removed,
}

/// The nodes that differ after the batch, sorted, so that a directory comes before what it holds.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    pub(crate) nodes: BTreeMap<RelativePath, Planned<'a>>,
}

/// Returns what is at a path before the batch.
pub(crate) type Lookup<'l> = &'l dyn Fn(&RelativePath) -> Result<Option<EntryKind>, FsError>;

impl<'a> Batch<'a> {
    pub(crate) fn plan(
        changes: &'a [Change],
        limits: &FileLimits,
        lookup: Lookup<'_>,
    ) -> Result<Self, FsError> {
        let mut batch = Self::default();
        for change in changes {
            refuse_reserved(change.path())?;
            if change.path().is_root() {
                return Err(FsError::IsDirectory(RelativePath::root()));
            }
            match change {
                Change::Write { path, content } => {
                    limits.check_file(path, content.len() as u64)?;
                    limits.check_depth(path)?;
                    batch.write(path, content, lookup)?;
                }
                Change::Remove { path } => batch.remove(path, lookup)?,
            }
        }
        Ok(batch)
    }

    /// The bytes held after the batch where `held` bytes stay; an error names the first file that does not fit.
    pub(crate) fn bytes_on_top_of(&self, held: u64, limits: &FileLimits) -> Result<u64, FsError> {
        self.files().try_fold(held, |bytes, (path, content)| {
            let size = content.len() as u64;
            let left = limits.total_bytes.saturating_sub(bytes);
            if size > left {
                return Err(FsError::TooLarge { path: path.clone(), size, limit: left });
            }
            Ok(bytes.saturating_add(size))
        })
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&RelativePath, &'a [u8])> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            Planned::File(content) => Some((path, *content)),
            Planned::Directory { .. } | Planned::Removed => None,
        })
    }

    fn write(&mut self, path: &RelativePath, content: &'a [u8], lookup: Lookup<'_>) -> Result<(), FsError> {
        match self.kind(path, lookup)? {
            Some(EntryKind::Directory) => return Err(FsError::IsDirectory(path.clone())),
            Some(EntryKind::Other) => return Err(not_a_plain_file(path)),
            Some(EntryKind::File) => {}
            None => {
                for directory in self.missing_parents(path, lookup)? {
                    let replaces_file = self.nodes.contains_key(&directory);
                    self.nodes.insert(directory, Planned::Directory { replaces_file });
                }
            }
        }
        self.nodes.insert(path.clone(), Planned::File(content));
        Ok(())
    }

    fn remove(&mut self, path: &RelativePath, lookup: Lookup<'_>) -> Result<(), FsError> {
        match self.kind(path, lookup)? {
            Some(EntryKind::Directory) => Err(FsError::IsDirectory(path.clone())),
            Some(EntryKind::Other) => Err(not_a_plain_file(path)),
            None => Ok(()),
            Some(EntryKind::File) => {
                if lookup(path)?.is_some() {
                    self.nodes.insert(path.clone(), Planned::Removed);
                } else {
                    self.nodes.remove(path);
                }
                Ok(())
            }
        }
    }

    fn missing_parents(&self, path: &RelativePath, lookup: Lookup<'_>) -> Result<Vec<RelativePath>, FsError> {
        let mut missing = Vec::new();
        let mut parent = path.parent();
        while !parent.is_root() {
            match self.kind(&parent, lookup)? {
                Some(EntryKind::Directory) => break,
                Some(EntryKind::File) => return Err(FsError::NotDirectory(parent)),
                Some(EntryKind::Other) => return Err(not_a_plain_file(&parent)),
                None => {
                    let above = parent.parent();
                    missing.push(std::mem::replace(&mut parent, above));
                }
            }
        }
        Ok(missing)
    }

    fn kind(&self, path: &RelativePath, lookup: Lookup<'_>) -> Result<Option<EntryKind>, FsError> {
        match self.nodes.get(path) {
            Some(Planned::File(_)) => Ok(Some(EntryKind::File)),
            Some(Planned::Directory { .. }) => Ok(Some(EntryKind::Directory)),
            Some(Planned::Removed) => Ok(None),
            None => lookup(path),
        }
    }
}

/// Keeps callers away from the names of temporary files, which listings hide.
pub(crate) fn refuse_reserved(path: &RelativePath) -> Result<(), FsError> {
    if path.parts().any(|part| part.starts_with(TEMPORARY_PREFIX)) {
        let reason = "names that begin with `.tgp-tmp-` are reserved";
        return Err(FsError::Security { path: path.to_string(), reason });
    }
    Ok(())
}

pub(crate) fn not_a_plain_file(path: &RelativePath) -> FsError {
    FsError::Security { path: path.to_string(), reason: "links and special files are not followed" }
}

/// What a failed read of `path` means when there is no file: a file on the way says more than "not found".
pub(crate) fn nothing_at(path: &RelativePath, lookup: Lookup<'_>) -> FsError {
    let mut parent = path.parent();
    while !parent.is_root() {
        match lookup(&parent) {
            Ok(Some(EntryKind::File)) => return FsError::NotDirectory(parent),
            Ok(None) => parent = parent.parent(),
            Ok(Some(_)) => break,
            Err(error) => return error,
        }
    }
    FsError::NotFound(path.clone())
}

/// The entries of a sorted map that are below `directory`.
pub(crate) fn below<'m, V>(
    nodes: &'m BTreeMap<RelativePath, V>,
    directory: &'m RelativePath,
) -> impl Iterator<Item = (&'m RelativePath, &'m V)> {
    use std::ops::Bound::{Excluded, Unbounded};
    // Other names may sort between a directory and what it holds (`a`, `a-b`, `a/b`), but all share its prefix.
    nodes
        .range((Excluded(directory.clone()), Unbounded))
        .take_while(|(path, _)| path.as_str().starts_with(directory.as_str()))
        .filter(|(path, _)| path.is_inside(directory))
}
