//! Changing one file from its current content, so that no concurrent change is lost.
//!
//! Reading, changing and committing happen under one lock. A caller that reads a file first and persists it
//! later can overwrite what another process made of it in between; an edit cannot.

use git2::{ObjectType, Oid};
use tgp_contract::{Code, RelativePath, ToolError};

use crate::branch_names::request_branch;
use crate::entry::Entry;
use crate::failure::after_commit;
use crate::inner::Inner;
use crate::local::LockedRepo;
use crate::persist::{admit_file, blobs};
use crate::rebase;
use crate::worktree::{Executable, MAX_FILE_BYTES, Standing, blocked};
use crate::{ChangeSet, CommitKind, Edited, PersistFile, Strategy};

/// Makes the new content of a file from the old one; `None` when there is no such file.
pub type ToolEdit = Box<dyn FnOnce(Option<&[u8]>) -> Result<Vec<u8>, ToolError> + Send>;

/// What an edit did under the lock.
struct Made {
    commit: Option<Oid>,
    before: Option<Vec<u8>>,
    after: Vec<u8>,
}

impl Inner {
    pub(crate) async fn edit(&self, path: &RelativePath, edit: ToolEdit) -> Result<Edited, ToolError> {
        admit_file(path, self.context.derived.path())?;
        let (own, strategy) = (path.clone(), self.strategy);
        let Made { commit, before, after } =
            self.local(move |local| local.edit_file(&own, edit, strategy)).await?;
        let persisted = match strategy {
            Strategy::Direct => {
                let files = blobs(&[PersistFile { path: path.clone(), content: Some(after.clone()) }]);
                self.deliver_commit(commit, files).await?
            }
            Strategy::Request => self.deliver_to_request(request_branch(path), commit).await?,
        };
        Ok(Edited { persisted, before, after })
    }
}

impl LockedRepo {
    fn edit_file(
        &mut self,
        path: &RelativePath,
        edit: ToolEdit,
        strategy: Strategy,
    ) -> Result<Made, ToolError> {
        let before = match self.worktree.look(path)? {
            Standing::Nothing => None,
            Standing::File(content) => Some(content),
            Standing::Other => return Err(blocked(path)),
        };
        let after = edit(before.as_deref())?;
        if after.len() as u64 > MAX_FILE_BYTES {
            let message = format!("`{path}` would have {} bytes; {MAX_FILE_BYTES} are allowed", after.len());
            return Err(ToolError::new(Code::Validation, message).help("write less into one file"));
        }
        if let Some(content) = &before
            && let Some(verb) = self.verb_of_draft(path, content, strategy)?
        {
            // A person wrote it by hand and did not commit it. It belongs in the history before it is replaced.
            self.commit_edit(path, content, verb, strategy).map_err(|error| before_edit(&error))?;
        }
        let verb = if before.is_some() { CommitKind::Refactor } else { CommitKind::Forge };
        let commit = match strategy {
            Strategy::Direct => {
                let commit = self.commit_edit(path, &after, verb, strategy)?;
                self.follow_edit(path, before.as_deref(), &after).map_err(after_commit)?;
                commit
            }
            Strategy::Request => {
                // The file comes first: after a kill in between it is a draft, which a synchronisation commits. The
                // other way round the old version would be taken for a draft and undo the new one.
                self.follow_edit(path, before.as_deref(), &after)?;
                let committed = self.commit_edit(path, &after, verb, strategy);
                if committed.as_ref().is_err_and(|error| !error.is_after_effect()) {
                    self.undo_edit(path, before.as_deref(), &after)?;
                }
                committed?
            }
        };
        Ok(Made { commit, before, after })
    }

    /// How to commit what is in the working tree, when it is in no commit yet.
    fn verb_of_draft(
        &self,
        path: &RelativePath,
        content: &[u8],
        strategy: Strategy,
    ) -> Result<Option<CommitKind>, ToolError> {
        let blob = Oid::hash_object(ObjectType::Blob, content).ok();
        let committed = rebase::entry(&self.tree(self.head()?)?, std::path::Path::new(path.as_str()))?;
        // A request continues from what is on its branch. Where the working tree went back to the version of the
        // main branch, that becomes a version of the request too, so that its delivery knows what the edit was made
        // from (see `rebase::settled`).
        let requested = match strategy {
            Strategy::Direct => None,
            Strategy::Request => self.requested(path)?,
        };
        let newest = requested.or(committed);
        if newest.map(|entry| entry.id) == blob {
            return Ok(None);
        }
        Ok(Some(if newest.is_some() { CommitKind::Refactor } else { CommitKind::Forge }))
    }

    fn commit_edit(
        &mut self,
        path: &RelativePath,
        content: &[u8],
        verb: CommitKind,
        strategy: Strategy,
    ) -> Result<Option<Oid>, ToolError> {
        let files = vec![PersistFile { path: path.clone(), content: Some(content.to_vec()) }];
        match strategy {
            Strategy::Direct => self.commit_to_branch(&ChangeSet { files, verb }),
            Strategy::Request => self.commit_to_request(&request_branch(path), &files, verb),
        }
    }

    /// Lets the working tree have the new content where the commit alone did not bring it there. A person who saved
    /// the file in the meantime keeps what was saved.
    fn follow_edit(
        &mut self,
        path: &RelativePath,
        before: Option<&[u8]>,
        after: &[u8],
    ) -> Result<(), ToolError> {
        let is_untouched = match self.worktree.look(path)? {
            Standing::Nothing => before.is_none(),
            Standing::File(content) => before == Some(content.as_slice()) && content != after,
            Standing::Other => false,
        };
        if !is_untouched {
            return Ok(());
        }
        let committed = rebase::entry(&self.tree(self.head()?)?, std::path::Path::new(path.as_str()))?;
        let entry = self.requested(path)?.or(committed);
        let is_executable = entry.is_some_and(Entry::is_executable);
        let executable = if is_executable { Executable::Yes } else { Executable::No };
        self.worktree.write(path, after, executable)?;
        let file = self.context.root.join(path.as_str());
        let folder = self.context.root.join(path.parent().as_str());
        crate::fsync::sync_each(&[file, folder])
    }

    /// Takes the new content away again when it could not be committed.
    fn undo_edit(&self, path: &RelativePath, before: Option<&[u8]>, after: &[u8]) -> Result<(), ToolError> {
        match (self.worktree.look(path)?, before) {
            (Standing::File(content), Some(before)) if content == after => {
                self.worktree.write(path, before, Executable::No)
            }
            (Standing::File(content), None) if content == after => self.worktree.remove(path),
            _ => Ok(()),
        }
    }
}

/// The error of keeping what a person wrote: the edit itself has not begun, whatever the result of that.
fn before_edit(error: &ToolError) -> ToolError {
    let message = format!("what stood in the file could not be kept: {}", error.message);
    ToolError::new(error.code, message).help("see that the disk has room, and write it again")
}
