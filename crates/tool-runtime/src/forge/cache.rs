//! Bytecode by content hash: in memory always, on this machine's disk where a directory was given.
//!
//! Loading bytecode is as good as loading native code, so the directory must be the user's own: it is made with mode
//! 0700, one that others could write to is not used, and the cache never goes near git.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tgp_compiler::CompiledModule;
use tgp_contract::canonical;

/// Bytes kept in memory before everything is forgotten and rebuilt from disk or source.
const MAX_MEMORY_BYTES: usize = 64 * 1024 * 1024;
/// Bytes kept on disk, give or take a quarter; beyond that the oldest files go.
const MAX_DISK_BYTES: u64 = 128 * 1024 * 1024;

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
    /// Bytes written since the directory was last cleaned, so that a long-lived kernel keeps its bound too.
    written: AtomicU64,
}

impl BytecodeCache {
    /// `worker` is the program that makes and loads the bytecode. `directory` is made when it is missing; when it is not safe to use, the cache lives in memory only.
    #[must_use]
    pub fn new(directory: Option<PathBuf>, worker: &Path) -> Self {
        let directory = directory.filter(|directory| is_private(directory));
        if let Some(directory) = &directory {
            evict(directory);
        }
        Self { build: build_id(worker), directory, memory: Mutex::default(), written: AtomicU64::new(0) }
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

    /// A file begins with the hash of what follows, so that a torn or rotten one is never loaded.
    fn read(&self, key: &str) -> Option<Vec<u8>> {
        let bytes = fs::read(self.directory.as_ref()?.join(key)).ok()?;
        let (hash, content) = bytes.split_at_checked(64)?;
        (canonical::sha256_hex(content).as_bytes() == hash).then(|| content.to_vec())
    }

    /// Failing to keep something costs time later and nothing else, so errors end here.
    fn write(&self, key: &str, parts: &[&[u8]]) {
        let Some(directory) = &self.directory else { return };
        let content = parts.concat();
        let written = self.written.fetch_add(content.len() as u64, Ordering::Relaxed) + content.len() as u64;
        if written > MAX_DISK_BYTES / 4 {
            self.written.store(0, Ordering::Relaxed);
            evict(directory);
        }
        let temporary = directory.join(format!("tgp-{key}.{}", std::process::id()));
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(canonical::sha256_hex(&content).as_bytes())?;
                file.write_all(&content)
            })
            .and_then(|()| fs::rename(&temporary, directory.join(key)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
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
    made && fs::symlink_metadata(directory).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == nix::unistd::geteuid().as_raw() && metadata.mode() & 0o022 == 0
    })
}

fn evict(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    if total <= MAX_DISK_BYTES {
        return;
    }
    files.sort();
    for (_, size, path) in files {
        if total <= MAX_DISK_BYTES / 2 {
            return;
        }
        total = total.saturating_sub(size);
        let _ = fs::remove_file(path);
    }
}

/// Names the worker's binary, which writes and loads bytecode: that of another build must never be loaded.
fn build_id(worker: &Path) -> String {
    let metadata = fs::metadata(worker).ok();
    let (size, seconds, nanoseconds, inode) =
        metadata.map_or((0, 0, 0, 0), |file| (file.size(), file.mtime(), file.mtime_nsec(), file.ino()));
    format!("tgp-{}-{size}-{seconds}-{nanoseconds}-{inode}", env!("CARGO_PKG_VERSION"))
}
