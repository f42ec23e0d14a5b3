//! Moving the branch, with the working tree and the index behind it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use git2::{FileMode, Oid};
use tgp_contract::{Code, RelativePath, ToolError};

use crate::Conflict;
use crate::bounds;
use crate::branch_names::{kept_branch, request_branch, writable};
use crate::entry::{Change, Entry};
use crate::failure::{At, Doing, after_commit};
use crate::fsync::secure;
use crate::journal::Journal;
use crate::local::{LockedRepo, open_repository};
use crate::rebase::{self, ToolEdit};
use crate::worktree::{Executable, Standing};

/// What happens to a file in the way of the move that has uncommitted content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncommitted {
    /// It is kept on a branch and is replaced: the move comes from the remote.
    Keep,
    /// It stays: it is newer than the commit that is being made.
    Leave,
}

impl LockedRepo {
    /// Moves the branch, and the working tree and the index with it. A kill at any moment is repaired by the next
    /// writer from the journal.
    pub(crate) fn advance(
        &mut self,
        from: Option<Oid>,
        to: Oid,
        uncommitted: Uncommitted,
        why: &str,
    ) -> Result<Vec<Conflict>, ToolError> {
        let changes = self.changes_between(from, to)?;
        let (kept, conflicts) = match uncommitted {
            Uncommitted::Keep => self.keep_uncommitted(&changes, from, to)?,
            Uncommitted::Leave => (BTreeMap::new(), Vec::new()),
        };
        let state = self.context.state();
        let journal = Journal {
            from: from.map(|id| id.to_string()),
            to: to.to_string(),
            kept: kept.iter().map(|(path, blob)| (path.as_str().to_owned(), blob.to_string())).collect(),
        };
        let first = journal.write(&state)?;
        let ours = conflicts.iter().filter_map(|conflict| Oid::from_str(&conflict.ours).ok());
        let tips: Vec<Oid> = ours.chain([to]).collect();
        secure(&self.repo, &tips, from.as_slice(), first)?;
        self.set(&self.context.local(&self.context.branch), to, why)?;
        self.follow(&changes, &kept).and_then(|()| Journal::remove(&state)).map_err(after_commit)?;
        Ok(conflicts)
    }

    fn changes_between(&self, from: Option<Oid>, to: Oid) -> Result<Vec<Change>, ToolError> {
        let (old, new) = (self.tree(from)?, self.tree(Some(to))?);
        rebase::changes(&self.repo, Some(&old), Some(&new))
    }

    /// Commits what the move would overwrite, on its own branch.
    fn keep_uncommitted(
        &self,
        changes: &[Change],
        from: Option<Oid>,
        to: Oid,
    ) -> Result<(BTreeMap<RelativePath, Oid>, Vec<Conflict>), ToolError> {
        let mut kept = BTreeMap::new();
        let mut lost = Vec::new();
        let mut edits: Vec<ToolEdit> = Vec::new();
        for change in changes {
            let Some(path) = writable(&change.path).filter(|path| path != self.context.derived.path()) else {
                continue;
            };
            let Standing::File(content) = self.worktree.look(&path)? else { continue };
            let id = self.repo.blob(&content).doing("cannot write an object")?;
            let is = |entry: Option<Entry>| entry.is_some_and(|entry| entry.id == id);
            if is(change.old) || is(change.new) {
                continue;
            }
            // What is on the branch of its request is safe there, and the remote's version is what came of it.
            if !is(self.requested(&path)?) {
                edits.push((change.path.clone(), Some(Entry { id, mode: i32::from(FileMode::Blob) })));
                lost.push(path.clone());
            }
            kept.insert(path, id);
        }
        let Some(first) = lost.first() else { return Ok((kept, Vec::new())) };
        let parent = from.unwrap_or(to);
        // A folder may have become a file in the working tree; then the draft is alone in its commit.
        let tree = rebase::edit(&self.repo, &self.tree(Some(parent))?, &edits)
            .or_else(|_| rebase::edit(&self.repo, &rebase::empty_tree(&self.repo)?, &edits))?;
        let text = format!("Keep: {first}\n\nIt was not committed here when the remote's version arrived.\n");
        let ours = self.write_commit(Some(parent), &tree, &text)?;
        let branch = kept_branch(first, ours);
        self.set(&self.context.local(&branch), ours, "keep what was not committed")?;
        let conflict = |path: &RelativePath| Conflict {
            path: path.clone(),
            branch: branch.clone(),
            ours: ours.to_string(),
            theirs: to.to_string(),
        };
        let conflicts = lost.iter().map(conflict).collect();
        Ok((kept, conflicts))
    }

    /// The file as it is on the branch of its request.
    pub(crate) fn requested(&self, path: &RelativePath) -> Result<Option<Entry>, ToolError> {
        match self.reference(&self.context.local(&request_branch(path)))? {
            Some(tip) => rebase::entry(&self.tree(Some(tip))?, Path::new(path.as_str())),
            None => Ok(None),
        }
    }

