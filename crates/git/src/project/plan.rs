//! What a commit would contain, found without writing anything.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use git2::{BranchType, FileMode, ObjectType, Oid, Repository};
use tgp_contract::{Code, RelativePath, ToolError, canonical};

use super::delta::{DeltaKind, FileVersion, TreeEntry};
use super::scan::{MAX_WORK_FILE_BYTES, StatusScan};
use super::{ProjectRepo, Reading, WorkFiles};
use crate::bounds;
use crate::branch_names::check_branch;
use crate::entry::Entry;
use crate::rebase::{self, ToolEdit};

/// Directories of installed packages and of caches, which people do not commit.
const GENERATED: [&str; 6] =
    ["node_modules", ".venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"];

/// Files of one commit: each of them is judged by the rules and shown to the person who is asked.
pub(crate) const MAX_COMMIT_FILES: usize = 2_000;
/// Bytes of all files of a commit together: they are held in memory.
const MAX_COMMIT_BYTES: usize = 128 << 20;
/// Bytes of a commit message.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Hooks that git would run around a commit.
const HOOKS: [&str; 5] =
    ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"];

/// What is to be committed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRequest {
    pub message: String,
    /// The branch; the current one where nothing is said.
    pub branch: Option<String>,
    /// Files and directories; everything that is not committed where there is none.
    pub paths: Vec<RelativePath>,
}

/// One file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    pub path: RelativePath,
    /// What the branch has now.
    pub before: Option<FileVersion>,
    /// What it would have; none when the file is removed.
    pub content: Option<Vec<u8>>,
    /// Whether it can be executed.
    pub executable: bool,
    /// SHA-256 of the file on the disk.
    pub sha256: Option<String>,
}

/// A commit that was not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPlan {
    pub branch: String,
    /// Whether the branch does not exist yet.
    pub creates_branch: bool,
    /// Whether it is the branch of `HEAD`.
    pub is_current: bool,
    /// The commit that it is made on; none for the first one.
    pub parent: Option<String>,
    /// The hash of all files after it.
    pub tree: String,
    pub message: String,
    /// As `Name <address>`.
    pub author: String,
    pub files: Vec<PlannedFile>,
    /// Changed files that are not part of it, with the reason.
    pub left_out: Vec<(RelativePath, &'static str)>,
    /// What git would do around a commit and this does not, one sentence each.
    pub notes: Vec<String>,
}

impl ProjectRepo {
    /// The branch that a commit goes to; `HEAD` where it is detached.
    ///
    /// # Errors
    /// `EGIT` when `HEAD` cannot be read; `EVALIDATION` for a name that no branch can have.
    pub fn target_branch(&self, wanted: Option<&str>) -> Result<String, ToolError> {
        match wanted {
            Some(name) => self.check_own_branch(name).map(|()| name.to_owned()),
            None => Ok(self.head()?.branch.unwrap_or_else(|| "HEAD".to_owned())),
        }
    }

    /// The changed files that a commit of these paths would look at, without those that the caller may not see. More than a
    /// commit may have are cut off, and refused by [`ProjectRepo::plan`].
    ///
    /// # Errors
    /// `EGIT` when the repository cannot be read.
    pub fn changed_files(
        &self,
        paths: &[RelativePath],
        files: &dyn WorkFiles,
    ) -> Result<Vec<RelativePath>, ToolError> {
        let scan = self.status(paths, files)?;
        Ok(changed(&scan, paths).into_iter().take(MAX_COMMIT_FILES + 1).collect())
    }

