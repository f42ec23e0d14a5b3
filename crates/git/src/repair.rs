//! Making a repository where there is none, and repairing what killed processes and power failures left
//! behind.
//!
//! Git's own lock files (`index.lock` and others) have no owner that could be asked. One is removed when the lock
//! file of ours says that our writer was killed while it existed; or when no process here has it open or is a git at
//! work in the repository, and it is old enough that a git in another container would be done.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use git2::{Oid, Repository, RepositoryInitOptions};
use tgp_contract::{Code, ToolError};
use tgp_fs::check_own_repository;

use crate::bounds::{self, Stop};
use crate::branch_names::EXCLUDES;
use crate::failure::{At, Doing};
use crate::local::{Context, LockedRepo, open_repository, write_settings};
use crate::lock::Lock;
use crate::worktree::TEMPORARY_PREFIX;

/// A git that cannot be seen from here has done its work after this time.
const FOREIGN_LOCK_AGE: Duration = Duration::from_secs(10);
/// How long to wait for another user's live git process.
const FOREIGN_PATIENCE: Duration = Duration::from_secs(15);
const FOREIGN_LOOK: Duration = Duration::from_millis(50);
/// Disks keep times in steps; a lock made right after ours may seem a step older.
const CLOCK_STEP: Duration = Duration::from_secs(2);
/// Half-received packs of a git that is not ours are left alone for this long.
const FOREIGN_GARBAGE_AGE: Duration = Duration::from_secs(3600);
/// References lie a few folders deep; a deeper tree is not ours.
const MAX_REF_DEPTH: usize = 8;
/// The log of a branch is searched this far back for a version that can be read.
const MAX_LOG_ENTRIES: usize = 1000;
/// Its time tells when the objects were last looked through for garbage.
const SWEPT: &str = "git-swept";
const NEW_PREFIX: &str = "git-new-";
const BROKEN_PREFIX: &str = "git-broken-";
pub(crate) const SCRATCH_PREFIX: &str = "git-bench-";

/// Makes the folder and the repository where they are missing, and sees that what is there can be used.
pub(crate) fn prepare(context: &Context) -> Result<LockedRepo, ToolError> {
    let state = context.state();
    fs::create_dir_all(&state).at("cannot make", &state)?;
    if fs::symlink_metadata(&state).is_ok_and(|data| data.is_symlink()) {
        let message = format!("`{}` is a link, and not the directory of the kernel's state", state.display());
        return Err(ToolError::new(Code::Security, message).help(
            "find out where it comes from and rename it; the state is in the directory that it leads to",
        ));
    }
    write_settings(&state)?;
    // Before anything is written through a link that came with the project.
    check_own_repository(&context.root)?;
    let lock = Lock::take(&context.writer_lock(), context.patience)?;
    let mut notes = Vec::new();
    initialise(context, &mut notes)?;
    let mut local = LockedRepo::open_with(context, lock)?;
    local.notes = notes;
    if local.lock.abandoned.is_some() {
        after_a_kill(&mut local)?;
    }
    remove_dead_locks(&mut local)?;
    sweep(context);
    if local.lock.abandoned.is_some() || !was_swept(context) {
        sweep_objects(context);
    }
    check_index(&mut local)?;
    check_branch(&mut local)?;
    local.finish_move()?;
    Ok(local)
}

fn initialise(context: &Context, notes: &mut Vec<String>) -> Result<(), ToolError> {
    let git = context.git();
    match fs::symlink_metadata(&git) {
        Ok(data) if !data.is_dir() => {
            let message = format!("`{}` is not a folder", git.display());
            return Err(
                ToolError::new(Code::Git, message).help("the tool repository has to be one of its own")
            );
        }
        Ok(_) if git.join("objects").is_dir() && git.join("refs").is_dir() => {
            let head = git.join("HEAD");
            let text = fs::read_to_string(&head).unwrap_or_default();
            if !text.starts_with("ref: ") && Oid::from_str(text.trim()).is_err() {
                fs::write(&head, format!("ref: {}\n", context.local(&context.branch)))
                    .at("cannot write", &head)?;
                notes.push("HEAD could not be read and was written again".to_owned());
            }
        }
        Ok(_) => {
            // An init that was killed. It holds no objects, but it is moved aside and not removed all the same.
            let aside = unused(&context.state(), BROKEN_PREFIX);
            fs::rename(&git, &aside).at("cannot move", &git)?;
            notes.push(format!("a repository that was never finished was moved to `{}`", aside.display()));
            create(context)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => create(context)?,
        Err(error) => return Err(error).at("cannot look at", &git),
    }
    let exclude = git.join("info/exclude");
    let text = fs::read_to_string(&exclude).unwrap_or_default();
    if !EXCLUDES.lines().all(|rule| text.lines().any(|line| line == rule)) {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        fs::create_dir_all(git.join("info")).at("cannot make", &exclude)?;
        fs::write(&exclude, format!("{text}{gap}{EXCLUDES}")).at("cannot write", &exclude)?;
    }
    Ok(())
}

/// Made aside and moved into place, so that a kill leaves either nothing or a whole repository.
fn create(context: &Context) -> Result<(), ToolError> {
    let aside = unused(&context.state(), NEW_PREFIX);
    let mut options = RepositoryInitOptions::new();
    options.external_template(false).initial_head(&context.branch).mkpath(true);
    Repository::init_opts(&aside, &options).doing("cannot make the tool repository")?;
    fs::rename(aside.join(".git"), context.git()).at("cannot make", &context.git())?;
    let _ = fs::remove_dir_all(&aside);
    Ok(())
}

fn unused(folder: &Path, prefix: &str) -> PathBuf {
    let stem = format!("{prefix}{}", std::process::id());
    let numbered = (0..10_000).map(|number| folder.join(format!("{stem}-{number}")));
    numbered.into_iter().find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| folder.join(stem))
}

