//! Trees: what changed between two, editing one, and carrying local commits over to where the remote is now.
//!
//! The unit is the file. A tool is written as a whole, so a merge of lines would make a tool that no author
//! wrote.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::build::TreeUpdateBuilder;
use git2::{Commit, FileMode, ObjectType, Oid, Repository, Sort, Tree};
use tgp_contract::{Code, RelativePath, ToolError};

use crate::bounds;
use crate::branch_names::writable;
use crate::entry::{Change, Entry};
use crate::failure::Doing;
use crate::{GeneratedFile, RepositorySnapshot, SnapshotFile};

/// More local commits than an agent makes in weeks offline; beyond it a person should look.
const MAX_LOCAL_COMMITS: usize = 20_000;

/// What differs between two trees, by path.
///
/// # Errors
/// `EGIT` when an object cannot be read, or when the trees differ in more than [`bounds::MAX_ENTRIES`] entries.
pub(crate) fn changes(
    repo: &Repository,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
) -> Result<Vec<Change>, ToolError> {
    let mut changes = Vec::new();
    bounds::compare(repo, old.map(Tree::id), new.map(Tree::id), &mut changes)?;
    changes.sort_by(|one, other| one.path.as_os_str().as_bytes().cmp(other.path.as_os_str().as_bytes()));
    Ok(changes)
}

/// The file at `path`, whatever its kind; `Err` when a folder is there.
pub(crate) fn entry(tree: &Tree<'_>, path: &Path) -> Result<Option<Entry>, ToolError> {
    match tree.get_path(path) {
        Ok(entry) => Ok(Some(Entry { id: entry.id(), mode: entry.filemode() })),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error).doing("cannot read a tree"),
    }
}

/// Whether a file at `path` would have to replace a folder, or be below a file.
pub(crate) fn is_blocked(tree: &Tree<'_>, path: &Path) -> bool {
    let is_folder =
        |path: &Path| tree.get_path(path).ok().map(|entry| entry.kind() == Some(ObjectType::Tree));
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    is_folder(path) == Some(true) || above.into_iter().any(|above| is_folder(above) == Some(false))
}

/// An edit of one file: its new entry, or nothing for removing it.
pub(crate) type ToolEdit = (PathBuf, Option<Entry>);

/// The tree with `edits` made. Removals come first, so that a folder can become a file and the other way round.
pub(crate) fn edit<'r>(
    repo: &'r Repository,
    tree: &Tree<'r>,
    edits: &[ToolEdit],
) -> Result<Tree<'r>, ToolError> {
    const DOING: &str = "cannot write a tree";
    let mut tree = tree.clone();
    let mut removals = TreeUpdateBuilder::new();
    let mut any = false;
    for (path, _) in edits.iter().filter(|(_, entry)| entry.is_none()) {
        if entry(&tree, path)?.is_some() {
            removals.remove(path.as_path());
            any = true;
        }
    }
    if any {
        let id = removals.create_updated(repo, &tree).doing(DOING)?;
        tree = repo.find_tree(id).doing(DOING)?;
    }
    let mut upserts = TreeUpdateBuilder::new();
    let mut any = false;
    for (path, entry) in edits {
        let Some(entry) = entry else { continue };
        if is_blocked(&tree, path) {
            let message = format!("`{}` is a folder in the repository, or is below a file", path.display());
            return Err(ToolError::new(Code::Conflict, message).help("choose another path"));
        }
        upserts.upsert(path.as_path(), entry.id, entry.file_mode());
        any = true;
    }
    if any {
        let id = upserts.create_updated(repo, &tree).doing(DOING)?;
        tree = repo.find_tree(id).doing(DOING)?;
    }
    Ok(tree)
}

/// The tree with its derived file as it should be.
pub(crate) fn with_derived<'r>(
    repo: &'r Repository,
    tree: &Tree<'r>,
    derived: &dyn GeneratedFile,
) -> Result<Tree<'r>, ToolError> {
    let content = derived.derive(&TreeSnapshot { repo, tree })?;
    let id = repo.blob(&content).doing("cannot write an object")?;
    let path = PathBuf::from(derived.path().as_str());
    let new = Entry { id, mode: i32::from(FileMode::Blob) };
    if entry(tree, &path)? == Some(new) {
        return Ok(tree.clone());
    }
    edit(repo, tree, &[(path, Some(new))])
}

pub(crate) fn empty_tree(repo: &Repository) -> Result<Tree<'_>, ToolError> {
    const DOING: &str = "cannot write a tree";
    let id = repo.treebuilder(None).and_then(|builder| builder.write()).doing(DOING)?;
    repo.find_tree(id).doing(DOING)
}

/// What a [`GeneratedFile`] sees.
struct TreeSnapshot<'t, 'r> {
    repo: &'r Repository,
    tree: &'t Tree<'r>,
}

