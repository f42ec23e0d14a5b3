//! The project's git repository: names of commits, their order, their trees. Nothing here reaches the network.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use git2::{
    Delta, Diff, DiffOptions, FileMode, IndexEntryExtendedFlag, ObjectType, Oid, Repository, Sort, Tree,
};
use tgp_contract::{Code, ToolError, is_chronicle_content};
use tgp_fs::{CheckedRepository, RepositoryAccess, Stamp};

use super::blobs::Content;
use super::deltas::{Compared, Entry, TreeDelta, deltas};
use super::language::{is_chronicle, join};
use super::parse::MAX_BLOB_BYTES;
use super::renames::find_renames;
use super::state::Blob;
use super::tracked::TrackedKey;
use super::weight::{Weights, find_tree};
use crate::tables::failure::GraphError;

/// No commit has a longer name.
const MAX_REVISION_BYTES: usize = 256;

/// What happened to a path between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) path: String,
    /// None when it is gone.
    pub(crate) blob: Option<Blob>,
}

/// What a commit did to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) path: String,
    pub(crate) change: &'static str,
    /// The name it had before.
    pub(crate) from: Option<String>,
}

/// The git repository that the graph reads.
pub struct Repo {
    git: Repository,
    project: PathBuf,
    access: RepositoryAccess,
    checked: CheckedRepository,
    /// Where the project is in the repository; empty at its root.
    prefix: String,
    /// Commits whose parents this clone does not have.
    shallow: HashSet<Oid>,
    weights: Weights,
    compared: Compared,
}

impl Repo {
    /// None when the project is in no repository.
    pub fn open(project: &Path, access: &RepositoryAccess) -> Result<Option<Self>, GraphError> {
        let Some((checked, git)) = access.open(project)? else { return Ok(None) };
        let prefix = checked.prefix().to_str().unwrap_or_default().to_owned();
        let shallow = std::fs::read_to_string(checked.shared().join("shallow")).unwrap_or_default();
        let shallow = shallow.lines().filter_map(|line| Oid::from_str(line.trim()).ok()).collect();
        Ok(Some(Self {
            git,
            project: project.to_owned(),
            access: access.clone(),
            checked,
            prefix,
            shallow,
            weights: Weights::default(),
            compared: Compared::default(),
        }))
    }

    /// Whether it is still the project's repository.
    pub(crate) fn is_current(&self) -> bool {
        self.access.is_current(&self.project, &self.checked)
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The commit that a name refers to.
    pub fn resolve(&self, name: &str) -> Result<Oid, GraphError> {
        check_name(name)?;
        let found = self.git.revparse_single(name).and_then(|object| object.peel_to_commit());
        found.map(|commit| commit.id()).map_err(|error| match error.code() {
            git2::ErrorCode::Ambiguous => {
                ToolError::new(Code::Validation, format!("`{name}` matches more than one commit"))
                    .help("write more of the commit's id")
                    .into()
            }
            _ if self.is_unborn() => ToolError::new(Code::NotFound, "there is no commit yet")
                .help("`tgp graph ingest --commit WORKTREE` reads the files as they are")
                .into(),
            _ => ToolError::new(Code::NotFound, format!("`{name}` is not a commit of this repository"))
                .help("`git log --oneline --all` lists the commits")
                .into(),
        })
    }

    /// Whether no branch has a commit.
    fn is_unborn(&self) -> bool {
        self.git.head().is_err_and(|error| error.code() == git2::ErrorCode::UnbornBranch)
            && self.git.references().is_ok_and(|mut references| references.next().is_none())
    }

    /// The checked-out branch (or `HEAD`) and its commit; none before the first commit.
    pub fn head(&self) -> Option<(String, Oid)> {
        let head = self.git.head().ok()?;
        let name = head.shorthand().unwrap_or("HEAD").to_owned();
        Some((name, head.peel_to_commit().ok()?.id()))
    }

    pub(crate) fn commit(&self, id: Oid) -> Result<git2::Commit<'_>, GraphError> {
        Ok(self.git.find_commit(id)?)
    }

