//! Where git keeps the files of a project's repository: not always in a directory named `.git`.

use std::path::{Path, PathBuf};

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