    /// Finds out what a commit would contain. Nothing is written.
    ///
    /// # Errors
    /// `ESTATE`-like conditions of git are `ECONFLICT`; `ENOTFOUND` for a path that does not exist; `EVALIDATION` when there
    /// is nothing to commit.
    pub fn plan(&self, request: &CommitRequest, files: &dyn WorkFiles) -> Result<CommitPlan, ToolError> {
        let message = checked_message(&request.message)?;
        self.refuse_operation()?;
        let place = self.commit_place(request.branch.as_deref())?;
        let author = self.author()?;
        let scan = self.status(&request.paths, files)?;
        refuse_unfinished(&scan)?;
        let parent_tree = place.parent.map(|id| self.tree_of(id)).transpose()?;
        let mut plan = CommitPlan {
            branch: place.branch,
            creates_branch: place.tip.is_none(),
            is_current: place.is_current,
            parent: place.parent.map(|id| id.to_string()),
            tree: String::new(),
            message,
            author,
            files: Vec::new(),
            left_out: Vec::new(),
            notes: self.notes(),
        };
        let links: BTreeSet<&RelativePath> = scan
            .staged
            .iter()
            .chain(&scan.unstaged)
            .filter(|delta| delta.kind != DeltaKind::File)
            .map(|delta| &delta.path)
            .collect();
        if request.paths.is_empty() {
            let directories: BTreeSet<RelativePath> = scan.untracked.iter().filter_map(generated).collect();
            plan.left_out.extend(
                directories
                    .into_iter()
                    .map(|path| (path, "packages and caches are not committed unless `paths` names them")),
            );
        }
        let mut bytes = 0_usize;
        for path in changed(&scan, &request.paths) {
            if links.contains(&path) {
                plan.left_out.push((path, "links and submodules are committed with git itself"));
                continue;
            }
            let Some(file) = self.planned(path, parent_tree, files, &mut plan.left_out)? else { continue };
            bytes += file.content.as_ref().map_or(0, Vec::len);
            plan.files.push(file);
            if plan.files.len() > MAX_COMMIT_FILES || bytes > MAX_COMMIT_BYTES {
                let message = format!(
                    "this is more than one commit may have: {MAX_COMMIT_FILES} files and {MAX_COMMIT_BYTES} bytes"
                );
                return Err(ToolError::new(Code::Validation, message)
                    .help("commit it in parts with `paths`, or name generated files in .gitignore"));
            }
        }
        if plan.files.is_empty() {
            return Err(self.nothing_to_commit(request, &plan, files));
        }
        plan.tree = self.planned_tree(place.parent, &plan.files)?.to_string();
        Ok(plan)
    }

