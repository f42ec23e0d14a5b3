//! What a fetch that was cut off leaves behind, and which limit it met.

use std::fs;
use std::path::{Path, PathBuf};

use crate::GitFetchLimits;
use crate::repair::is_in_use;

/// A file that is so near to its limit has met it.
const NEARLY: u64 = 64 << 10;

/// Files that a git has begun to receive objects in.
pub(crate) fn unfinished_packs(git: &Path) -> Vec<PathBuf> {
    let pack = git.join("objects/pack");
    let is_unfinished =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tmp_"));
    let rows = fs::read_dir(pack).map_or_else(|_| Vec::new(), |rows| rows.filter_map(Result::ok).collect());
    rows.into_iter().map(|row| row.path()).filter(is_unfinished).collect()
}

/// Removes what a fetch that failed left behind, and answers how large it was: a remote that sends too much must not fill
/// the disk start by start.
pub(crate) fn remove_unfinished(git: &Path, root: &Path, before: &[PathBuf]) -> u64 {
    let mut received = 0;
    for path in unfinished_packs(git) {
        if !before.contains(&path) && !is_in_use(&path, root) {
            received = received.max(fs::symlink_metadata(&path).map_or(0, |data| data.len()));
            let _ = fs::remove_file(path);
        }
    }
    received
}

/// The limit that ended a git, when one did.
pub(crate) fn exceeded(stderr: &str, received: u64, most: GitFetchLimits) -> Option<String> {
    // Git does not say why its child was ended, but what that has written says it.
    let is_full = received.saturating_add(NEARLY) >= most.received_bytes;
    let limit = if is_full || stderr.contains("died of signal 25") || stderr.contains("File too large") {
        format!("it sends more than {} MiB of objects at once", most.received_bytes >> 20)
    } else if stderr.contains("ut of memory") || stderr.contains("Cannot allocate memory") {
        format!("git needs more than {} MiB of memory to receive its objects", most.memory_bytes >> 20)
    } else {
        return None;
    };
    Some(format!(
        "the remote's objects were not received: {limit}; remove what is too large from the remote, the tools here \
         stay as they are"
    ))
}