impl RepositorySnapshot for TreeSnapshot<'_, '_> {
    fn files(&self) -> Result<Vec<SnapshotFile>, ToolError> {
        let mut found: Vec<SnapshotFile> = bounds::files(self.repo, self.tree.id())?
            .into_iter()
            .filter(|(_, entry)| entry.is_plain())
            .filter_map(|(path, entry)| {
                writable(&path).map(|path| SnapshotFile { path, blob: entry.id.to_string() })
            })
            .collect();
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, ToolError> {
        let missing = || ToolError::new(Code::NotFound, format!("`{path}` is not in this version"));
        let found = entry(self.tree, Path::new(path.as_str()))?
            .filter(|entry| entry.is_plain())
            .ok_or_else(missing)?;
        Ok(bounds::blob(self.repo, found.id, Path::new(path.as_str()))?.content().to_vec())
    }
}

/// Local commits, carried over.
#[derive(Debug)]
pub(crate) struct Rebased {
    pub(crate) tip: Oid,
    /// Paths that both sides changed, with the last local commit that changed each.
    pub(crate) conflicts: BTreeMap<PathBuf, Oid>,
}

/// The commits of `local` that neither `onto` nor `known` has, oldest first, along first parents.
pub(crate) fn local_commits(
    repo: &Repository,
    local: Oid,
    onto: Oid,
    known: Option<Oid>,
) -> Result<Vec<Oid>, ToolError> {
    const DOING: &str = "cannot walk the history";
    let mut walk = repo.revwalk().doing(DOING)?;
    walk.set_sorting(Sort::TOPOLOGICAL).doing(DOING)?;
    walk.simplify_first_parent().doing(DOING)?;
    walk.push(local).doing(DOING)?;
    walk.hide(onto).doing(DOING)?;
    if let Some(known) = known.filter(|known| repo.find_commit(*known).is_ok()) {
        walk.hide(known).doing(DOING)?;
    }
    let mut commits = walk.take(MAX_LOCAL_COMMITS + 1).collect::<Result<Vec<Oid>, _>>().doing(DOING)?;
    if commits.len() > MAX_LOCAL_COMMITS {
        let message = format!("more than {MAX_LOCAL_COMMITS} local commits are not at the remote");
        return Err(ToolError::new(Code::Git, message).help("push them with git from the tool repository"));
    }
    commits.reverse();
    Ok(commits)
}

/// For each file: up to which of the local commits, counted from the oldest, `onto` has what they made of it.
pub(crate) type Settled = BTreeMap<PathBuf, usize>;

/// Finds what of `commits` was taken over without them, as a squash merge does: a file that is in `onto` as it was
/// after one of them needs only what came after that.
pub(crate) fn settled(repo: &Repository, commits: &[Oid], onto: Oid) -> Result<Settled, ToolError> {
    const READING: &str = "cannot read a commit";
    let tree_of = |id: Oid| repo.find_commit(id).and_then(|commit| commit.tree()).doing(READING);
    let current = tree_of(onto)?;
    let mut settled = Settled::new();
    for (index, id) in commits.iter().enumerate() {
        let commit = repo.find_commit(*id).doing(READING)?;
        let base = match commit.parent_count() {
            0 => None,
            _ => Some(commit.parent(0).and_then(|parent| parent.tree()).doing(READING)?),
        };
        for change in changes(repo, base.as_ref(), Some(&tree_of(*id)?))? {
            if entry(&current, &change.path)? == change.new {
                settled.insert(change.path, index);
            }
        }
    }
    Ok(settled)
}

/// Makes `commits` again on top of `onto`, but for what is `settled`. For each file a commit changed: where the remote has what the commit
/// started from, or what it made, the commit's version is taken; otherwise the remote's stays and it is a conflict.
pub(crate) fn rebase(
    repo: &Repository,
    commits: &[Oid],
    onto: Oid,
    derived: Option<&dyn GeneratedFile>,
    derived_path: &RelativePath,
    settled: &Settled,
) -> Result<Rebased, ToolError> {
    const READING: &str = "cannot read a commit";
    let mut tip = repo.find_commit(onto).doing(READING)?;
    let mut conflicts = BTreeMap::new();
    for (index, id) in commits.iter().enumerate() {
        let commit = repo.find_commit(*id).doing(READING)?;
        let base = match commit.parent_count() {
            0 => None,
            _ => Some(commit.parent(0).and_then(|parent| parent.tree()).doing(READING)?),
        };
        let own = commit.tree().doing(READING)?;
        let current = tip.tree().doing(READING)?;
        let mut edits: Vec<ToolEdit> = Vec::new();
        for change in changes(repo, base.as_ref(), Some(&own))? {
            let is_settled = settled.get(&change.path).is_some_and(|upto| index <= *upto);
            if is_settled || change.path == Path::new(derived_path.as_str()) {
                continue;
            }
            let standing = entry(&current, &change.path)?;
            if standing == change.new {
                continue;
            }
            let is_free =
                standing == change.old && (change.new.is_none() || !is_blocked(&current, &change.path));
            if is_free && !conflicts.contains_key(&change.path) {
                edits.push((change.path, change.new));
            } else {
                conflicts.insert(change.path, *id);
            }
        }
        if edits.is_empty() {
            continue;
        }
        let mut tree = edit(repo, &current, &edits)?;
        if let Some(derived) = derived {
            tree = with_derived(repo, &tree, derived)?;
        }
        let again = commit_again(repo, &commit, &tree, &tip)?;
        tip = repo.find_commit(again).doing(READING)?;
    }
    Ok(Rebased { tip: tip.id(), conflicts })
}

/// The same commit with another tree and parent: author, dates and message stay.
fn commit_again(
    repo: &Repository,
    commit: &Commit<'_>,
    tree: &Tree<'_>,
    parent: &Commit<'_>,
) -> Result<Oid, ToolError> {
    let message = String::from_utf8_lossy(commit.message_raw_bytes());
    repo.commit(None, &commit.author(), &commit.committer(), &message, tree, &[parent])
        .doing("cannot write a commit")
}
