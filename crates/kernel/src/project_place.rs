//! Where a project is: from one of its directories, and from another work tree of its repository.

use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use tgp_contract::{Code, ToolError, canonical};
use tgp_fs::{KERNEL_DIRECTORY, main_work_tree};

use crate::boot::BootContext;
use crate::config::{self, Config};
use crate::state_directory::StateDirectory;

/// The most directories that are looked at.
const MAX_ABOVE: usize = 64;

/// The state of other work trees, below the state of the main one.
const WORK_TREES: &str = "work-trees";

/// The project that `start` is in: the nearest directory at or above it with a tool repository or a configuration, or a work
/// tree of a repository that has one. Only directories and files of the same owner on the same file system count, and none
/// above `home`: a user who can write to a directory above must not choose the configuration.
#[must_use]
pub fn find_project(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let start = start.canonicalize().ok()?;
    let home = home.and_then(|home| home.canonicalize().ok());
    let own = start.metadata().ok()?;
    for directory in start.ancestors().take(MAX_ABOVE) {
        let belongs = directory.metadata().is_ok_and(|found| is_alike(&own, &found));
        if !belongs {
            return None;
        }
        if is_project(directory, &own) {
            return Some(directory.to_owned());
        }
        if home.as_deref() == Some(directory) {
            return None;
        }
    }
    None
}

fn is_alike(own: &Metadata, other: &Metadata) -> bool {
    own.uid() == other.uid() && own.dev() == other.dev()
}

fn is_project(directory: &Path, own: &Metadata) -> bool {
    let is_own = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.uid() == own.uid());
    let tools = directory.join(KERNEL_DIRECTORY);
    let has_tools = tools.is_dir() && is_own(&tools);
    let has_config = || {
        config::names().any(|name| {
            let file = directory.join(name);
            file.is_file() && is_own(&file)
        })
    };
    has_tools || has_config() || main_project(directory, own).is_some()
}

/// The main work tree, if it is a project of the same owner.
fn main_project(directory: &Path, own: &Metadata) -> Option<PathBuf> {
    let main = main_work_tree(directory)?;
    let tools = main.join(KERNEL_DIRECTORY).symlink_metadata().ok()?;
    (tools.is_dir() && tools.uid() == own.uid()).then_some(main)
}

/// The project whose tools and records a directory uses, because it is another work tree of the same repository and has no
/// tools of its own.
#[must_use]
pub fn shared_project(directory: &Path) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    if directory.join(KERNEL_DIRECTORY).exists() {
        return None;
    }
    main_project(&directory, &directory.metadata().ok()?)
}

/// A work tree without a tool repository of its own uses the one of the main tree, with its audit, sessions and rules.
pub(crate) fn use_main_tree(config: &mut Config, project: &Path) {
    if config.root_dir != Config::default().root_dir {
        return;
    }
    if let Some(main) = shared_project(project)
        && let Some(root) = main.join(KERNEL_DIRECTORY).to_str()
    {
        root.clone_into(&mut config.root_dir);
        config.main_tree = Some(main);
    }
}

/// Where it is kept what the tests have shown.
///
/// # Errors
/// When its directory cannot be made.
pub(crate) fn tdd_store(ground: &BootContext) -> Result<PathBuf, ToolError> {
    Ok(work_tree_state(&ground.config, &ground.project, ground.access.state())?.join("tdd.sqlite"))
}

/// Where the state is that belongs to the files of one work tree: what its tests have shown, and its code graph.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn work_tree_state(
    config: &Config,
    project: &Path,
    state: &StateDirectory,
) -> Result<PathBuf, ToolError> {
    if config.main_tree.is_none() {
        return Ok(state.path().to_owned());
    }
    let name = canonical::sha256_hex(project.as_os_str().as_encoded_bytes());
    let place = state.join(WORK_TREES).join(name.get(..16).unwrap_or(&name));
    DirBuilder::new().recursive(true).mode(0o700).create(&place).map_err(|error| {
        ToolError::new(Code::Internal, format!("cannot make `{}`: {error}", place.display()))
            .help("see that the state of the main work tree can be written")
    })?;
    Ok(place)
}
