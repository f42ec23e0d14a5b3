//! Finding the sources of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The crates below `crates/`: the name of the folder and its path, sorted.
pub fn crates(root: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("crates")).context("cannot read crates/")? {
        let path = entry?.path();
        // Other tools may leave files there; a folder without a manifest is left over from another branch.
        if let (true, Some(name)) = (path.join("Cargo.toml").is_file(), path.file_name()) {
            found.push((name.to_string_lossy().into_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// The Rust files below a folder, sorted.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A parsed file of `crates/*/src`.
pub struct SourceFile {
    /// The folder below `crates/`.
    pub crate_folder: String,
    /// Relative to the workspace.
    pub path: String,
    pub syntax: syn::File,
}

/// All sources below `crates/*/src`, sorted by crate and path.
pub fn parsed(root: &Path) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    for (crate_folder, path) in crates(root)? {
        for path in rust_files(&path.join("src"))? {
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
            let syntax = syn::parse_file(&text).with_context(|| format!("cannot parse {shown}"))?;
            files.push(SourceFile { crate_folder: crate_folder.clone(), path: shown, syntax });
        }
    }
    Ok(files)
}