    /// One file as the commit would have it; nothing where the branch has it so already.
    fn planned(
        &self,
        path: RelativePath,
        parent: Option<Oid>,
        files: &dyn WorkFiles,
        left_out: &mut Vec<(RelativePath, &'static str)>,
    ) -> Result<Option<PlannedFile>, ToolError> {
        let place = self.in_repository(&path);
        let before = match parent {
            Some(tree) => bounds::entry_at(&self.repo, tree, &place)?,
            None => None,
        };
        let before = before
            .map(|entry| TreeEntry { id: entry.id, mode: u32::try_from(entry.mode).unwrap_or_default() });
        if before.is_some_and(|entry| entry.is_link() || entry.is_submodule()) {
            left_out.push((path, "links and submodules are committed with git itself"));
            return Ok(None);
        }
        // A directory where the branch has a file: the file is removed.
        let before = before.filter(|entry| entry.mode != u32::from(FileMode::Tree));
        if files.size(&path)?.is_some_and(|size| size > MAX_WORK_FILE_BYTES) {
            let message = format!("`{path}` has more than {MAX_WORK_FILE_BYTES} bytes");
            return Err(ToolError::new(Code::Validation, message)
                .detail("path", path.as_str())
                .help("leave it out with `paths`, or commit it with git itself"));
        }
        let on_disk = files.read(&path)?;
        let sha256 = on_disk.as_deref().map(canonical::sha256_hex);
        let Some(on_disk) = on_disk else {
            return Ok(before.map(|entry| PlannedFile {
                path,
                before: Some(entry.version()),
                content: None,
                executable: false,
                sha256: None,
            }));
        };
        self.refuse_filters(&path)?;
        let content = self.line_endings(&path).stored(on_disk);
        let executable = self.is_executable(&place, before);
        let id = Oid::hash_object(ObjectType::Blob, &content).reading("hash a file")?;
        if before.is_some_and(|entry| entry.id == id && entry.is_executable() == executable) {
            return Ok(None);
        }
        Ok(Some(PlannedFile {
            path,
            before: before.map(TreeEntry::version),
            content: Some(content),
            executable,
            sha256,
        }))
    }

    /// Whether a file of the disk can be executed, where that counts.
    fn is_executable(&self, place: &Path, before: Option<TreeEntry>) -> bool {
        let modes_count =
            self.repo.config().is_ok_and(|config| config.get_bool("core.filemode").unwrap_or(true));
        if !modes_count {
            return before.is_some_and(TreeEntry::is_executable);
        }
        self.top().join(place).symlink_metadata().is_ok_and(|found| found.mode() & 0o100 != 0)
    }

    /// The hash of all files after the commit. The objects are made in memory.
    fn planned_tree(&self, parent: Option<Oid>, files: &[PlannedFile]) -> Result<Oid, ToolError> {
        const DOING: &str = "find out what the commit would contain";
        let scratch = self.checked.open().reading(DOING)?;
        let odb = scratch.odb().reading(DOING)?;
        let _in_memory = odb.add_new_mempack_backend(1_000).reading(DOING)?;
        self.write_tree(&scratch, parent, files)
    }

    /// Writes the blobs and trees of a commit.
    pub(super) fn write_tree(
        &self,
        repo: &Repository,
        parent: Option<Oid>,
        files: &[PlannedFile],
    ) -> Result<Oid, ToolError> {
        let base = match parent {
            Some(id) => repo.find_commit(id).and_then(|commit| commit.tree()).reading("read a commit")?,
            None => rebase::empty_tree(repo)?,
        };
        let mut edits: Vec<ToolEdit> = Vec::with_capacity(files.len());
        for file in files {
            let entry = match &file.content {
                Some(content) => Some(Entry {
                    id: repo.blob(content).reading("write an object")?,
                    mode: i32::from(if file.executable { FileMode::BlobExecutable } else { FileMode::Blob }),
                }),
                None => None,
            };
            edits.push((self.in_repository(&file.path), entry));
        }
        Ok(rebase::edit(repo, &base, &edits)?.id())
    }

    pub(super) fn tree_of(&self, commit: Oid) -> Result<Oid, ToolError> {
        self.repo.find_commit(commit).map(|commit| commit.tree_id()).reading("read a commit")
    }

    fn refuse_operation(&self) -> Result<(), ToolError> {
        let Some(operation) = self.operation() else { return Ok(()) };
        let message = format!("git is in the middle of a {operation} in this repository");
        Err(ToolError::new(Code::Conflict, message)
            .detail("operation", operation)
            .help("a person finishes or aborts it with git first; nothing was committed"))
    }

    /// Refuses a name that git reads as another branch, or as a branch of a remote repository: whoever asks for that one would
    /// be shown this one.
    fn check_own_branch(&self, name: &str) -> Result<(), ToolError> {
        check_branch(name)?;
        let first = name.split_once('/').map(|(first, _)| first.to_ascii_lowercase());
        let remotes = self.repo.remotes().reading("list the remote repositories")?;
        let is_taken = |first: &str| {
            matches!(first, "heads" | "tags" | "remotes" | "refs")
                || remotes.iter().flatten().flatten().any(|remote| remote.eq_ignore_ascii_case(first))
        };
        // On some file systems both would be the same file.
        let mut has_other_case = false;
        for branch in self.repo.branches(Some(BranchType::Local)).reading("list the branches")? {
            let (branch, _) = branch.reading("list the branches")?;
            let known = branch.name_bytes().reading("list the branches")?;
            has_other_case |= known != name.as_bytes() && known.eq_ignore_ascii_case(name.as_bytes());
        }
        if !first.as_deref().is_some_and(is_taken) && !has_other_case {
            return Ok(());
        }
        Err(ToolError::new(Code::Validation, format!("`{name}` can be taken for another branch"))
            .detail("field", "branch")
            .help("use a name of its own, such as `agent/fix-parser`"))
    }

    /// Where a commit goes.
    fn commit_place(&self, wanted: Option<&str>) -> Result<CommitPlace, ToolError> {
        let (head, head_commit) = (self.head()?, self.head_commit()?);
        let Some(branch) = wanted.map(str::to_owned).or_else(|| head.branch.clone()) else {
            return Err(ToolError::new(Code::Conflict, "HEAD is detached, so there is no current branch")
                .help("name a branch with `branch`; it is created from HEAD when it does not exist"));
        };
        match wanted {
            Some(_) => self.check_own_branch(&branch)?,
            None => check_branch(&branch)?,
        }
        let tip = self.tip(&format!("refs/heads/{branch}"))?;
        let is_current = head.branch.as_deref() == Some(branch.as_str());
        if is_current {
            return Ok(CommitPlace { branch, tip, parent: head_commit, is_current });
        }
        let Some(head_commit) = head_commit else {
            return Err(ToolError::new(Code::Conflict, "this repository has no commit yet")
                .help("make the first commit on the current branch: leave `branch` out"));
        };
        let Some(tip) = tip else {
            return Ok(CommitPlace { branch, tip: None, parent: Some(head_commit), is_current });
        };
        let found = self.repo.find_branch(&branch, BranchType::Local).reading("read a branch")?;
        if found.is_head() || self.is_checked_out(&branch) {
            return Err(ToolError::new(
                Code::Conflict,
                format!("`{branch}` is checked out in another work tree"),
            )
            .help("commit in that work tree, or choose another branch"));
        }
        let descends = tip == head_commit
            || self.repo.graph_descendant_of(tip, head_commit).reading("compare branches")?;
        if !descends {
            let message = format!("the branch `{branch}` does not contain the commit of HEAD");
            return Err(ToolError::new(Code::Conflict, message).help(
                "choose a new branch, which is created from HEAD, or merge HEAD into this one with git",
            ));
        }
        Ok(CommitPlace { branch, tip: Some(tip), parent: Some(tip), is_current })
    }

    /// Whether another work tree of the repository is on a branch.
    fn is_checked_out(&self, branch: &str) -> bool {
        let wanted = format!("ref: refs/heads/{branch}");
        let mut heads: Vec<PathBuf> = vec![self.repo.commondir().join("HEAD")];
        let others = std::fs::read_dir(self.repo.commondir().join("worktrees"));
        heads.extend(others.into_iter().flatten().flatten().map(|entry| entry.path().join("HEAD")));
        heads.iter().any(|head| {
            tgp_fs::read_plain(head, 4096).is_some_and(|text| String::from_utf8_lossy(&text).trim() == wanted)
        })
    }

    /// Who commits, as the user's git configuration says.
    fn author(&self) -> Result<String, ToolError> {
        let signature = self.signature()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(format!("{} <{}>", text(signature.name_bytes()), text(signature.email_bytes())))
    }

    pub(super) fn signature(&self) -> Result<git2::Signature<'static>, ToolError> {
        self.repo.signature().map_err(|_| {
            let message = "git does not know who commits: `user.name` or `user.email` is not set";
            ToolError::new(Code::Config, message).help(
                "a person runs `git config --global user.name \"NAME\"` and `git config --global user.email ADDRESS`",
            )
        })
    }

