//! What test runs keep between each other, such as compiled packages: a directory for each runner of a project, in the
//! user's cache directory and mounted into the jail of test runs only.
//!
//! A cache belongs to a key: a hash of the command, the manifests, the lock files and the toolchain. With another key it
//! starts empty, so nothing in it was computed from other packages. It can be lost at any time.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tgp_contract::{EntryKind, RelativePath, canonical};
use tgp_jail::{CacheAccess, CacheMount};
use tgp_router::files::ProjectFiles;

use crate::project::testing::{SelectedRunner, joined};

/// Bytes of one cache. A larger one is emptied.
const MAX_BYTES: u64 = 1 << 30;

/// Projects that have caches at a time. The one that was used least recently is removed for a new one.
const MAX_PROJECTS: usize = 64;

/// A file of which the key has the hash; with a larger one a run has no cache.
const MAX_KEY_FILE_BYTES: u64 = 64 << 20;

/// The form of the key. Another one begins with empty caches.
const FORM: u32 = 1;

/// The names in the directory of a project.
const USED: &str = "used";
const KEY: &str = "key";
const DATA: &str = "data";

/// What says which packages, settings and tools a result comes from. Each is looked for in the runner's folder and in the
/// root.
const KEY_FILES: [&str; 36] = [
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "node_modules/.package-lock.json",
    "node_modules/.modules.yaml",
    "node_modules/.yarn-state.yml",
    "node_modules/jest/package.json",
    "jest.config.js",
    "jest.config.cjs",
    "jest.config.mjs",
    "jest.config.ts",
    "jest.config.json",
    "babel.config.js",
    "babel.config.cjs",
    "babel.config.json",
    ".babelrc",
    ".swcrc",
    "tsconfig.json",
    "go.mod",
    "go.sum",
    "go.work",
    "go.work.sum",
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "setup.cfg",
    "mypy.ini",
    "poetry.lock",
    "uv.lock",
    "requirements.txt",
    ".venv/pyvenv.cfg",
];

/// Programs whose version is part of the key.
const PROGRAMS: [&str; 3] = ["go", "node", "python3"];

/// A cache in use. Other runs may use it at the same time, and none empties it.
pub(super) struct OpenCache {
    folder: PathBuf,
    lock: File,
}

/// The hash of what a result of this runner rests on, its own sources aside; `None` where that cannot be read.
pub(super) fn key(
    selected: &SelectedRunner,
    files: &ProjectFiles,
    environment: &[(String, String)],
) -> Option<String> {
    let runner = &selected.runner;
    let folders = if runner.folder().is_empty() { vec![""] } else { vec!["", runner.folder()] };
    let mut hashes = serde_json::Map::new();
    for folder in folders {
        for name in KEY_FILES {
            let path = RelativePath::new(&joined(folder, name)).ok()?;
            let Some(entry) = files.entry(&path).ok()? else { continue };
            if entry.kind != EntryKind::File {
                continue;
            }
            if entry.size > MAX_KEY_FILE_BYTES {
                return None;
            }
            hashes.insert(path.to_string(), canonical::sha256_hex(&files.read(&path).ok()?).into());
        }
    }
    let search = environment.iter().find(|(name, _)| name == "PATH").map_or("", |(_, value)| value.as_str());
    let programs: Vec<Value> = PROGRAMS.iter().map(|name| stamp(name, search)).collect();
    // A run of some tests uses what the run of all has left.
    let command = runner.command(None);
    canonical::hash(&json!({ "form": FORM, "command": command, "files": hashes, "programs": programs })).ok()
}

/// What tells one version of a program from another, without running it.
fn stamp(name: &str, search: &str) -> Value {
    let found = search.split(':').filter(|folder| folder.starts_with('/')).find_map(|folder| {
        let path = Path::new(folder).join(name).canonicalize().ok()?;
        let metadata = path.metadata().ok().filter(fs::Metadata::is_file)?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some((path, metadata.len(), modified.as_nanos()))
    });
    found.map_or(Value::Null, |(path, length, modified)| {
        json!([path.to_string_lossy(), length.to_string(), modified.to_string()])
    })
}