    /// Finishes the move of a process that did not live to do it.
    pub(crate) fn finish_move(&mut self) -> Result<(), ToolError> {
        let state = self.context.state();
        let Some(journal) = Journal::read(&state)? else { return Journal::remove(&state) };
        let to = Oid::from_str(&journal.to).ok();
        let from = journal.from.as_deref().and_then(|text| Oid::from_str(text).ok());
        // Where the branch did not move, nothing has to follow.
        if let (Some(to), Some(head)) = (to, self.head()?)
            && self.has(head, to)?
        {
            let parse =
                |(path, blob): &(String, String)| writable(Path::new(path)).zip(Oid::from_str(blob).ok());
            let kept = journal.kept.iter().filter_map(parse).collect();
            let changes = self.changes_between(from, head)?;
            self.follow(&changes, &kept)?;
            self.note("finished an update that another process had begun".to_owned());
        }
        Journal::remove(&state)
    }

    /// Makes working tree and index follow the branch. Content that is neither the old nor the new version nor
    /// `kept` stays as it is.
    fn follow(&mut self, changes: &[Change], kept: &BTreeMap<RelativePath, Oid>) -> Result<(), ToolError> {
        let mut written = Vec::new();
        let is_removal = |change: &&Change| !change.new.is_some_and(Entry::is_plain);
        // Removals first: a folder may be in the way of a file, and the other way round.
        for change in
            changes.iter().filter(is_removal).chain(changes.iter().filter(|change| !is_removal(change)))
        {
            let Some(path) = writable(&change.path) else {
                self.note(format!(
                    "`{}` is not a name for a file here and was not written",
                    change.path.display()
                ));
                continue;
            };
            match self.follow_one(&path, change, kept) {
                Ok(true) => written.push(path),
                Ok(false) => {}
                // Something in the way of one file must not keep all others from arriving.
                Err(error) if error.code == Code::Security => self.note(error.message),
                Err(error) => return Err(error),
            }
        }
        self.update_index(changes)?;
        self.settle(&written)
    }

    /// Syncs the branch and the files that followed it.
    fn settle(&self, written: &[RelativePath]) -> Result<(), ToolError> {
        let root = &self.context.root;
        let mut paths: Vec<PathBuf> = self.reference_files(&self.context.branch);
        for path in written {
            paths.push(root.join(path.as_str()));
            paths.push(root.join(path.parent().as_str()));
        }
        secure(&self.repo, &[], &[], paths)
    }

    fn follow_one(
        &mut self,
        path: &RelativePath,
        change: &Change,
        kept: &BTreeMap<RelativePath, Oid>,
    ) -> Result<bool, ToolError> {
        let standing = self.worktree.look(path)?;
        let blob = standing.blob();
        let may_go = match &standing {
            Standing::Nothing => true,
            Standing::Other => false,
            Standing::File(_) => {
                path == self.context.derived.path()
                    || blob == change.old.map(|old| old.id)
                    || (blob.is_some() && blob == kept.get(path).copied())
            }
        };
        let Some(new) = change.new.filter(|new| new.is_plain()) else {
            if change.new.is_some() {
                self.note(format!("`{path}` is a link or a repository of its own and was not written"));
            }
            if may_go {
                self.worktree.remove(path)?;
            }
            return Ok(false);
        };
        let is_same_mode = change.old.is_none_or(|old| old.is_executable() == new.is_executable());
        if (blob == Some(new.id) && is_same_mode) || (!may_go && standing != Standing::Other) {
            return Ok(false);
        }
        let executable = if new.is_executable() { Executable::Yes } else { Executable::No };
        let content = bounds::blob(&self.repo, new.id, &change.path)?;
        self.worktree.write(path, content.content(), executable)?;
        Ok(true)
    }

    fn update_index(&mut self, changes: &[Change]) -> Result<(), ToolError> {
        const DOING: &str = "cannot write the index";
        let mut index = match self.repo.index() {
            Ok(index) if self.context.git().join("index").exists() => index,
            _ => return self.rebuild_index(),
        };
        for change in changes {
            // A name that the index refuses is one that is not in the working tree either.
            let _ = match change.new {
                Some(entry) => index.add(&index_entry(&change.path, entry)),
                None => index.remove_path(&change.path),
            };
        }
        index.write().doing(DOING)
    }

    /// Rebuilds the index from the branch.
    pub(crate) fn rebuild_index(&mut self) -> Result<(), ToolError> {
        const DOING: &str = "cannot write the index";
        let path = self.context.git().join("index");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).at("cannot remove", &path);
            }
            _ => {}
        }
        // The open repository may have the broken one in memory.
        self.repo = open_repository(&self.context).doing("cannot open the tool repository")?;
        let files = bounds::files(&self.repo, self.tree(self.head()?)?.id())?;
        let mut index = self.repo.index().doing(DOING)?;
        index.clear().doing(DOING)?;
        for (path, entry) in files {
            let _ = index.add(&index_entry(&path, entry));
        }
        index.write().doing(DOING)
    }
}

/// No times and sizes: git then compares the content, which is always right.
fn index_entry(path: &Path, entry: Entry) -> git2::IndexEntry {
    let never = git2::IndexTime::new(0, 0);
    git2::IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode: u32::try_from(entry.mode).unwrap_or_default(),
        uid: 0,
        gid: 0,
        file_size: 0,
        id: entry.id,
        flags: 0,
        flags_extended: 0,
        path: std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec(),
    }
}
