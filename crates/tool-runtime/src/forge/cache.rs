//! Bytecode by content hash: in memory always, on this machine's disk where a directory was given.
//!
//! Loading bytecode is as good as loading native code, so the directory must be the user's own: it is made with mode
//! 0700, one that others could write to is not used, and the cache never goes near git.
//!
//! The files are spread over folders by the first digit of their key. A folder is listed by a thread of its own, now and
//! then after a write, so that starting and running a tool costs the same however much is kept.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tgp_compiler::CompiledModule;
use tgp_contract::canonical;
use tgp_fs::open_plain;

/// Bytes kept in memory before everything is forgotten and rebuilt from disk or source.
const MAX_MEMORY_BYTES: usize = 64 * 1024 * 1024;
/// Bytes and files kept in each of the 16 folders, give or take what comes between two looks; beyond that the oldest go.
const MAX_FOLDER_BYTES: u64 = 8 * 1024 * 1024;
const MAX_FOLDER_FILES: usize = 512;
/// A file that is longer was not written here.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// A write whose key has one of these as its second digit looks whether its folder is full: one in eight.
const LOOK_AT: [&str; 2] = ["0", "8"];
/// Digits of a key, a SHA-256 hash.
const KEY_DIGITS: usize = 64;
/// Files of earlier versions, which had one folder for all, that one look removes.
const MAX_EARLIER_FILES: usize = 2_000;

/// A compiled source with its bytecode.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CachedModule {
    pub(super) compiled: CompiledModule,
    pub(super) bytecode: Vec<u8>,
}

#[derive(Debug, Default)]
struct Memory {
    modules: BTreeMap<String, Arc<CachedModule>>,
    raw: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct BytecodeCache {
    build: String,
    directory: Option<PathBuf>,
    memory: Mutex<Memory>,
}

impl BytecodeCache {
    /// `worker` is the program that makes and loads the bytecode. `directory` is made when it is missing; when it is not
    /// safe to use, the cache lives in memory only.
    #[must_use]
    pub fn new(directory: Option<PathBuf>, worker: &Path) -> Self {
        let directory = directory.filter(|directory| is_private(directory));
        Self { build: build_id(worker), directory, memory: Mutex::default() }
    }

    /// Whether a directory can be used; it is made when it is missing.
    #[must_use]
    pub fn accepts(directory: &Path) -> bool {
        is_private(directory)
    }

    /// The key of some parts. Another build of the engine gives other keys.
    pub(super) fn key(&self, parts: &[&str]) -> String {
        let mut text = self.build.clone();
        for part in parts {
            text.push('\0');
            text.push_str(&part.len().to_string());
            text.push(':');
            text.push_str(part);
        }
        canonical::sha256_hex(text.as_bytes())
    }

    pub(super) fn module(&self, key: &str) -> Option<Arc<CachedModule>> {
        if let Some(module) = self.memory().modules.get(key) {
            return Some(Arc::clone(module));
        }
        let bytes = self.read(key)?;
        let (length, rest) = bytes.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (compiled, bytecode) = rest.split_at_checked(length)?;
        let compiled = serde_json::from_slice(compiled).ok()?;
        Some(self.remember(key, CachedModule { compiled, bytecode: bytecode.to_vec() }))
    }

    pub(super) fn keep_module(&self, key: &str, module: CachedModule) -> Arc<CachedModule> {
        if let Ok(compiled) = serde_json::to_vec(&module.compiled)
            && let Ok(length) = u32::try_from(compiled.len())
        {
            self.write(key, &[&length.to_le_bytes(), &compiled, &module.bytecode]);
        }
        self.remember(key, module)
    }

    fn remember(&self, key: &str, module: CachedModule) -> Arc<CachedModule> {
        let module = Arc::new(module);
        let mut memory = self.memory();
        memory.make_room(module.bytecode.len() + module.compiled.code.len());
        memory.modules.insert(key.to_owned(), Arc::clone(&module));
        module
    }

    pub(super) fn raw(&self, key: &str) -> Option<Vec<u8>> {
        if let Some(bytes) = self.memory().raw.get(key) {
            return Some(bytes.clone());
        }
        self.read(key)
    }

