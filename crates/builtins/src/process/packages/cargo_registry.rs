//! Crates that an installation has downloaded, added to the registry of the user's cargo: commands without network read
//! them there.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tgp_contract::canonical;
use tgp_fs::{read_plain, replace_plain};

/// Largest archive of a crate; the index has the same limit.
const MAX_CRATE_BYTES: u64 = 64 << 20;
/// Files of one download.
const MAX_FILES: usize = 500_000;
const MAX_DEPTH: usize = 64;

/// The checksums of a `Cargo.lock`: a crate with another one is not what the lock file means.
pub(super) fn checksums(lock: &str) -> BTreeSet<String> {
    let line = |line: &str| line.strip_prefix("checksum = \"")?.strip_suffix('"').map(str::to_owned);
    lock.lines().filter_map(line).collect()
}

/// Adds downloaded crates to a registry. What is there stays, but for the index, which is a cache. Gives the crates that are new.
pub(super) fn add(
    downloaded: &Path,
    registry: &Path,
    checksums: &BTreeSet<String>,
) -> io::Result<Vec<String>> {
    let mut files = 0;
    let mut new = Vec::new();
    for index in directories(&downloaded.join("cache"))? {
        let (from, to) = (downloaded.join("cache").join(&index), registry.join("cache").join(&index));
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(stem) = name.strip_suffix(".crate") else { continue };
            let archive = read_plain(&entry.path(), MAX_CRATE_BYTES)
                .ok_or_else(|| io::Error::other(format!("`{name}` cannot be read or is too large")))?;
            if !checksums.contains(&canonical::sha256_hex(&archive)) {
                continue;
            }
            let sources = downloaded.join("src").join(&index).join(stem);
            let place = registry.join("src").join(&index).join(stem);
            if sources.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) && !place.exists() {
                fs::create_dir_all(registry.join("src").join(&index))?;
                let fresh =
                    registry.join("src").join(&index).join(format!(".tgp-{}-{stem}", std::process::id()));
                copy(&sources, &fresh, &mut files)?;
                if fs::rename(&fresh, &place).is_err() {
                    // Another program has unpacked it meanwhile.
                    fs::remove_dir_all(&fresh)?;
                }
            }
            if !to.join(&name).exists() {
                replace_plain(&to.join(&name), &archive)?;
                new.push(
                    stem.rsplit_once('-')
                        .map_or_else(|| stem.to_owned(), |(name, version)| format!("{name}@{version}")),
                );
            }
        }
    }
    for index in directories(&downloaded.join("index"))? {
        add_index(
            &downloaded.join("index").join(&index),
            &registry.join("index").join(&index),
            &mut files,
            0,
        )?;
    }
    new.sort();
    Ok(new)
}

fn directories(parent: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    if !parent.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(parent)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries
        .into_iter()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name())
        .collect())
}

fn add_index(from: &Path, to: &Path, files: &mut usize, depth: usize) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (old, new, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        bounded(files, depth)?;
        if kind.is_dir() {
            add_index(&old, &new, files, depth + 1)?;
        } else if kind.is_file() && entry.file_name().to_str().is_some_and(|name| !name.starts_with(".cargo"))
        {
            let content = read_plain(&old, MAX_CRATE_BYTES).ok_or(io::ErrorKind::InvalidData)?;
            replace_plain(&new, &content)?;
        }
    }
    Ok(())
}

/// Copies directories and plain files; anything else is refused.
fn copy(from: &Path, to: &Path, files: &mut usize) -> io::Result<()> {
    let _ = fs::remove_dir_all(to);
    let mut waiting = vec![(from.to_owned(), to.to_owned(), 0)];
    while let Some((from, to, depth)) = waiting.pop() {
        fs::create_dir(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            bounded(files, depth)?;
            let (old, new, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                waiting.push((old, new, depth + 1));
            } else if kind.is_file() {
                fs::copy(&old, &new)?;
                let executable = old.metadata()?.permissions().mode() & 0o100 != 0;
                fs::set_permissions(
                    &new,
                    fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }),
                )?;
            } else {
                return Err(io::Error::other(format!(
                    "`{}` is neither a file nor a directory",
                    old.display()
                )));
            }
        }
    }
    Ok(())
}

fn bounded(files: &mut usize, depth: usize) -> io::Result<()> {
    *files += 1;
    if *files > MAX_FILES || depth > MAX_DEPTH {
        return Err(io::Error::other(format!("more than {MAX_FILES} files or {MAX_DEPTH} levels")));
    }
    Ok(())
}
