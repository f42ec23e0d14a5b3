//! What goes with a distribution that another version replaces.

use std::collections::{BTreeMap, BTreeSet};

use tgp_contract::{EntryKind, FsError, RelativePath};
use tgp_fs::{Directory, DirectoryEntries};

use crate::archive::MAX_ENTRY_BYTES;
use crate::environment::open;
use crate::layout::{LIST, SETTINGS, is_of_environment};
use crate::wheel::copy;
use crate::{Environment, EnvironmentError, InstalledDistribution, WheelError};

/// Files and directories of one `.dist-info`.
const MAX_ENTRIES: usize = 5000;
const MAX_DEPTH: usize = 8;
/// Files that are removed.
const MAX_FILES: usize = 500_000;

/// Paths that are removed, relative to the environment.
#[derive(Default)]
pub(crate) struct Removal {
    pub(crate) files: BTreeSet<String>,
    pub(crate) directories: BTreeSet<String>,
}

impl Removal {
    /// Whether a path is free afterwards.
    pub(crate) fn frees(&self, path: &str) -> bool {
        self.files.contains(path) || self.directories.contains(path)
    }
}

/// Finds what belongs to some distributions alone and was not changed since it was installed.
pub(crate) fn find(
    environment: &Environment,
    replaced: &[&InstalledDistribution],
    stop: &dyn Fn() -> bool,
) -> Result<Removal, EnvironmentError> {
    let is_replaced =
        |one: &InstalledDistribution| replaced.iter().any(|gone| gone.dist_info == one.dist_info);
    let others: BTreeSet<&str> = environment
        .distributions
        .iter()
        .filter(|one| !is_replaced(one))
        .flat_map(|one| one.record.keys().map(String::as_str))
        .collect();
    let mut removal = Removal::default();
    let mut listings = BTreeMap::new();
    for distribution in replaced {
        for (path, checksum) in &distribution.record {
            if stop() {
                return Err(EnvironmentError::Stopped);
            }
            if others.contains(path.as_str()) || is_kept(environment, path) {
                continue;
            }
            let Some(checksum) = checksum else { continue };
            if has_content(environment, path, checksum, stop)? {
                removal.files.insert(path.clone());
                compiled(environment, path, &others, &mut listings, &mut removal)?;
            }
        }
        let information = format!("{}/{}", environment.layout.site_packages(), distribution.dist_info);
        whole(environment, &information, &mut removal, 0)?;
    }
    Ok(removal)
}

/// Programs of the environment itself, its settings, and what is known of any package: that goes as a whole or not at all.
fn is_kept(environment: &Environment, path: &str) -> bool {
    if matches!(path, SETTINGS | LIST) || RelativePath::new(path).is_err() {
        return true;
    }
    let inside =
        path.strip_prefix(environment.layout.site_packages()).and_then(|rest| rest.strip_prefix('/'));
    let top = inside.and_then(|inside| inside.split('/').next()).unwrap_or_default().to_lowercase();
    top.ends_with(".dist-info")
        || top.ends_with(".egg-info")
        || path.strip_prefix("bin/").is_some_and(is_of_environment)
}

fn has_content(
    environment: &Environment,
    path: &str,
    checksum: &[u8; 32],
    stop: &dyn Fn() -> bool,
) -> Result<bool, EnvironmentError> {
    let path = RelativePath::new(path).map_err(FsError::from)?;
    let Some(parent) = directory(&environment.root, &path.parent())? else { return Ok(false) };
    let file = match open(&parent, path.name().unwrap_or_default()) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(false),
        // What is there is not the file that was installed.
        Err(EnvironmentError::Files(FsError::Security { .. } | FsError::IsDirectory(_))) => return Ok(false),
        Err(error) => return Err(error),
    };
    // No package brings a larger file, so it is not one of a package, whatever the list says.
    if file.metadata().is_ok_and(|metadata| metadata.len() > MAX_ENTRY_BYTES) {
        return Ok(false);
    }
    match copy(file, &mut std::io::sink(), stop) {
        Ok((found, _)) => Ok(found == *checksum),
        Err(WheelError::Stopped) => Err(EnvironmentError::Stopped),
        Err(WheelError::Io(source)) => Err(FsError::Io { path, source }.into()),
        Err(_) => Ok(false),
    }
}

