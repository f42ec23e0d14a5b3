//! Where git keeps what it reads and writes of a project's repository, and which of these places are outside of the project.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use super::MAX_PLACES;
use crate::git_directory::{GitDirectory, is_absent, read_pointer};
use crate::git_settings::GitSettings;
use crate::places::real_place;

/// What is in a directory of git's and is not read when the repository is opened: other repositories, and programs that only
/// git itself starts.
const UNREAD: [&str; 8] = ["hooks", "modules", "lfs", "annex", "rr-cache", "svn", "branches", "description"];

/// The settings that name files which are read with the configuration.
const NAMING_FILES: [(&str, &str); 4] =
    [("include", "path"), ("includeif", "path"), ("core", "excludesfile"), ("core", "attributesfile")];

/// Why it cannot be known which places a repository uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PlaceObstacle {
    /// A file of git's that names others and cannot be read.
    Unreadable(PathBuf),
    /// More places than are followed.
    TooMany,
}

/// The places of a repository. Every path is where it leads, with all links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryPlaces {
    pub(super) top: PathBuf,
    pub(super) own: PathBuf,
    pub(super) shared: PathBuf,
    /// Directories with objects: its own, and those that it borrows from.
    pub(super) stores: Vec<PathBuf>,
    pub(super) outside: BTreeSet<PathBuf>,
}

/// Whether nothing in a directory of git's with this name is read.
pub(super) fn is_unread(name: &std::ffi::OsStr) -> bool {
    UNREAD.iter().any(|unread| name == *unread)
}

impl RepositoryPlaces {
    /// Returns the places of the repository that a project is in; none where it is in no repository.
    pub(super) fn find(project: &Path) -> Result<Option<Self>, PlaceObstacle> {
        let found = GitDirectory::find(&real_place(project)).map_err(PlaceObstacle::Unreadable)?;
        found.map(Self::of).transpose()
    }

    /// Returns the places of the repository at the top of a directory, whole or not.
    pub(super) fn at(directory: &Path) -> Result<Option<Self>, PlaceObstacle> {
        let found = GitDirectory::at(&real_place(directory)).map_err(PlaceObstacle::Unreadable)?;
        found.map(Self::of).transpose()
    }

    fn of(GitDirectory { top, own, shared }: GitDirectory) -> Result<Self, PlaceObstacle> {
        let (own, shared) = (real_place(&own), real_place(&shared));
        let mut places = Self { top, own, shared, stores: Vec::new(), outside: BTreeSet::new() };
        let directories: BTreeSet<PathBuf> = [places.own.clone(), places.shared.clone()].into();
        for directory in &directories {
            if !directory.starts_with(&places.top) {
                places.outside.insert(directory.clone());
            }
        }
        for directory in &directories {
            places.follow_links(directory)?;
        }
        places.follow_settings()?;
        places.follow_stores()?;
        Ok(places)
    }

    /// Whether a place is in the project or in one of the two directories that git calls its own.
    pub(super) fn holds(&self, place: &Path) -> bool {
        [&self.top, &self.own, &self.shared].iter().any(|directory| place.starts_with(directory))
    }

    fn note(&mut self, place: &Path) -> Result<(), PlaceObstacle> {
        if !self.holds(place) && !self.outside.contains(place) {
            self.outside.insert(place.to_owned());
        }
        if self.outside.len() > MAX_PLACES { Err(PlaceObstacle::TooMany) } else { Ok(()) }
    }

    /// Links among the files of a directory of git's.
    fn follow_links(&mut self, directory: &Path) -> Result<(), PlaceObstacle> {
        let unreadable = || PlaceObstacle::Unreadable(directory.to_owned());
        let entries = match fs::read_dir(directory) {
            Err(error) if is_absent(&error) => return Ok(()),
            entries => entries.map_err(|_| unreadable())?,
        };
        for entry in entries {
            let entry = entry.map_err(|_| unreadable())?;
            let is_link = entry.file_type().map_err(|_| unreadable())?.is_symlink();
            if is_link && !is_unread(&entry.file_name()) {
                self.note(&real_place(&entry.path()))?;
            }
        }
        Ok(())
    }

    /// Files that the configuration names.
    fn follow_settings(&mut self) -> Result<(), PlaceObstacle> {
        let mut open = VecDeque::from([self.shared.join("config"), self.own.join("config.worktree")]);
        let mut known = BTreeSet::new();
        while let Some(file) = open.pop_front() {
            if !known.insert(file.clone()) {
                continue;
            }
            if known.len() > MAX_PLACES {
                return Err(PlaceObstacle::TooMany);
            }
            let Some(text) = read_pointer(&file).map_err(PlaceObstacle::Unreadable)? else { continue };
            let settings = GitSettings::parse(&text).map_err(|_| PlaceObstacle::Unreadable(file.clone()))?;
            for (section, name) in NAMING_FILES {
                for value in settings.values(section, name).filter(|value| !value.is_empty()) {
                    // What git expands, and what is not UTF-8, leads out as it is written.
                    if value.starts_with(['~', '%']) || value.contains('\u{fffd}') {
                        self.note(Path::new(value))?;
                        continue;
                    }
                    let base =
                        if section == "core" { self.top.as_path() } else { file.parent().unwrap_or(&file) };
                    let named = base.join(value);
                    self.note(&real_place(&named))?;
                    if section != "core" {
                        open.push_back(named);
                    }
                }
            }
        }
        Ok(())
    }

    /// The directory of objects, and those that it borrows from, one through the other.
    fn follow_stores(&mut self) -> Result<(), PlaceObstacle> {
        let mut open = VecDeque::from([real_place(&self.shared.join("objects"))]);
        while let Some(store) = open.pop_front() {
            if self.stores.contains(&store) {
                continue;
            }
            if self.stores.len() >= MAX_PLACES {
                return Err(PlaceObstacle::TooMany);
            }
            self.note(&store)?;
            let file = store.join("info/alternates");
            self.stores.push(store.clone());
            let Some(text) = read_pointer(&file).map_err(PlaceObstacle::Unreadable)? else { continue };
            self.note(&real_place(&file))?;
            for line in text.split(['\r', '\n']).filter(|line| !line.is_empty() && !line.starts_with('#')) {
                // Git and libgit2 read a name in quotes, and one that is relative without a dot, differently.
                if !line.starts_with(['/', '.']) || line.contains('\u{fffd}') {
                    return Err(PlaceObstacle::Unreadable(file));
                }
                open.push_back(real_place(&store.join(line)));
            }
        }
        Ok(())
    }
}
