//! Values of steps that said `cache`, on this machine, by the hash of everything that decides them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use tgp_aql::Cache;

use tgp_fs::append_log::{private_directory, write_private};

/// Values that are kept; the ones that were used least recently go first.
const MAX_ENTRIES: usize = 2_000;
/// A larger value is made again.
const MAX_VALUE_BYTES: u64 = 4 << 20;
/// How many entries over the limit are tolerated before a cleanup: a cleanup reads the whole directory.
const SLACK: usize = 200;

/// A directory of values.
pub(super) struct ValueCache {
    directory: PathBuf,
}

impl ValueCache {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        let is_hash = key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| self.directory.join(format!("{key}.json")))
    }

    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if files.len() <= MAX_ENTRIES + SLACK {
            return;
        }
        files.sort();
        let spare = files.len() - MAX_ENTRIES;
        for (_, file) in files.into_iter().take(spare) {
            let _ = fs::remove_file(file);
        }
    }
}

impl Cache for ValueCache {
    fn get(&self, key: &str) -> Option<Value> {
        let file = self.file(key)?;
        if fs::metadata(&file).ok()?.len() > MAX_VALUE_BYTES {
            return None;
        }
        let value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        // What is used stays.
        let _ = fs::File::options()
            .append(true)
            .open(&file)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(value)
    }

    fn put(&self, key: &str, value: &Value) {
        let Some(file) = self.file(key) else { return };
        let text = value.to_string();
        if text.len() as u64 <= MAX_VALUE_BYTES && write(&self.directory, &file, text.as_bytes()).is_ok() {
            self.prune();
        }
    }
}

/// Under another name first, so that no reader sees half a value.
fn write(directory: &Path, file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    private_directory().recursive(true).create(directory)?;
    let draft = file.with_extension(format!("new-{}", std::process::id()));
    write_private(&draft, bytes)
        .and_then(|()| fs::rename(&draft, file))
        .inspect_err(|_| drop(fs::remove_file(&draft)))
}
