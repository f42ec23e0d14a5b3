//! Files of the last commit, for the rules that a person has committed. No agent writes one: `.git` is out of its reach.

use git2::{ObjectType, Oid, Repository, Tree};
use std::cell::RefCell;
use std::collections::HashMap;

/// The names of one directory. What is larger is not read.
const MAX_TREE_BYTES: usize = 64 << 20;
/// The kind of a link among the modes of git. Git reads no rules through one.
const LINK: i32 = 0o120_000;

/// The tree of `HEAD`.
pub(crate) struct HeadTree {
    git: Repository,
    root: Oid,
    /// The trees of directories, by their path from the top; nothing for those that the commit does not have.
    directories: RefCell<HashMap<String, Option<Oid>>>,
}

impl HeadTree {
    /// None before the first commit, and where git cannot be read.
    pub(crate) fn of(git: Repository) -> Option<Self> {
        let root = git.head().ok()?.peel_to_commit().ok()?.tree_id();
        Some(Self { git, root, directories: RefCell::default() })
    }

    /// The content of a plain file of at most `most` bytes, by its path from the top.
    pub(crate) fn read(&self, path: &str, most: u64) -> Option<Vec<u8>> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let id = self.entry(self.directory(directory)?, name, ObjectType::Blob)?;
        let (bytes, _) = self.git.odb().ok()?.read_header(id).ok()?;
        if bytes as u64 > most {
            return None;
        }
        Some(self.git.find_blob(id).ok()?.content().to_vec())
    }

    fn directory(&self, path: &str) -> Option<Oid> {
        let mut tree = self.root;
        if path.is_empty() {
            return Some(tree);
        }
        let mut known = self.directories.borrow_mut();
        for end in path.match_indices('/').map(|(at, _)| at).chain([path.len()]) {
            let directory = path.get(..end)?;
            let found = match known.get(directory) {
                Some(found) => *found,
                None => {
                    let name = directory.rsplit('/').next()?;
                    let found = self.entry(tree, name, ObjectType::Tree);
                    known.insert(directory.to_owned(), found);
                    found
                }
            };
            tree = found?;
        }
        Some(tree)
    }

    fn entry(&self, tree: Oid, name: &str, kind: ObjectType) -> Option<Oid> {
        let tree = self.tree(tree)?;
        let entry = tree.get_name(name)?;
        (entry.kind() == Some(kind) && entry.filemode() != LINK).then(|| entry.id())
    }

    /// A tree whose size is known before it is read.
    fn tree(&self, id: Oid) -> Option<Tree<'_>> {
        let (bytes, _) = self.git.odb().ok()?.read_header(id).ok()?;
        if bytes > MAX_TREE_BYTES {
            return None;
        }
        self.git.find_tree(id).ok()
    }
}
