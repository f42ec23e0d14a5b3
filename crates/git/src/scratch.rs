//! The scratch repository of one conversation with the remote.
//!
//! It is bare, made for one call, and borrows only the objects of the real repository. So neither the configuration,
//! the hooks nor the references of that take part, whatever they say, and a killed git leaves its lock files where
//! they do no harm.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use git2::Oid;
use tgp_contract::ToolError;

use crate::failure::At;
use crate::repair::SCRATCH_PREFIX;

/// The file in a folder of objects that names another one to look in.
pub(crate) const BORROWED: &str = "info/alternates";
const SCRATCH_CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\thooksPath = /dev/null\n\
    \tbigFileThreshold = 8m\n\tdeltaBaseCacheLimit = 32m\n[credential]\n\thelper =\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
    [transfer]\n\tcredentialsInUrl = die\n[submodule]\n\trecurse = false\n\
    [pack]\n\tthreads = 2\n";

static ISSUED: AtomicU64 = AtomicU64::new(0);

/// Removed when it is dropped.
pub(crate) struct ScratchRepo {
    pub(crate) path: PathBuf,
}

impl ScratchRepo {
    /// `haves` are commits whose history need not be sent.
    pub(crate) fn set_up(state: &Path, git: &Path, haves: &[Oid]) -> Result<Self, ToolError> {
        let number = ISSUED.fetch_add(1, Ordering::Relaxed);
        let path = state.join(format!("{SCRATCH_PREFIX}{}-{number}", std::process::id()));
        let scratch = Self { path };
        let path = &scratch.path;
        let _ = fs::remove_dir_all(path);
        let write = |name: &str, text: &str| fs::write(path.join(name), text).at("cannot write", path);
        fs::create_dir_all(path.join("refs/have")).at("cannot make", path)?;
        fs::create_dir_all(path.join("home")).at("cannot make", path)?;
        write("HEAD", "ref: refs/heads/none\n")?;
        write("config", SCRATCH_CONFIG)?;
        for (number, have) in haves.iter().enumerate() {
            write(&format!("refs/have/{number}"), &format!("{have}\n"))?;
        }
        if let Some(shallow) = shallow(git) {
            fs::write(path.join("shallow"), shallow).at("cannot write", path)?;
        }
        Ok(scratch)
    }

    /// Its own objects, for a push that takes the anchor along.
    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// Where git finds and puts objects: in the repository, unless this one has some and borrows the others.
    pub(crate) fn object_directory(&self, git: &Path) -> PathBuf {
        let own = self.objects();
        if own.join(BORROWED).is_file() { own } else { git.join("objects") }
    }
}

impl Drop for ScratchRepo {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The commits without parents of a repository, as git lists them.
pub(crate) fn shallow(git: &Path) -> Option<Vec<u8>> {
    fs::read(git.join("shallow")).ok().filter(|text| !text.is_empty())
}