/// Our writer was killed: its lock files and unfinished objects have no owner.
pub(crate) fn after_a_kill(local: &mut LockedRepo) -> Result<(), ToolError> {
    let Some(since) = local.lock.abandoned else { return Ok(()) };
    let root = local.context.root.clone();
    for lock in lock_files(&local.context.git()) {
        let made = fs::metadata(&lock).and_then(|data| data.modified());
        if made.is_ok_and(|made| made + CLOCK_STEP >= since) && !is_in_use(&lock, &root) {
            remove(&lock, &mut local.notes);
        }
    }
    // Only a holder of our lock writes objects under such a name, and a process that moves the anchor, which tries
    // again.
    for path in listed(&local.context.git().join("objects")) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tmp_object_git2_")) {
            let _ = fs::remove_file(path);
        }
    }
    check_index(local)
}

/// Waits for a live git, and removes what a dead one left.
pub(crate) fn remove_dead_locks(local: &mut LockedRepo) -> Result<(), ToolError> {
    let start = Instant::now();
    let root = local.context.root.clone();
    loop {
        let mut alive = None;
        for lock in lock_files(&local.context.git()) {
            let age =
                fs::metadata(&lock).and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age < FOREIGN_LOCK_AGE) || is_in_use(&lock, &root) {
                alive = Some(lock);
            } else {
                remove(&lock, &mut local.notes);
            }
        }
        let Some(lock) = alive else { return Ok(()) };
        if start.elapsed() > FOREIGN_PATIENCE {
            let message =
                format!("another git is at work in the tool repository (`{}` exists)", lock.display());
            return Err(ToolError::new(Code::Git, message).help("let it finish, or end it, and try again"));
        }
        std::thread::sleep(FOREIGN_LOOK);
    }
}

fn remove(lock: &Path, notes: &mut Vec<String>) {
    if fs::remove_file(lock).is_ok() {
        notes.push(format!("removed `{}`, which a dead process had left", lock.display()));
    }
}

fn lock_files(git: &Path) -> Vec<PathBuf> {
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "lock");
    let mut found: Vec<PathBuf> = listed(git).into_iter().filter(is_lock).collect();
    let mut open = vec![(git.join("refs"), 0)];
    while let Some((folder, depth)) = open.pop() {
        for path in listed(&folder) {
            match fs::symlink_metadata(&path) {
                Ok(data) if data.is_dir() && depth < MAX_REF_DEPTH => open.push((path, depth + 1)),
                Ok(data) if data.is_file() && is_lock(&path) => found.push(path),
                Ok(_) | Err(_) => {}
            }
        }
    }
    found
}

/// Whether a process of this machine has the file open, or is a git that works in the repository. A process that we
/// may not inspect is not seen; age decides about its locks.
pub(crate) fn is_in_use(path: &Path, root: &Path) -> bool {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let is_process = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
    };
    listed(Path::new("/proc")).into_iter().filter(is_process).any(|process| {
        let works_here = || {
            fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim_end() == "git")
                && fs::read_link(process.join("cwd")).is_ok_and(|at| at.starts_with(&root))
        };
        listed(&process.join("fd")).iter().any(|fd| fs::read_link(fd).is_ok_and(|target| target == path))
            || works_here()
    })
}