    /// What git would do around a commit and this does not.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let config = self.repo.config().ok();
        let is_set =
            |name: &str| config.as_ref().is_some_and(|config| config.get_bool(name).unwrap_or(false));
        if is_set("commit.gpgsign") {
            notes.push("the commit is not signed, although commit.gpgSign is set".to_owned());
        }
        let other = config.as_ref().and_then(|config| config.get_path("core.hookspath").ok());
        let hooks = other.map_or_else(|| self.repo.commondir().join("hooks"), |path| self.top().join(path));
        let is_program = |name: &&str| {
            let found = hooks.join(name).metadata();
            found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let found: Vec<&str> = HOOKS.into_iter().filter(is_program).collect();
        if !found.is_empty() {
            notes.push(format!("hooks do not run: {}", found.join(", ")));
        }
        notes
    }

    fn nothing_to_commit(
        &self,
        request: &CommitRequest,
        plan: &CommitPlan,
        files: &dyn WorkFiles,
    ) -> ToolError {
        for path in &request.paths {
            let is_there = files.size(path).is_ok_and(|size| size.is_some());
            if is_there && self.is_ignored(path).unwrap_or(false) {
                return ToolError::new(Code::Validation, format!("`{path}` is ignored by git"))
                    .detail("path", path.as_str())
                    .help("ignored files are not committed; a person can add it with `git add -f`");
            }
            // Only by what the caller may see: a hidden file is as if it were not there.
            let is_below = |entry: git2::IndexEntry| {
                self.in_project(&entry.path).is_some_and(|known| known.is_inside(path) && files.shows(&known))
            };
            let is_known = self.index().is_ok_and(|index| index.iter().any(is_below));
            let is_directory = self.top().join(self.in_repository(path)).is_dir() && files.shows(path);
            if !is_there && !is_directory && !is_known {
                return ToolError::new(Code::NotFound, format!("`{path}` does not exist"))
                    .detail("path", path.as_str())
                    .help("`git_status` lists what can be committed");
            }
        }
        let left_out: Vec<String> =
            plan.left_out.iter().take(5).map(|(path, why)| format!("`{path}`: {why}")).collect();
        let error = ToolError::new(Code::Validation, "there is nothing to commit");
        match left_out.is_empty() {
            true => error.help("`git_status` lists what can be committed"),
            false => error.help(format!("left out: {}", left_out.join("; "))),
        }
    }
}

