//! What several modules need: a root with something beside it, short helpers for paths, and access to the real
//! disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tgp_contract::{Change, Code, FileSystem, FsError, RelativePath};
use tgp_fs::DiskFs;

/// A jail at `root`, and a directory `outside` beside it with one file that must never change.
pub struct World {
    temporary: TempDir,
    pub fs: DiskFs,
}

pub const SECRET: &str = "secret.txt";

impl World {
    pub fn new() -> Self {
        let temporary = TempDir::new().unwrap();
        fs::create_dir(temporary.path().join("root")).unwrap();
        fs::create_dir(temporary.path().join("outside")).unwrap();
        fs::write(temporary.path().join("outside").join(SECRET), "secret").unwrap();
        let fs = DiskFs::open(&temporary.path().join("root")).unwrap();
        Self { temporary, fs }
    }

    pub fn root(&self) -> PathBuf {
        self.temporary.path().join("root")
    }

    pub fn outside(&self) -> PathBuf {
        self.temporary.path().join("outside")
    }

    /// The secret is as it was and alone, and nothing new is beside the root.
    pub fn assert_outside_untouched(&self) {
        let beside: Vec<String> = names(self.temporary.path());
        assert_eq!(beside, ["outside", "root"]);
        assert_eq!(names(&self.outside()), [SECRET]);
        assert_eq!(fs::read_to_string(self.outside().join(SECRET)).unwrap(), "secret");
    }

    /// What is really on disk below the root, temporary files included.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, Node> {
        snapshot(&self.root())
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Node {
    pub inode: u64,
    pub mode: u32,
    pub content: Option<Vec<u8>>,
}

pub fn snapshot(root: &Path) -> BTreeMap<PathBuf, Node> {
    let mut nodes = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for row in fs::read_dir(directory).unwrap() {
            let path = row.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = metadata.is_file().then(|| fs::read(&path).unwrap());
            if metadata.is_dir() {
                open.push(path.clone());
            }
            let key = path.strip_prefix(root).unwrap().to_owned();
            nodes.insert(key, Node { inode: metadata.ino(), mode: metadata.permissions().mode(), content });
        }
    }
    nodes
}

pub fn names(directory: &Path) -> Vec<String> {
    let rows = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        rows.map(|row| row.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn leftovers(root: &Path) -> Vec<PathBuf> {
    let is_temporary = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".tgp-tmp-");
    snapshot(root).into_keys().filter(is_temporary).collect()
}

pub fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

pub fn write(text: &str, content: impl AsRef<[u8]>) -> Change {
    Change::Write { path: path(text), content: content.as_ref().into() }
}

pub fn remove(text: &str) -> Change {
    Change::Remove { path: path(text) }
}

/// The paths of a listing of everything.
pub fn listed(fs: &dyn FileSystem) -> Vec<String> {
    fs.list(&RelativePath::root()).unwrap().into_iter().map(|entry| entry.path.to_string()).collect()
}

#[track_caller]
pub fn assert_security<T: std::fmt::Debug>(result: Result<T, FsError>) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::Security, "{error}");
}

/// Runs `body` in its own process, because it changes what belongs to the whole process.
pub fn in_child(test: &str, body: impl FnOnce()) {
    if std::env::var("TGP_VFS_CHILD").as_deref() == Ok(test) {
        return body();
    }
    let output = child(test).output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// This test binary again, for one test of it.
pub fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env("TGP_VFS_CHILD", test).stdin(Stdio::null());
    command
}