fn begins(path: &Path, prefixes: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Temporary files of dead processes. It is a favour and never an error.
fn sweep(context: &Context) {
    let state = context.state();
    // We are the writer, so no other one is writing or making a repository.
    for path in listed(&state).iter().filter(|path| begins(path, &[TEMPORARY_PREFIX, NEW_PREFIX])) {
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    }
    // Scratch repositories belong to the holder of the lane.
    if let Ok(Some(_lane)) = Lock::try_take(&context.lane_lock()) {
        for path in listed(&state).iter().filter(|path| begins(path, &[SCRATCH_PREFIX])) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Whether the objects were looked through a short while ago. There can be many, and each start would look at all of them.
fn was_swept(context: &Context) -> bool {
    let swept = fs::symlink_metadata(context.state().join(SWEPT)).and_then(|data| data.modified());
    swept.is_ok_and(|swept| swept.elapsed().is_ok_and(|age| age < FOREIGN_GARBAGE_AGE))
}

/// Half-received objects of dead processes.
fn sweep_objects(context: &Context) {
    // First, so that a process that is killed meanwhile is not followed by others that start over.
    let _ = tgp_fs::replace_plain(&context.state().join(SWEPT), b"");
    let objects = context.git().join("objects");
    let is_old = |path: &PathBuf| {
        let made = fs::symlink_metadata(path).and_then(|data| data.modified()).ok();
        made.and_then(|made| SystemTime::now().duration_since(made).ok())
            .is_some_and(|age| age > FOREIGN_GARBAGE_AGE)
    };
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
    let folders = listed(&objects).into_iter().filter(is_folder).chain([objects.clone()]);
    for path in folders.flat_map(|folder| listed(&folder)) {
        if begins(&path, &["tmp_obj", "tmp_pack", "tmp_idx", "tmp_rev"]) && is_old(&path) {
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
}

fn check_index(local: &mut LockedRepo) -> Result<(), ToolError> {
    if local.repo.index().is_ok() {
        return Ok(());
    }
    local.rebuild_index()?;
    local.note("the index could not be read and was made again".to_owned());
    Ok(())
}

/// Sees that HEAD is on our branch, and that the branch leads to a commit that can be read.
fn check_branch(local: &mut LockedRepo) -> Result<(), ToolError> {
    let context = local.context.clone();
    let name = context.local(&context.branch);
    for cached in [context.tracking(&context.branch)] {
        if !local.reference(&cached).is_ok_and(|id| id.is_none_or(|id| is_whole(&local.repo, id))) {
            discard(&context, &cached);
            local.note("what was known of the remote could not be read; it is asked again".to_owned());
        }
    }
    let is_fine = local.reference(&name).is_ok_and(|id| id.is_none_or(|id| is_whole(&local.repo, id)));
    if !is_fine {
        restore(local, &name)?;
    }
    let target = local.repo.find_reference("HEAD").ok();
    let target = target.and_then(|head| head.symbolic_target().ok().flatten().map(str::to_owned));
    match target {
        Some(target) if target == name => Ok(()),
        Some(other) if local.reference(&other)?.is_some() => Err(elsewhere(&other, &context.branch)),
        None if local.repo.head_detached().unwrap_or(false) => {
            Err(elsewhere("a single commit", &context.branch))
        }
        _ => local.repo.set_head(&name).doing("cannot set HEAD"),
    }
}

fn elsewhere(at: &str, branch: &str) -> ToolError {
    let at = at.trim_start_matches("refs/heads/");
    ToolError::new(Code::Git, format!("the tool repository is on `{at}`, but tools are kept on `{branch}`"))
        .help(format!("run `git checkout {branch}` in the tool repository, or set `git.branch`"))
}

fn is_whole(repo: &Repository, id: Oid) -> bool {
    let Ok(commit) = repo.find_commit(id) else { return false };
    // One that is too large can be read, and is for a person to remove.
    matches!(bounds::files(repo, commit.tree_id()), Ok(_) | Err(Stop::Limit(_)))
}

/// The branch leads nowhere. Its own log, and then the remote's branch, say where it was.
fn restore(local: &mut LockedRepo, name: &str) -> Result<(), ToolError> {
    let context = local.context.clone();
    let log = local.repo.reflog(name).ok();
    let logged = log.iter().flat_map(|log| log.iter().map(|entry| entry.id_new()).collect::<Vec<_>>());
    let mut candidates: Vec<Oid> = logged.take(MAX_LOG_ENTRIES).collect();
    candidates.extend(local.tracking(&context.branch)?);
    let found = candidates.into_iter().find(|id| is_whole(&local.repo, *id));
    let aside = discard(&context, name);
    local.repo = open_repository(&context).doing("cannot open the tool repository")?;
    match found {
        Some(id) => {
            local.set(name, id, "restore the branch")?;
            local.rebuild_index()?;
            local.note(format!(
                "branch `{}` led to an object that is gone or broken; it is back at {id}, the \
                 newest version that can be read",
                context.branch
            ));
        }
        None => local.note(format!(
            "branch `{}` led to an object that is gone or broken, and no older version is on this machine; the old \
             reference is kept in `{}`",
            context.branch,
            aside.display()
        )),
    }
    Ok(())
}

/// Moves the file of a reference aside; nothing that once named an object is thrown away.
fn discard(context: &Context, name: &str) -> PathBuf {
    let aside = unused(&context.state(), BROKEN_PREFIX);
    let _ = fs::rename(context.git().join(name), &aside);
    aside
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .map_or_else(|_| Vec::new(), |rows| rows.filter_map(Result::ok).map(|row| row.path()).collect())
}