    /// Whether this clone is shallow at the commit and lacks its parents.
    pub(crate) fn is_shallow(&self, id: Oid) -> bool {
        self.shallow.contains(&id)
    }

    pub(crate) fn has_shallow(&self) -> bool {
        !self.shallow.is_empty()
    }

    /// Whether the repository has a commit.
    pub(crate) fn has(&self, id: Oid) -> bool {
        self.git.find_commit(id).is_ok()
    }

    /// Whether one commit is among the ancestors of another; not where the line between them is cut off.
    pub(crate) fn is_ancestor(&self, ancestor: Oid, of: Oid) -> Result<bool, GraphError> {
        match self.git.graph_descendant_of(of, ancestor) {
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(false),
            told => Ok(told?),
        }
    }

    /// Parents that this clone has.
    pub(crate) fn parents(&self, id: Oid) -> Result<Vec<Oid>, GraphError> {
        if self.shallow.contains(&id) {
            return Ok(Vec::new());
        }
        Ok(self.commit(id)?.parent_ids().collect())
    }

    /// The commit and all its ancestors that are not `known`, ancestors first, each line of history in one piece.
    /// Only the last `cap` of them, and whether there were more. The ancestors of `base` are read elsewhere.
    pub(crate) fn missing(
        &self,
        id: Oid,
        known: &HashSet<Oid>,
        base: Option<Oid>,
        cap: usize,
    ) -> Result<(Vec<Oid>, bool), GraphError> {
        let mut hide = |id: Oid| known.contains(&id);
        let mut walk = self.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)?;
        walk.push(id)?;
        if let Some(base) = base {
            walk.hide(base)?;
        }
        let walk = walk.with_hide_callback(&mut hide)?;
        let mut missing = walk.collect::<Result<Vec<Oid>, _>>()?;
        let beyond = missing.len().saturating_sub(cap);
        missing.drain(..beyond);
        Ok((missing, beyond > 0))
    }

    /// Whether a commit and its ancestors are more than so many commits.
    pub(crate) fn has_more_than(&self, id: Oid, count: usize) -> Result<bool, GraphError> {
        let mut seen = HashSet::from([id]);
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if seen.len() > count {
                return Ok(true);
            }
            open.extend(self.parents(id)?.into_iter().filter(|parent| seen.insert(*parent)));
        }
        Ok(seen.len() > count)
    }

    /// The commit and all its ancestors, descendants first, each line of history in one piece. Only the first `cap` of
    /// them, and whether there are more.
    pub(crate) fn history(&self, id: Oid, cap: usize) -> Result<(Vec<Oid>, bool), GraphError> {
        let mut walk = self.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL)?;
        walk.push(id)?;
        let mut history = Vec::new();
        for id in walk {
            if history.len() == cap {
                return Ok((history, true));
            }
            history.push(id?);
        }
        Ok((history, false))
    }

    /// Commits that are reached from `to` and not from `from`.
    pub(crate) fn reached(&self, to: Option<Oid>, from: Option<Oid>) -> Result<Vec<Oid>, GraphError> {
        let Some(to) = to else { return Ok(Vec::new()) };
        if from == Some(to) {
            return Ok(Vec::new());
        }
        let parents = self.parents(to)?;
        if let ([parent], Some(from)) = (parents.as_slice(), from)
            && *parent == from
        {
            return Ok(vec![to]);
        }
        let mut walk = self.git.revwalk()?;
        walk.push(to)?;
        if let Some(from) = from {
            walk.hide(from)?;
        }
        Ok(walk.collect::<Result<_, _>>()?)
    }

    /// The tree of the project at a commit; none where it is not there.
    pub(crate) fn tree(&self, id: Oid) -> Result<Option<Tree<'_>>, GraphError> {
        let tree = find_tree(&self.git, self.commit(id)?.tree_id())?;
        if self.prefix.is_empty() {
            return Ok(Some(tree));
        }
        match tree.get_path(Path::new(&self.prefix)) {
            Ok(entry) if entry.kind() == Some(ObjectType::Tree) => {
                Ok(Some(find_tree(&self.git, entry.id())?))
            }
            Ok(_) => Ok(None),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn find_tree(&self, id: &str) -> Result<Option<Tree<'_>>, GraphError> {
        if id.is_empty() {
            return Ok(None);
        }
        Ok(Some(find_tree(&self.git, Oid::from_str(id)?)?))
    }

    fn diff(&self, old: Option<&Tree<'_>>, new: Option<&Tree<'_>>) -> Result<Diff<'_>, GraphError> {
        for tree in [old, new].into_iter().flatten() {
            self.weights.check(&self.git, tree)?;
        }
        let mut options = DiffOptions::new();
        options.include_typechange(true).skip_binary_check(true).ignore_submodules(true);
        Ok(self.git.diff_tree_to_tree(old, new, Some(&mut options))?)
    }

    fn deltas(&self, old: Option<&Tree<'_>>, new: Option<&Tree<'_>>) -> Result<Vec<TreeDelta>, GraphError> {
        self.compared.deltas((old.map(Tree::id), new.map(Tree::id)), || {
            for tree in [old, new].into_iter().flatten() {
                self.weights.check(&self.git, tree)?;
            }
            deltas(&self.git, old, new)
        })
    }

    /// What differs between two trees: regular files only, links and submodules are nothing.
    pub(crate) fn changed(
        &self,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
    ) -> Result<Vec<Changed>, GraphError> {
        let mut changed = Vec::new();
        for delta in self.deltas(old, new)? {
            let was = delta.old.and_then(|entry| self.file_at(&delta.path, entry));
            let is = delta.new.and_then(|entry| self.file_at(&delta.path, entry));
            if let (Some(path), Some((_, id))) = (is, delta.new) {
                changed.push(Changed { path, blob: Some(blob_of(id)) });
            } else if let Some(path) = was {
                changed.push(Changed { path, blob: None });
            }
        }
        Ok(changed)
    }

    /// All files of the project at a commit.
    pub(crate) fn files(&self, id: Oid) -> Result<Vec<Changed>, GraphError> {
        let tree = self.tree(id)?;
        self.changed(None, tree.as_ref())
    }

    /// What [`Repo::tracked`] depends on.
    pub(crate) fn tracked_key(&self) -> Result<TrackedKey, GraphError> {
        let stamp = |path: &Path| path.symlink_metadata().ok().map(|data| Stamp::of(&data));
        Ok(TrackedKey {
            repository: self.git.path().to_owned(),
            prefix: self.prefix.clone(),
            head: self.head().map(|(_, id)| id),
            index: self.git.index()?.path().and_then(stamp),
        })
    }

    /// All files of the project that git knows: of the head's commit and of the index.
    pub(crate) fn tracked(&self) -> Result<BTreeSet<String>, GraphError> {
        let mut tracked = BTreeSet::new();
        if let Some((_, head)) = self.head() {
            tracked.extend(self.files(head)?.into_iter().map(|file| file.path));
        }
        let below = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        for entry in self.index()?.iter().filter(|entry| is_file_mode(entry.mode)) {
            let path = std::str::from_utf8(&entry.path).ok().and_then(|path| path.strip_prefix(&below));
            tracked.extend(path.filter(|path| !self.is_chronicle(path, entry.id)).map(str::to_owned));
        }
        Ok(tracked)
    }

    /// Files of the project that a sparse checkout leaves out of the work tree, and what they hold.
    pub(crate) fn absent(&self) -> Result<BTreeMap<String, Blob>, GraphError> {
        let below = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        let mut absent = BTreeMap::new();
        for entry in self.index()?.iter().filter(|entry| is_file_mode(entry.mode)) {
            let flags = IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended);
            let path = std::str::from_utf8(&entry.path).ok().and_then(|path| path.strip_prefix(&below));
            let path = path.filter(|path| flags.is_skip_worktree() && !self.is_chronicle(path, entry.id));
            absent.extend(path.map(|path| (path.to_owned(), blob_of(entry.id))));
        }
        Ok(absent)
    }

    /// Whether objects may be missing that the remote repository has.
    fn is_partial(&self) -> bool {
        let Ok(config) = self.git.config() else { return false };
        let Ok(mut entries) = config.entries(Some("^remote\\..*\\.promisor$")) else { return false };
        matches!(entries.next(), Some(Ok(_)))
    }

    /// Says of an object that is missing in a partial clone how it can be had.
    pub(crate) fn explain(&self, error: GraphError) -> GraphError {
        if error.is_missing_object() && self.is_partial() {
            let message = format!("this is a partial clone, which does not have all that is needed: {error}");
            return ToolError::new(Code::Git, message)
                .help("`git fetch --refetch --no-filter` brings what is missing")
                .into();
        }
        error
    }

    /// The index as it is now: this repository may have been open for long.
    fn index(&self) -> Result<git2::Index, GraphError> {
        let mut index = self.git.index()?;
        if !self.git.is_bare() {
            index.read(false)?;
        }
        Ok(index)
    }

    /// Whether git knows a file of the project, or one in this directory of it.
    pub(crate) fn is_tracked(&self, path: &str) -> Result<bool, GraphError> {
        let path = if self.prefix.is_empty() { path.to_owned() } else { join(&self.prefix, path) };
        let index = self.index()?;
        let in_index = (0..=3).any(|stage| index.get_path(Path::new(&path), stage).is_some())
            || index.find_prefix(format!("{path}/")).is_ok();
        if in_index {
            return Ok(true);
        }
        let Some((_, head)) = self.head() else { return Ok(false) };
        Ok(self.commit(head)?.tree()?.get_path(Path::new(&path)).is_ok())
    }

    /// How many files of the project at a commit have a path that is not UTF-8, and so are not in the graph.
    pub(crate) fn skipped(&self, id: Oid) -> Result<u64, GraphError> {
        let tree = self.tree(id)?;
        let diff = self.diff(None, tree.as_ref())?;
        let is_skipped = |file: git2::DiffFile<'_>| {
            is_file(file.mode()) && file.path_bytes().is_some_and(|path| std::str::from_utf8(path).is_err())
        };
        Ok(diff.deltas().filter(|delta| is_skipped(delta.new_file())).count() as u64)
    }

    /// What a commit did to the files of the project: against its parent, or for a merge what none of its parents has.
    pub(crate) fn touched(&self, id: Oid) -> Result<Vec<Touched>, GraphError> {
        if self.shallow.contains(&id) {
            return Ok(Vec::new());
        }
        let tree = self.tree(id)?;
        let parents = self.parents(id)?;
        if let [] | [_] = parents.as_slice() {
            let old = parents.first().map(|parent| self.tree(*parent)).transpose()?.flatten();
            let deltas = self.deltas(old.as_ref(), tree.as_ref())?;
            let has = |is_that: fn(&TreeDelta) -> bool| deltas.iter().any(is_that);
            if !has(|delta| delta.old.is_none()) || !has(|delta| delta.new.is_none()) {
                return Ok(deltas.iter().filter_map(|delta| self.touched_at(delta)).collect());
            }
            // Something is gone and something is new: git says what was renamed.
            let mut diff = self.diff(old.as_ref(), tree.as_ref())?;
            find_renames(&self.git, &mut diff)?;
            return Ok(diff.deltas().filter_map(|delta| self.touched_by(&delta)).collect());
        }
        let mut common: Option<Vec<Touched>> = None;
        for parent in parents {
            let old = self.tree(parent)?;
            let deltas = self.deltas(old.as_ref(), tree.as_ref())?;
            let here: Vec<Touched> = deltas.iter().filter_map(|delta| self.touched_at(delta)).collect();
            common = Some(match common {
                None => here,
                Some(common) => in_both(common, &here),
            });
        }
        Ok(common.unwrap_or_default())
    }

    /// The path of a regular file that is not a chronicle.
    fn file_at(&self, path: &[u8], (mode, blob): Entry) -> Option<String> {
        let path = std::str::from_utf8(path).ok()?;
        let is_file = is_file_mode(u32::try_from(mode).unwrap_or_default());
        (is_file && !self.is_chronicle(path, blob)).then(|| path.to_owned())
    }

    fn touched_at(&self, delta: &TreeDelta) -> Option<Touched> {
        let was = delta.old.and_then(|entry| self.file_at(&delta.path, entry));
        let is = delta.new.and_then(|entry| self.file_at(&delta.path, entry));
        let (path, change) = match (was, is) {
            (None, Some(path)) => (path, "added"),
            (Some(path), None) => (path, "deleted"),
            (Some(_), Some(path)) => (path, "modified"),
            (None, None) => return None,
        };
        Some(Touched { path, change, from: None })
    }

    /// A path that is not UTF-8 is nothing, and a chronicle is not part of the code.
    fn path_of(&self, file: &git2::DiffFile<'_>) -> Option<String> {
        let path = std::str::from_utf8(file.path_bytes()?).ok()?;
        (!self.is_chronicle(path, file.id())).then(|| path.to_owned())
    }

    fn is_chronicle(&self, path: &str, blob: Oid) -> bool {
        is_chronicle(path, || match self.content(blob_of(blob)) {
            Ok(Content::Bytes(bytes)) => is_chronicle_content(&bytes),
            // No source is that large.
            Ok(Content::TooLarge(_)) => true,
            Err(_) => false,
        })
    }

    fn touched_by(&self, delta: &git2::DiffDelta<'_>) -> Option<Touched> {
        let (old, new) = (delta.old_file(), delta.new_file());
        let was = is_file(old.mode()).then(|| self.path_of(&old)).flatten();
        let is = is_file(new.mode()).then(|| self.path_of(&new)).flatten();
        let touched = |path, change, from| Some(Touched { path, change, from });
        match (delta.status(), was, is) {
            (Delta::Renamed, Some(was), Some(is)) => touched(is, "renamed", Some(was)),
            (_, None, Some(is)) => touched(is, "added", None),
            (_, Some(was), None) => touched(was, "deleted", None),
            (_, Some(_), Some(is)) => touched(is, "modified", None),
            _ => None,
        }
    }

    /// The bytes of a blob, or its size where it is too large to be read.
    pub(crate) fn content(&self, blob: Blob) -> Result<Content, GraphError> {
        let id = Oid::from_bytes(&blob)?;
        let odb = self.git.odb()?;
        let (size, _) = odb.read_header(id)?;
        if size > MAX_BLOB_BYTES {
            return Ok(Content::TooLarge(size as u64));
        }
        Ok(Content::Bytes(odb.read(id)?.data().into()))
    }
}

