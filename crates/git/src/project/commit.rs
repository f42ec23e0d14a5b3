//! Making a commit that was planned.

use git2::{ErrorCode, FileMode, IndexEntry, IndexTime, Oid};
use tgp_contract::{Code, RelativePath, ToolError};

use super::plan::{CommitPlan, PlannedFile};
use super::{ProjectRepo, Reading};

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub commit: String,
}

impl ProjectRepo {
    /// Makes a commit exactly as it was planned. The index follows where the branch is the current one; files of the work
    /// tree are not touched.
    ///
    /// # Errors
    /// `ECONFLICT` when the branch has moved since it was planned; `EGIT` when the repository cannot be written. Then nothing
    /// is committed.
    pub fn commit(&self, plan: &CommitPlan) -> Result<Committed, ToolError> {
        const DOING: &str = "write the commit";
        let parent = plan.parent.as_deref().map(Oid::from_str).transpose().reading(DOING)?;
        let id = self.write_tree(&self.repo, parent, &plan.files)?;
        if id.to_string() != plan.tree {
            return Err(moved(plan));
        }
        let tree = self.repo.find_tree(id).reading(DOING)?;
        let signature = self.signature()?;
        let parents = parent.map(|id| self.repo.find_commit(id)).transpose().reading(DOING)?;
        let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
        let commit =
            self.repo.commit(None, &signature, &signature, &plan.message, &tree, &parents).reading(DOING)?;
        if self.head()?.branch.as_deref().is_some_and(|branch| branch == plan.branch) != plan.is_current {
            return Err(moved(plan));
        }
        let before = if plan.is_current { Some(self.stage(&plan.files)?) } else { None };
        if let Err(error) = self.move_branch(plan, parent, commit) {
            if let Some(before) = before {
                // What was staged before is staged again, so that nothing is half done.
                let _ = self.unstage(&plan.files, before);
            }
            return Err(error);
        }
        Ok(Committed { commit: commit.to_string() })
    }

    /// Lets the branch point to the commit, if it is where it was when the commit was planned.
    fn move_branch(&self, plan: &CommitPlan, parent: Option<Oid>, commit: Oid) -> Result<(), ToolError> {
        let name = format!("refs/heads/{}", plan.branch);
        let first_line = plan.message.lines().next().unwrap_or_default();
        let why = format!("commit (tgp): {first_line}");
        let done = match parent.filter(|_| !plan.creates_branch) {
            Some(parent) => self.repo.reference_matching(&name, commit, true, parent, &why),
            None => self.repo.reference(&name, commit, false, &why),
        };
        match done {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.code(), ErrorCode::Modified | ErrorCode::Exists) => Err(moved(plan)),
            Err(error) => Err(error).reading("move the branch"),
        }
    }

    /// Puts the files into the index; returns the entries that were there.
    fn stage(&self, files: &[PlannedFile]) -> Result<Vec<Option<IndexEntry>>, ToolError> {
        const DOING: &str = "write the index";
        let mut index = self.index()?;
        let mut before = Vec::with_capacity(files.len());
        for file in files {
            let place = self.in_repository(&file.path);
            before.push(index.get_path(&place, 0));
            match &file.content {
                Some(content) => {
                    index.add(&self.entry(&file.path, content, file.executable)?).reading(DOING)?
                }
                None => match index.remove_path(&place) {
                    Err(error) if error.code() != ErrorCode::NotFound => return Err(error).reading(DOING),
                    _ => {}
                },
            }
        }
        index.write().reading(DOING)?;
        Ok(before)
    }

    fn unstage(&self, files: &[PlannedFile], before: Vec<Option<IndexEntry>>) -> Result<(), git2::Error> {
        let mut index = self.repo.index()?;
        for (file, entry) in files.iter().zip(before) {
            match entry {
                Some(entry) => index.add(&entry)?,
                None => {
                    let _ = index.remove_path(&self.in_repository(&file.path));
                }
            }
        }
        index.write()
    }

    /// An entry without a time and a size: git compares the content when it looks at the file the next time.
    fn entry(&self, path: &RelativePath, content: &[u8], executable: bool) -> Result<IndexEntry, ToolError> {
        let id = Oid::hash_object(git2::ObjectType::Blob, content).reading("hash a file")?;
        let mode = if executable { FileMode::BlobExecutable } else { FileMode::Blob };
        let never = IndexTime::new(0, 0);
        Ok(IndexEntry {
            ctime: never,
            mtime: never,
            dev: 0,
            ino: 0,
            mode: u32::from(mode),
            uid: 0,
            gid: 0,
            file_size: 0,
            id,
            flags: 0,
            flags_extended: 0,
            path: self.in_repository(path).into_os_string().into_encoded_bytes(),
        })
    }
}

fn moved(plan: &CommitPlan) -> ToolError {
    ToolError::new(Code::Conflict, format!("`{}` has moved since the commit was planned", plan.branch))
        .detail("branch", plan.branch.as_str())
        .help("nothing was committed; look at `git_status` and repeat the call")
}
