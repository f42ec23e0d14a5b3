//! What the kernel itself reads of manifests, before cargo does: whether there are any, and whether they are plain files.

use std::path::Path;

use serde::Deserialize;
use tgp_contract::{Code, EntryKind, RelativePath, ToolError};
use tgp_fs::read_plain;
use tgp_router::files::ProjectFiles;

use super::metadata::outside_root;
use super::{LOCK, MANIFEST};
use crate::process::packages::Plan;
use crate::process::packages::managers::{kind, shown};
use crate::process::packages::tree::unusable;

/// Largest manifest that is read.
const MAX_BYTES: u64 = 4 << 20;

/// The parts of a manifest that decide where packages are installed.
#[derive(Debug, Default, Deserialize)]
struct Manifest {
    package: Option<Package>,
    workspace: Option<toml::Table>,
}

#[derive(Debug, Default, Deserialize)]
struct Package {
    workspace: Option<toml::Value>,
}

/// Refuses a directory in which cargo has nothing to install, or would read something else than a plain file.
///
/// # Errors
/// `ENOTFOUND`, `EVALIDATION`, `ESECURITY`.
pub(super) fn require(plan: &Plan, files: &ProjectFiles) -> Result<(), ToolError> {
    let directory = &plan.directory;
    let mut place = directory.clone();
    loop {
        require_plain(&place, files)?;
        if place.is_root() {
            break;
        }
        place = place.parent();
    }
    if kind(directory, MANIFEST, files).is_none() {
        let message = format!("{} has no `{MANIFEST}`", shown(directory));
        return Err(ToolError::new(Code::NotFound, message)
            .help(format!("create `{MANIFEST}` first, or name its directory with `directory`")));
    }
    let manifest = read(directory, files)?;
    if manifest.package.is_none() && !plan.packages.is_empty() {
        let message = format!("{} is a workspace without a package of its own", shown(directory));
        return Err(ToolError::new(Code::Validation, message)
            .detail("directory", directory.as_str())
            .help("name the member that uses the packages with `directory`, such as `crates/shop`"));
    }
    if let Some(root) = manifest.package.and_then(|package| package.workspace) {
        let root = root.as_str().unwrap_or_default();
        if !stays_inside(directory, Path::new(root)) {
            return Err(outside_root(Path::new(root)));
        }
    }
    Ok(())
}

/// Refuses a link, a pipe or a directory in the place of a file that cargo reads: it would lead elsewhere, or be waited for.
///
/// # Errors
/// `ESECURITY`.
pub(super) fn require_plain(directory: &RelativePath, files: &ProjectFiles) -> Result<(), ToolError> {
    for name in [MANIFEST, LOCK] {
        if kind(directory, name, files).is_some_and(|kind| kind != EntryKind::File) {
            let path = Path::new(directory.as_str()).join(name);
            return Err(unusable(&path, "is not a plain file"));
        }
    }
    Ok(())
}

/// Refuses a package whose workspace is above the project: cargo in the jail does not see that, and would make a lock file that
/// cargo outside of it does not read. `root` is the workspace as the jail has found it.
///
/// # Errors
/// `ESECURITY`.
pub(super) fn require_workspace_inside(
    project: &Path,
    root: &RelativePath,
    files: &ProjectFiles,
) -> Result<(), ToolError> {
    if read(root, files)?.workspace.is_some() {
        return Ok(());
    }
    for folder in project.ancestors().skip(1) {
        let Some(text) = read_plain(&folder.join(MANIFEST), MAX_BYTES) else { continue };
        let manifest = std::str::from_utf8(&text).ok().and_then(|text| toml::from_str::<Manifest>(text).ok());
        // What cannot be read may be a workspace.
        if manifest.is_none_or(|manifest| manifest.workspace.is_some()) {
            return Err(outside_root(folder));
        }
    }
    Ok(())
}

fn read(directory: &RelativePath, files: &ProjectFiles) -> Result<Manifest, ToolError> {
    let path = directory.join(MANIFEST)?;
    if files.entry(&path)?.is_some_and(|entry| entry.size > MAX_BYTES) {
        return Err(unusable(Path::new(path.as_str()), "is larger than 4 MB"));
    }
    let text = files.read(&path)?;
    let parsed = std::str::from_utf8(&text).map_err(|_| "is not text".to_owned());
    let parsed = parsed.and_then(|text| toml::from_str(text).map_err(|error| error.message().to_owned()));
    parsed.map_err(|why| {
        ToolError::new(Code::Validation, format!("`{path}` cannot be read as a manifest of cargo: {why}"))
            .detail("path", path.as_str())
            .help("correct the manifest first; nothing was installed")
    })
}

/// Whether a path from a directory of the project leads to a place in the project.
fn stays_inside(directory: &RelativePath, path: &Path) -> bool {
    use std::path::Component;
    let mut depth = directory.parts().count();
    for part in path.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return false,
            },
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_outside_of_the_project_is_known_by_its_path() {
        let directory = RelativePath::new("crates/shop").unwrap();
        for inside in ["..", "../..", "../../rust", ".", "../../crates/../x"] {
            assert!(stays_inside(&directory, Path::new(inside)), "{inside}");
        }
        for outside in ["../../..", "/", "/tmp", "../../../p", "../../../../x"] {
            assert!(!stays_inside(&directory, Path::new(outside)), "{outside}");
        }
    }
}