/// Refuses what git could take for an option, and what no terminal should show.
pub(crate) fn check_name(name: &str) -> Result<(), ToolError> {
    let bad = name.is_empty()
        || name.len() > MAX_REVISION_BYTES
        || name.starts_with('-')
        || name.chars().any(char::is_control);
    if bad {
        let shown: String = name.chars().filter(|character| !character.is_control()).take(40).collect();
        return Err(ToolError::new(Code::Validation, format!("`{shown}` is not a name of a commit"))
            .help("name a branch, a tag, a commit's id, or something like `HEAD~2`"));
    }
    Ok(())
}

pub(super) fn is_file(mode: FileMode) -> bool {
    matches!(mode, FileMode::Blob | FileMode::BlobExecutable | FileMode::BlobGroupWritable)
}

/// The same for the mode of an entry of the index.
fn is_file_mode(mode: u32) -> bool {
    mode & 0o170_000 == 0o100_000
}

pub(crate) fn blob_of(id: Oid) -> Blob {
    let mut blob = Blob::default();
    for (to, from) in blob.iter_mut().zip(id.as_bytes()) {
        *to = *from;
    }
    blob
}

/// Paths that both have; what they do not agree on is a modification.
fn in_both(common: Vec<Touched>, other: &[Touched]) -> Vec<Touched> {
    let changes: std::collections::HashMap<&str, &'static str> =
        other.iter().map(|touched| (touched.path.as_str(), touched.change)).collect();
    common
        .into_iter()
        .filter_map(|mut touched| {
            let change = changes.get(touched.path.as_str())?;
            if *change != touched.change {
                touched.change = "modified";
            }
            Some(touched)
        })
        .collect()
}