    pub(super) fn keep_raw(&self, key: &str, bytes: &[u8]) {
        self.write(key, &[bytes]);
        let mut memory = self.memory();
        memory.make_room(bytes.len());
        memory.raw.insert(key.to_owned(), bytes.to_vec());
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file begins with a hash of its key and of what follows, so that a torn or rotten one is never loaded, and none in the
    /// place of another.
    fn read(&self, key: &str) -> Option<Vec<u8>> {
        let mut file = open_plain(&self.directory.as_ref()?.join(folder_of(key)?).join(key)).ok()?;
        let metadata = file.metadata().ok()?;
        if !is_own(&metadata) || metadata.len() > MAX_FILE_BYTES {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        (&mut file).take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        let (hash, content) = bytes.split_at_checked(64)?;
        if checksum(key, content).as_bytes() != hash {
            return None;
        }
        bytes.drain(..64);
        Some(bytes)
    }

    /// Failing to keep something costs time later and nothing else, so errors end here.
    fn write(&self, key: &str, parts: &[&[u8]]) {
        let (Some(directory), Some(name)) = (&self.directory, folder_of(key)) else { return };
        let folder = directory.join(name);
        if !is_private(&folder) {
            return;
        }
        let content = parts.concat();
        let temporary = folder.join(format!("tgp-{key}.{}", std::process::id()));
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(checksum(key, &content).as_bytes())?;
                file.write_all(&content)
            })
            .and_then(|()| fs::rename(&temporary, folder.join(key)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        if key.get(1..2).is_some_and(|digit| LOOK_AT.contains(&digit)) {
            let directory = directory.clone();
            // Without a thread the next write that looks will do it.
            let _ = std::thread::Builder::new().name("tgp-cache".to_owned()).spawn(move || {
                evict(&folder, MAX_FOLDER_BYTES, MAX_FOLDER_FILES);
                remove_earlier_files(&directory);
            });
        }
    }
}

impl Memory {
    fn make_room(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > MAX_MEMORY_BYTES {
            *self = Self { bytes, ..Self::default() };
        }
    }
}

/// True when the directory is there (made now if need be), is the user's own, and no other user may write to
/// it.
fn is_private(directory: &Path) -> bool {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).is_ok();
    made && fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir() && is_own(&metadata))
}

/// True when it is the user's own and no other user may write to it.
fn is_own(metadata: &fs::Metadata) -> bool {
    metadata.uid() == nix::unistd::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

fn checksum(key: &str, content: &[u8]) -> String {
    canonical::sha256_hex(&[key.as_bytes(), content].concat())
}

/// Whether a file is one of this cache: the directory is the user's choice and may hold others.
fn is_ours(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let key = name.strip_prefix("tgp-").and_then(|rest| rest.split('.').next()).unwrap_or(&name);
    key.len() == KEY_DIGITS && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The folder of a key: its first digit.
fn folder_of(key: &str) -> Option<&str> {
    key.get(..1)
}

/// Removes the oldest files of a full folder until half of it is free, so that the next looks find nothing to do.
fn evict(folder: &Path, max_bytes: u64, max_files: usize) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(is_ours)
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    let (mut bytes, mut count) = (files.iter().map(|(_, size, _)| size).sum::<u64>(), files.len());
    if bytes <= max_bytes && count <= max_files {
        return;
    }
    files.sort();
    // The newest stays whatever its size: it was just written.
    files.pop();
    for (_, size, path) in files {
        if bytes <= max_bytes / 2 && count <= max_files / 2 {
            return;
        }
        (bytes, count) = (bytes.saturating_sub(size), count.saturating_sub(1));
        let _ = fs::remove_file(path);
    }
}

/// Earlier versions kept all files in one folder, which nobody reads any more.
fn remove_earlier_files(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for file in entries.filter_map(Result::ok).filter(is_ours).take(MAX_EARLIER_FILES) {
        let _ = fs::remove_file(file.path());
    }
}

/// Names the worker's binary, which writes and loads bytecode: that of another build must never be loaded.
fn build_id(worker: &Path) -> String {
    let metadata = fs::metadata(worker).ok();
    let (size, seconds, nanoseconds, inode) =
        metadata.map_or((0, 0, 0, 0), |file| (file.size(), file.mtime(), file.mtime_nsec(), file.ino()));
    format!("tgp-{}-{size}-{seconds}-{nanoseconds}-{inode}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::{evict, remove_earlier_files};

    fn key(number: u64) -> String {
        format!("{number:064x}")
    }

    /// A folder with files of ten bytes, the last of which is the newest.
    fn folder(count: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..count {
            let path = folder.path().join(key(number));
            fs::write(&path, [0; 10]).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number);
            fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_folder_loses_its_oldest_half() {
        for (max_bytes, max_files, left) in [(1_000, 8, 6..10), (60, 100, 7..10)] {
            let folder = folder(10);
            evict(folder.path(), max_bytes, max_files);
            assert_eq!(names(folder.path()), left.map(key).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_folder_within_its_bounds_and_a_newest_file_beyond_them_stay() {
        let within = folder(10);
        evict(within.path(), 100, 10);
        assert_eq!(names(within.path()).len(), 10);
        let beyond = folder(1);
        evict(beyond.path(), 5, 0);
        assert_eq!(names(beyond.path()), [key(0)]);
    }

    #[test]
    fn files_of_earlier_versions_go_and_others_stay() {
        let directory = folder(3);
        fs::create_dir(directory.path().join("a")).unwrap();
        fs::write(directory.path().join("a/kept"), "x").unwrap();
        fs::write(directory.path().join("notes.txt"), "x").unwrap();
        remove_earlier_files(directory.path());
        assert_eq!(names(directory.path()), ["a", "notes.txt"]);
        assert_eq!(names(&directory.path().join("a")), ["kept"]);
    }
}
