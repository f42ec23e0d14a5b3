//! What differs between two trees of git. Directories that are the same are not read, so that a commit costs what it
//! changes and not what the tree has.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use git2::{ObjectType, Oid, Repository, Tree};

use super::weight::find_tree;
use crate::tables::failure::GraphError;

/// A blob or a link as a tree has it: its mode and its id.
pub(crate) type Entry = (i32, Oid);

/// A path that is not the same in two trees, and what it is in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeDelta {
    pub(crate) path: Vec<u8>,
    pub(crate) old: Option<Entry>,
    pub(crate) new: Option<Entry>,
}

/// Comparisons that are kept: as many commits are planned at once, and a few.
const MAX_KEPT: usize = 256;
/// Paths of a comparison that is kept.
const MAX_PATHS: usize = 1_000;

/// The trees of a comparison; none where nothing is.
type Trees = (Option<Oid>, Option<Oid>);

/// What was compared. Who reads history backwards compares each commit with its parent twice: for what is other in the parent, and
/// for what the commit did.
#[derive(Debug, Default)]
pub(crate) struct Compared(RefCell<HashMap<Trees, Vec<TreeDelta>>>);

impl Compared {
    /// What differs between two trees; `compare` finds it out.
    pub(crate) fn deltas(
        &self,
        (old, new): Trees,
        compare: impl FnOnce() -> Result<Vec<TreeDelta>, GraphError>,
    ) -> Result<Vec<TreeDelta>, GraphError> {
        if let Some(deltas) = self.0.borrow().get(&(old, new)) {
            return Ok(deltas.clone());
        }
        if let Some(deltas) = self.0.borrow().get(&(new, old)) {
            let turned =
                |delta: &TreeDelta| TreeDelta { path: delta.path.clone(), old: delta.new, new: delta.old };
            return Ok(deltas.iter().map(turned).collect());
        }
        let deltas = compare()?;
        if deltas.len() <= MAX_PATHS {
            let mut kept = self.0.borrow_mut();
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert((old, new), deltas.clone());
        }
        Ok(deltas)
    }
}

/// A directory that is not the same: its path, and its tree on each side.
struct Directory {
    path: Vec<u8>,
    old: Option<Oid>,
    new: Option<Oid>,
}

/// What a directory has under one name, on each side: whether it is a directory, its mode and id.
type Both = [Option<(bool, Entry)>; 2];

/// All paths that differ, in order. The caller has checked that neither tree is too large.
pub(crate) fn deltas(
    git: &Repository,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
) -> Result<Vec<TreeDelta>, GraphError> {
    let mut deltas = Vec::new();
    let id = |tree: &Tree<'_>| tree.id();
    let mut open = vec![Directory { path: Vec::new(), old: old.map(id), new: new.map(id) }];
    while let Some(Directory { path, old, new }) = open.pop() {
        if old == new {
            continue;
        }
        let mut names: BTreeMap<Vec<u8>, Both> = BTreeMap::new();
        for (side, tree) in [old, new].into_iter().enumerate() {
            let Some(tree) = tree else { continue };
            for entry in &find_tree(git, tree)? {
                let kind = entry.kind();
                if !matches!(kind, Some(ObjectType::Tree | ObjectType::Blob)) {
                    continue;
                }
                let both = names.entry(entry.name_bytes().to_vec()).or_default();
                if let Some(place) = both.get_mut(side) {
                    *place = Some((kind == Some(ObjectType::Tree), (entry.filemode(), entry.id())));
                }
            }
        }
        for (name, [old, new]) in names {
            if old == new {
                continue;
            }
            let mut below = path.clone();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(&name);
            let tree =
                |side: Option<(bool, Entry)>| side.filter(|(is_tree, _)| *is_tree).map(|(_, (_, id))| id);
            let file =
                |side: Option<(bool, Entry)>| side.filter(|(is_tree, _)| !is_tree).map(|(_, entry)| entry);
            if tree(old).is_some() || tree(new).is_some() {
                open.push(Directory { path: below.clone(), old: tree(old), new: tree(new) });
            }
            if file(old).is_some() || file(new).is_some() {
                deltas.push(TreeDelta { path: below, old: file(old), new: file(new) });
            }
        }
    }
    deltas.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(deltas)
}
