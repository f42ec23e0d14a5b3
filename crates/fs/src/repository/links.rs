//! Links below the directories of a repository: git makes none, and reads and writes through them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::places::{RepositoryPlaces, is_unread};
use crate::git_directory::is_absent;
use crate::places::real_place;
use crate::stamp::Stamp;

/// Directories of one repository that are searched.
const MAX_DIRECTORIES: usize = 50_000;

/// Why the files of a repository are not used.
#[derive(Debug)]
pub(super) enum ForbiddenFile {
    /// A link that leads to a place that is neither in the project nor confirmed.
    Link {
        link: PathBuf,
        place: PathBuf,
    },
    /// A pipe or a device.
    Special(PathBuf),
    Unreadable(PathBuf),
    TooMany,
}

/// The directories of a repository as they were when they were searched.
#[derive(Debug)]
pub(super) struct SearchedDirectories {
    places: RepositoryPlaces,
    stamps: Vec<(PathBuf, Stamp)>,
}

impl SearchedDirectories {
    /// Searches all directories of a repository that are read, for what is neither a file nor a directory.
    pub(super) fn search(
        places: &RepositoryPlaces,
        is_allowed: &dyn Fn(&Path) -> bool,
    ) -> Result<Self, ForbiddenFile> {
        let mut open: Vec<PathBuf> = [&places.own, &places.shared].into_iter().cloned().collect();
        open.extend(places.stores.iter().cloned());
        let mut known: BTreeSet<PathBuf> = BTreeSet::new();
        let mut stamps = Vec::new();
        while let Some(directory) = open.pop() {
            if !known.insert(directory.clone()) {
                continue;
            }
            if known.len() > MAX_DIRECTORIES {
                return Err(ForbiddenFile::TooMany);
            }
            let unreadable = |_: std::io::Error| ForbiddenFile::Unreadable(directory.clone());
            // Before its entries are read: what changes meanwhile shows in the next stamp.
            let data = match directory.symlink_metadata() {
                Err(error) if is_absent(&error) => continue,
                data => data.map_err(unreadable)?,
            };
            if !data.is_dir() {
                continue;
            }
            stamps.push((directory.clone(), Stamp::of(&data)));
            let is_top = directory == places.own || directory == places.shared;
            for entry in fs::read_dir(&directory).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                if is_top && is_unread(&entry.file_name()) {
                    continue;
                }
                let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
                if kind.is_dir() {
                    open.push(path);
                } else if kind.is_symlink() {
                    let place = real_place(&path);
                    if !is_allowed(&place) {
                        return Err(ForbiddenFile::Link { link: path, place });
                    }
                    open.push(place);
                } else if !kind.is_file() && !kind.is_socket() {
                    return Err(ForbiddenFile::Special(path));
                }
            }
        }
        Ok(Self { places: places.clone(), stamps })
    }

    /// Whether a search now would find the same.
    pub(super) fn is_current(&self, places: &RepositoryPlaces) -> bool {
        let now = SystemTime::now();
        self.places == *places
            && self.stamps.iter().all(|(directory, stamp)| {
                stamp.is_settled(now)
                    && directory.symlink_metadata().is_ok_and(|data| Stamp::of(&data) == *stamp)
            })
    }
}
