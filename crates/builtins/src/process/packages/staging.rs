//! Directories of one installation: removed when it ends, and swept up after a kernel that was killed.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tgp_contract::{Code, ToolError};
use tgp_jail::remove_tree;

/// Where trees of packages wait for their place, in the kernel's state.
pub const PACKAGE_STAGING: &str = "packages";

/// A private directory with a name of its own.
pub(super) struct Staging(PathBuf);

impl Staging {
    /// A directory for trees that are being made. It is beside the kernel's state, where no call can reach it, and on the
    /// project's file system, so that a tree is moved and not copied into the project.
    pub(super) fn for_trees(tool_root: &Path, project: &Path) -> Result<Self, ToolError> {
        let staging = Self::create(&tool_root.join(".state").join(PACKAGE_STAGING))?;
        let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
        if device(&staging.0) != device(project) {
            let message = "the kernel's state and the project are on different file systems";
            return Err(ToolError::new(Code::Capability, message).help(
                "packages are put in place in one step, which needs one file system; install them yourself",
            ));
        }
        Ok(staging)
    }

    /// A directory for what is downloaded.
    pub(super) fn create(parent: &Path) -> Result<Self, ToolError> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let make = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
            sweep(parent)?;
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{}-{number}", std::process::id()));
            if path.symlink_metadata().is_ok() {
                // Left by a process with our number.
                remove_tree(&path)?;
            }
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            Ok(Self(path))
        };
        make().map_err(|error: io::Error| {
            ToolError::new(
                Code::Internal,
                format!("no place for packages in `{}`: {error}", parent.display()),
            )
            .help("nothing was installed; see that the directory can be written")
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.0) {
            tracing::warn!(target: "jail", "`{}` cannot be removed: {error}", self.0.display());
        }
    }
}

/// Removes the directories of processes that are gone.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.split('-').next()?.parse::<u32>().ok());
        let is_left = process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists());
        if is_left && entry.file_type()?.is_dir() {
            // What cannot be removed now is tried again by the next installation.
            let _ = remove_tree(&entry.path());
        }
    }
    Ok(())
}
