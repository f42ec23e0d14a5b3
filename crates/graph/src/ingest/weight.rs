//! How many paths a tree of git has, counted before it is compared with another one.
//!
//! A few small trees that name each other can expand to a hundred million paths. Each distinct tree is read once and
//! its weight kept, so the count costs what the objects cost and not what the paths would.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use git2::{ObjectType, Oid, Repository, Tree};
use tgp_contract::{Code, ToolError};

use super::worktree::MAX_FILES;
use crate::tables::failure::GraphError;

/// The names of one directory.
const MAX_TREE_BYTES: usize = 64 << 20;
/// A path that no file system takes.
const MAX_DEPTH: usize = 2048;
/// Weights that are kept; beyond, they are counted again.
const MAX_KEPT: usize = 500_000;
/// Directories of the path that a message names.
const MAX_SHOWN: usize = 8;

/// What is below a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weight {
    files: u64,
    depth: usize,
}

/// The weights of trees that were computed.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    known: RefCell<HashMap<Oid, Weight>>,
}

impl Weights {
    /// Refuses a tree that has more paths than a project may have.
    pub(crate) fn check(&self, git: &Repository, tree: &Tree<'_>) -> Result<(), GraphError> {
        let mut known = self.known.borrow_mut();
        if known.len() > MAX_KEPT {
            known.clear();
        }
        let weight = weigh(git, tree.id(), &mut known)?;
        if weight.files > MAX_FILES as u64 || weight.depth > MAX_DEPTH {
            let path = heaviest(git, tree.id(), &known);
            let what = if weight.depth > MAX_DEPTH {
                format!("directories more than {MAX_DEPTH} deep")
            } else {
                format!("more than {MAX_FILES} files ({})", weight.files)
            };
            return Err(too_large(&format!(
                "a commit of the project has {what}, most of them below `{path}`"
            )));
        }
        Ok(())
    }
}

/// A tree whose size is known before it is read.
pub(crate) fn find_tree(git: &Repository, id: Oid) -> Result<Tree<'_>, GraphError> {
    let (bytes, _) = git.odb()?.read_header(id)?;
    if bytes > MAX_TREE_BYTES {
        let message = format!("tree {id} of the project has {bytes} bytes, more than {MAX_TREE_BYTES}");
        return Err(too_large(&message));
    }
    Ok(git.find_tree(id)?)
}

fn too_large(message: &str) -> GraphError {
    ToolError::new(Code::Validation, message)
        .help("remove the commit from the branch, or lower `graph.history` so that it is not read")
        .into()
}

fn weigh(git: &Repository, root: Oid, known: &mut HashMap<Oid, Weight>) -> Result<Weight, GraphError> {
    let mut open = vec![root];
    while let Some(id) = open.last().copied() {
        if known.contains_key(&id) {
            open.pop();
            continue;
        }
        let tree = match find_tree(git, id) {
            Ok(tree) => tree,
            // A partial clone; whether the tree is needed shows when trees are compared.
            Err(error) if error.is_missing_object() => {
                known.insert(id, Weight::default());
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut weight = Weight { files: 0, depth: 1 };
        let mut unknown = HashSet::new();
        for entry in &tree {
            if entry.kind() != Some(ObjectType::Tree) {
                weight.files = weight.files.saturating_add(1);
                continue;
            }
            match known.get(&entry.id()) {
                Some(below) => {
                    weight.files = weight.files.saturating_add(below.files.max(1));
                    weight.depth = weight.depth.max(below.depth.saturating_add(1));
                }
                None => {
                    unknown.insert(entry.id());
                }
            }
        }
        if unknown.is_empty() {
            known.insert(id, weight);
            open.pop();
            continue;
        }
        open.extend(unknown);
        if open.len() > 2 * MAX_FILES {
            let message = format!("a commit of the project has more than {MAX_FILES} directories");
            return Err(too_large(&message));
        }
    }
    Ok(known.get(&root).copied().unwrap_or_default())
}

/// The path to where most files are.
fn heaviest(git: &Repository, root: Oid, known: &HashMap<Oid, Weight>) -> String {
    let mut path: Vec<String> = Vec::new();
    let mut next = Some(root);
    while let Some(tree) = next.take().and_then(|id| find_tree(git, id).ok()) {
        let directories = tree.iter().filter(|entry| entry.kind() == Some(ObjectType::Tree));
        let heavy = directories.max_by_key(|entry| known.get(&entry.id()).map_or(0, |weight| weight.files));
        if let Some(entry) = heavy.filter(|_| path.len() < MAX_SHOWN) {
            let name = String::from_utf8_lossy(entry.name_bytes());
            path.push(name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect());
            next = Some(entry.id());
        }
    }
    if path.is_empty() { ".".to_owned() } else { path.join("/") }
}