/// Where a commit goes.
struct CommitPlace {
    branch: String,
    /// The commit of the branch now.
    tip: Option<Oid>,
    parent: Option<Oid>,
    is_current: bool,
}

/// The changed files of a scan that a commit of these paths is about, each once, in the order of their paths. Who names
/// no paths does not mean what package managers and runners have put there.
fn changed(scan: &StatusScan, paths: &[RelativePath]) -> BTreeSet<RelativePath> {
    let deltas = scan.staged.iter().chain(&scan.unstaged).map(|delta| delta.path.clone());
    let new = scan.untracked.iter().filter(|path| !paths.is_empty() || generated(path).is_none());
    deltas.chain(new.cloned()).collect()
}

/// The directory of installed packages or of a cache that a path is in.
fn generated(path: &RelativePath) -> Option<RelativePath> {
    let mut directory = RelativePath::root();
    for part in path.parent().parts() {
        directory = directory.join(part).ok()?;
        if GENERATED.contains(&part) {
            return Some(directory);
        }
    }
    None
}

fn refuse_unfinished(scan: &StatusScan) -> Result<(), ToolError> {
    if let Some(path) = scan.conflicted.first() {
        return Err(ToolError::new(
            Code::Conflict,
            format!("`{path}` has a merge conflict that is not resolved"),
        )
        .detail("path", path.as_str())
        .help("a person resolves it with git first; nothing was committed"));
    }
    if !scan.complete {
        return Err(ToolError::new(Code::Git, "not every file of the repository could be compared in time")
            .help("name the files in `paths`; nothing was committed"));
    }
    Ok(())
}

fn checked_message(message: &str) -> Result<String, ToolError> {
    let text = message.trim();
    let wrong = if text.is_empty() {
        "the message is empty".to_owned()
    } else if text.contains('\0') {
        "the message has a NUL character".to_owned()
    } else if text.len() > MAX_MESSAGE_BYTES {
        format!("the message has more than {MAX_MESSAGE_BYTES} bytes")
    } else {
        return Ok(format!("{}\n", text.replace("\r\n", "\n")));
    };
    Err(ToolError::new(Code::Validation, wrong)
        .detail("field", "message")
        .help("say in the first line what the commit changes"))
}
