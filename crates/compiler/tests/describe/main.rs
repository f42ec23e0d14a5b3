//! The metadata of tools: a golden folder, and what holds for any source.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod golden;
mod hostile;

use std::path::{Path, PathBuf};

use tgp_contract::RelativePath;

/// A file below `tests/`.
fn tests(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

/// All sources of a folder, in a fixed order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ts" || extension == "js"))
        .collect();
    paths.sort();
    paths
}

/// Where a tool with this file name would lie.
fn tool_path(file: &Path) -> RelativePath {
    RelativePath::new(&format!("tools/{}", file.file_name().unwrap().to_str().unwrap())).unwrap()
}