impl OpenCache {
    /// Opens the cache of a runner, and empties it first if it belongs to another key or is too large. `None` when another
    /// run uses it with another key, or when it cannot be made: then the run computes everything itself.
    pub(super) fn open(caches: &Path, project: &Path, selected: &SelectedRunner, key: &str) -> Option<Self> {
        let opened = Self::try_open(caches, project, selected, key);
        match opened {
            Ok(cache) => cache,
            Err(error) => {
                tracing::warn!(target: "jail", "the cache of test runs cannot be used: {error}");
                None
            }
        }
    }

    fn try_open(
        caches: &Path,
        project: &Path,
        selected: &SelectedRunner,
        key: &str,
    ) -> io::Result<Option<Self>> {
        let own = caches.join(short_hash(&project.to_string_lossy()));
        if !own.exists() {
            make_room(caches);
        }
        make_private(&own)?;
        fs::write(own.join(USED), b"")?;
        let runner = &selected.runner;
        let folder = own.join(short_hash(&format!("{:?} {}", runner.kind, runner.folder())));
        let lock =
            File::options().create(true).truncate(false).write(true).open(folder.with_extension("lock"))?;
        if locked(lock.try_lock())? {
            let is_current = fs::read_to_string(folder.join(KEY)).is_ok_and(|found| found == key);
            if !is_current || tgp_jail::exceeds(&folder.join(DATA), MAX_BYTES) {
                if folder.exists() {
                    tgp_jail::remove_tree(&folder)?;
                }
                make_private(&folder.join(DATA))?;
                // Last, so that what was not made completely belongs to no key.
                fs::write(folder.join(KEY), key)?;
            }
            lock.unlock()?;
        }
        if !locked(lock.try_lock_shared())? {
            return Ok(None);
        }
        let is_current = fs::read_to_string(folder.join(KEY)).is_ok_and(|found| found == key);
        Ok((is_current && folder.join(DATA).is_dir()).then_some(Self { folder, lock }))
    }

    pub(super) fn mount(&self, access: CacheAccess) -> CacheMount {
        CacheMount { source: self.folder.join(DATA), access }
    }

    /// Ends the use, and empties a cache that has grown too large.
    pub(super) fn close(self) {
        if !tgp_jail::exceeds(&self.folder.join(DATA), MAX_BYTES) {
            return;
        }
        let emptied = self.lock.unlock().and_then(|()| {
            // Another run that uses it empties it, or the next.
            if locked(self.lock.try_lock())? { tgp_jail::remove_tree(&self.folder) } else { Ok(()) }
        });
        if let Err(error) = emptied {
            tracing::warn!(target: "jail", "the cache of test runs cannot be emptied: {error}");
        }
    }
}

fn locked(outcome: Result<(), TryLockError>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn short_hash(text: &str) -> String {
    canonical::sha256_hex(text.as_bytes()).chars().take(16).collect()
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Removes the caches of the project that was used least recently, if there are too many. One that is in use stays.
fn make_room(caches: &Path) {
    let Ok(entries) = fs::read_dir(caches) else { return };
    let used = |folder: &Path| {
        folder
            .join(USED)
            .metadata()
            .and_then(|metadata| metadata.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut projects: Vec<(SystemTime, PathBuf)> =
        entries.flatten().map(|entry| entry.path()).map(|folder| (used(&folder), folder)).collect();
    if projects.len() < MAX_PROJECTS {
        return;
    }
    projects.sort();
    for (_, folder) in projects {
        if is_unused(&folder) && tgp_jail::remove_tree(&folder).is_ok() {
            return;
        }
    }
}

fn is_unused(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let mut locks = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "lock"));
    locks.all(|path| File::open(path).is_ok_and(|file| file.try_lock().is_ok()))
}
