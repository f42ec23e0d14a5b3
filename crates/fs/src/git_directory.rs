//! Where git keeps the files of a project's repository: not always in a directory named `.git`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::places::links_and_place;
use crate::plain::read_plain;

/// Directories above a project in which a repository is looked for.
const MAX_ABOVE: usize = 64;
/// Bytes of a `.git` file, or of the file that names the shared directory of a work tree.
const MAX_POINTER_BYTES: u64 = 8 << 10;

/// The repository that a project is in.
pub(crate) struct GitDirectory {
    /// The top of the work tree.
    pub(crate) top: PathBuf,
    /// The files of this work tree.
    pub(crate) own: PathBuf,
    /// The files that all work trees of the repository share. In most repositories the same directory.
    pub(crate) shared: PathBuf,
}

impl GitDirectory {
    /// None when the project is in no repository.
    pub(crate) fn of(project: &Path) -> Option<Self> {
        for directory in project.ancestors().take(MAX_ABOVE) {
            let git = directory.join(".git");
            // A link is followed, as git follows it.
            let Ok(data) = git.metadata() else { continue };
            let own = if data.is_dir() {
                git
            } else {
                // A work tree, a submodule, or a repository whose files are elsewhere: the file says where.
                let text =
                    String::from_utf8(read_plain(&git.canonicalize().ok()?, MAX_POINTER_BYTES)?).ok()?;
                directory.join(text.strip_prefix("gitdir:")?.trim())
            };
            let pointer = read_plain(&own.join("commondir"), MAX_POINTER_BYTES);
            let pointer = pointer.and_then(|text| String::from_utf8(text).ok());
            let shared = pointer.map_or_else(|| own.clone(), |text| own.join(text.trim()));
            return Some(Self { top: directory.to_owned(), own, shared });
        }
        None
    }
}

/// The directories in which git keeps the files of the repository that `project` is in, under every name by which each could
/// be replaced: as it is named, the links on its way, and where it leads. Empty without a repository.
#[must_use]
pub fn git_directories(project: &Path) -> Vec<PathBuf> {
    let Some(GitDirectory { top, own, shared }) = GitDirectory::of(project) else { return Vec::new() };
    let mut places: Vec<PathBuf> =
        [top.join(".git"), own, shared].iter().flat_map(|place| links_and_place(place)).collect();
    places.sort();
    places.dedup();
    places
}

/// The main work tree of the repository of which `directory` is the top of another one (`git worktree add`). None when it is
/// the top of no such tree, or git's own files do not confirm it in both directions.
#[must_use]
pub fn main_work_tree(directory: &Path) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    let GitDirectory { top, own, shared } = GitDirectory::of(&directory)?;
    let git = directory.join(".git");
    // In a submodule, or where the files are merely elsewhere, both are the same.
    if top != directory || !git.symlink_metadata().ok()?.is_file() || own == shared {
        return None;
    }
    // Anyone can write a file that names a repository; that the repository names the file only its owner can.
    let back = String::from_utf8(read_plain(&own.join("gitdir"), MAX_POINTER_BYTES)?).ok()?;
    if own.join(back.trim()).canonicalize().ok()? != git {
        return None;
    }
    let (shared, own) = (shared.canonicalize().ok()?, own.canonicalize().ok()?);
    // Where git itself keeps them: a directory elsewhere could name any repository.
    if own.parent() != Some(&shared.join("worktrees")) {
        return None;
    }
    shared.ends_with(".git").then(|| shared.parent().map(Path::to_owned))?
}

/// The repository that `project` is in: the top of its work tree, and the directory with the files of this work tree. None
/// where the project is in no repository.
#[must_use]
pub fn git_work_tree(project: &Path) -> Option<(PathBuf, PathBuf)> {
    GitDirectory::of(project).map(|GitDirectory { top, own, .. }| (top, own))
}

/// Knows the directories of git repositories below a directory by what is in them, as git itself does: `HEAD`, `objects` and
/// `refs`. They have any name: `meta` of `--separate-git-dir`, `tools.git`, `.bare`.
pub struct GitProbe {
    root: PathBuf,
    /// What was found, by directory. A search asks for thousands of files, so it is kept for a moment.
    known: Mutex<(Instant, HashMap<String, bool>)>,
}

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(1);
/// Answers that are kept.
const MAX_KEPT: usize = 50_000;

impl GitProbe {
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root, known: Mutex::new((Instant::now(), HashMap::new())) }
    }

    /// Whether a path, relative to the directory, is the directory of a repository or in one.
    #[must_use]
    pub fn is_inside(&self, path: &str) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0.elapsed() > KEPT || known.1.len() > MAX_KEPT {
            *known = (Instant::now(), HashMap::new());
        }
        let mut directory = path;
        loop {
            if let Some(found) = known.1.get(directory) {
                if *found {
                    return true;
                }
            } else {
                let found = is_git_directory(&self.root.join(directory));
                known.1.insert(directory.to_owned(), found);
                if found {
                    return true;
                }
            }
            match directory.rsplit_once('/') {
                Some((above, _)) => directory = above,
                None if directory.is_empty() => return false,
                None => directory = "",
            }
        }
    }
}

fn is_git_directory(directory: &Path) -> bool {
    directory.join("HEAD").symlink_metadata().is_ok()
        && directory.join("objects").is_dir()
        && directory.join("refs").is_dir()
}
