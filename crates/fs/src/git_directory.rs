//! Where git keeps the files of a project's repository: not always in a directory named `.git`.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::git_settings::GitSettings;
use crate::places::{links_and_place, real_place};
use crate::plain::read_plain;

/// Directories above a project in which a repository is looked for.
const MAX_ABOVE: usize = 64;
/// Bytes of a file of git's that names other files: `.git`, `commondir`, `config`, `objects/info/alternates`.
const MAX_POINTER_BYTES: u64 = 1 << 20;

/// The repository that a project is in.
#[derive(Debug)]
pub(crate) struct GitDirectory {
    /// The top of the work tree; the repository itself where it is bare.
    pub(crate) top: PathBuf,
    /// The files of this work tree.
    pub(crate) own: PathBuf,
    /// The files that all work trees of the repository share. In most repositories the same directory.
    pub(crate) shared: PathBuf,
}

impl GitDirectory {
    /// None when the project is in no repository, and where a file of git's cannot be read.
    pub(crate) fn of(project: &Path) -> Option<Self> {
        Self::find(project).ok().flatten()
    }

    /// Returns the repository that a project is in, which may be above it on the same file system, as for git.
    ///
    /// # Errors
    /// With the path of a file that should name a directory and cannot be read.
    pub(crate) fn find(project: &Path) -> Result<Option<Self>, PathBuf> {
        let mut device = None;
        for directory in project.ancestors().take(MAX_ABOVE) {
            let git = directory.join(".git");
            // A link is followed, as git follows it.
            if let Ok(data) = git.metadata() {
                if !data.is_dir() {
                    return Self::named_by(directory, &git).map(Some);
                }
                if !git.join("HEAD").symlink_metadata().is_err_and(|error| is_absent(&error)) {
                    return Self::with_shared(directory, git).map(Some);
                }
            } else if git.is_symlink() {
                return Err(git);
            }
            if directory == project && is_git_directory(directory) {
                return Self::with_shared(directory, directory.to_owned()).map(Some);
            }
            let Ok(found) = directory.metadata() else { return Ok(None) };
            if *device.get_or_insert(found.dev()) != found.dev() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Returns the repository at the top of a directory, whole or not.
    ///
    /// # Errors
    /// As [`GitDirectory::find`].
    pub(crate) fn at(directory: &Path) -> Result<Option<Self>, PathBuf> {
        let git = directory.join(".git");
        match git.metadata() {
            Ok(data) if data.is_dir() => Self::with_shared(directory, git).map(Some),
            Ok(_) => Self::named_by(directory, &git).map(Some),
            Err(_) if git.symlink_metadata().is_err_and(|error| is_absent(&error)) => Ok(None),
            Err(_) => Err(git),
        }
    }

    /// A work tree, a submodule, or a repository whose files are elsewhere: the file `git` says where.
    fn named_by(directory: &Path, git: &Path) -> Result<Self, PathBuf> {
        let text = read_pointer(git)?;
        let named = text.as_deref().and_then(|text| text.strip_prefix("gitdir:"));
        let own = directory.join(named.ok_or_else(|| git.to_owned())?.trim());
        Self::with_shared(directory, own)
    }

    fn with_shared(directory: &Path, own: PathBuf) -> Result<Self, PathBuf> {
        let pointer = read_pointer(&own.join("commondir"))?;
        let shared = pointer.map_or_else(|| own.clone(), |text| own.join(text.trim()));
        Ok(Self { top: directory.to_owned(), own, shared })
    }
}

/// Returns the text of a file of git's, through links, as git reads it; none where there is none.
///
/// # Errors
/// With the path of a file that is too large or cannot be read.
pub(crate) fn read_pointer(path: &Path) -> Result<Option<String>, PathBuf> {
    let place = real_place(path);
    if place.symlink_metadata().is_err_and(|error| is_absent(&error)) {
        return Ok(None);
    }
    let bytes = read_plain(&place, MAX_POINTER_BYTES).ok_or_else(|| path.to_owned())?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

pub(crate) fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
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
    let back = read_pointer(&own.join("gitdir")).ok()??;
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

/// Returns the project whose repository holds the files of the one that `project` is in, because it is another work tree of
/// it or a submodule. None where git's own files do not confirm it in both directions.
#[must_use]
pub fn repository_owner(project: &Path) -> Option<PathBuf> {
    let GitDirectory { top, own, .. } = GitDirectory::of(&project.canonicalize().ok()?)?;
    if let Some(main) = main_work_tree(&top) {
        return Some(main);
    }
    let own = own.canonicalize().ok()?;
    let git = own.ancestors().skip(1).find(|place| place.ends_with(".git"))?;
    let is_module = own.strip_prefix(git).is_ok_and(|place| place.starts_with("modules"));
    let settings = read_pointer(&own.join("config")).ok()??;
    let named = GitSettings::parse(&settings).ok()?.value("core", "worktree")?.to_owned();
    let is_named = own.join(named).canonicalize().is_ok_and(|place| place == top);
    (is_module && is_named).then(|| git.parent().map(Path::to_owned))?
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