/// A directory of the environment; none where there is none, or something else.
pub(crate) fn directory(
    root: &Directory,
    path: &RelativePath,
) -> Result<Option<Directory>, EnvironmentError> {
    match root.descend(path) {
        Ok(directory) => Ok(Some(directory)),
        Err(FsError::NotFound(_) | FsError::NotDirectory(_) | FsError::Security { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What Python has compiled from a source that goes.
fn compiled(
    environment: &Environment,
    path: &str,
    others: &BTreeSet<&str>,
    listings: &mut BTreeMap<String, Vec<String>>,
    removal: &mut Removal,
) -> Result<(), EnvironmentError> {
    let Some((parent, name)) = path.rsplit_once('/') else { return Ok(()) };
    let Some(stem) = name.strip_suffix(".py") else { return Ok(()) };
    let place = format!("{parent}/__pycache__");
    if !listings.contains_key(&place) {
        let names = names(environment, &place)?;
        listings.insert(place.clone(), names);
    }
    let names = listings.get(&place).map(Vec::as_slice).unwrap_or_default();
    let is_of_source = |name: &&String| {
        let rest = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| rest.ends_with(".pyc"))
    };
    for name in names.iter().filter(is_of_source) {
        let path = format!("{place}/{name}");
        if !others.contains(path.as_str()) {
            removal.files.insert(path);
        }
    }
    Ok(())
}

/// The files directly in a directory of the environment.
fn names(environment: &Environment, place: &str) -> Result<Vec<String>, EnvironmentError> {
    let place = RelativePath::new(place).map_err(FsError::from)?;
    let Some(directory) = directory(&environment.root, &place)? else { return Ok(Vec::new()) };
    let entries = directory.entries(MAX_ENTRIES * 4)?.entries;
    let files = entries.iter().filter(|entry| entry.kind == EntryKind::File);
    Ok(files.filter_map(|entry| entry.path.name().map(str::to_owned)).collect())
}

/// A directory with everything in it.
fn whole(
    environment: &Environment,
    place: &str,
    removal: &mut Removal,
    depth: usize,
) -> Result<(), EnvironmentError> {
    if depth > MAX_DEPTH {
        let what = "the depth of what is known of a package";
        return Err(EnvironmentError::Limit { what, limit: MAX_DEPTH as u64 });
    }
    let at = RelativePath::new(place).map_err(FsError::from)?;
    let Some(directory) = directory(&environment.root, &at)? else { return Ok(()) };
    for entry in directory.entries(MAX_ENTRIES)?.entries {
        let path = format!("{place}/{}", entry.path.name().unwrap_or_default());
        if entry.kind == EntryKind::Directory {
            whole(environment, &path, removal, depth + 1)?;
        } else {
            // A link itself, and not what it leads to.
            removal.files.insert(path);
        }
    }
    removal.directories.insert(place.to_owned());
    if removal.files.len() > MAX_FILES {
        let what = "the number of files that are removed";
        return Err(EnvironmentError::Limit { what, limit: MAX_FILES as u64 });
    }
    Ok(())
}

/// Adds the directories that are empty when everything else is removed, but for those that get something new.
pub(crate) fn add_emptied(
    environment: &Environment,
    removal: &mut Removal,
    used: &BTreeSet<String>,
) -> Result<(), EnvironmentError> {
    let mut candidates = BTreeSet::new();
    for path in removal.files.iter().chain(&removal.directories) {
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            candidates.insert(parent.to_owned());
            above = parent;
        }
    }
    let site_packages = environment.layout.site_packages();
    // The longer ones first: what is in a directory comes before it.
    let mut candidates: Vec<String> = candidates.into_iter().collect();
    candidates.sort_by_key(|path| std::cmp::Reverse(path.matches('/').count()));
    for place in candidates {
        let is_of_layout = !place.contains('/') || site_packages.starts_with(place.as_str());
        if is_of_layout || used.contains(&place) || removal.directories.contains(&place) {
            continue;
        }
        let at = RelativePath::new(&place).map_err(FsError::from)?;
        let Some(directory) = directory(&environment.root, &at)? else { continue };
        let DirectoryEntries { entries, unnamed } = directory.entries(MAX_ENTRIES * 4)?;
        let is_gone = |name: Option<&str>| name.is_some_and(|name| removal.frees(&format!("{place}/{name}")));
        if unnamed == 0 && entries.iter().all(|entry| is_gone(entry.path.name())) {
            removal.directories.insert(place);
        }
    }
    // A directory of metadata that the new version has too stays.
    removal.directories.retain(|place| !used.contains(place));
    Ok(())
}
