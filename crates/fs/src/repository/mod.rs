//! The repository of a project, which is opened here and nowhere else.
//!
//! A `.git` that came with a project can lead to any repository of this machine: as a file or a link, by `commondir`, by
//! `objects/info/alternates`, by `include.path`, by links among git's own files. So a repository is opened only when each
//! place that it would read or write is in the project, or a person has confirmed it ([`RepositoryAccess`]).

mod links;
mod places;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use git2::{ErrorCode, Repository, RepositoryOpenFlags};
use serde_json::json;
use tgp_contract::{Code, ToolError};

use links::{ForbiddenFile, SearchedDirectories};
use places::{PlaceObstacle, RepositoryPlaces};

/// RepositoryPlaces outside of a project that one repository may use: a chain of borrowed objects, files that the configuration includes.
const MAX_PLACES: usize = 64;

/// Which places outside of a project its repository may use: those that a person has confirmed. By default none.
#[derive(Clone, Default)]
pub struct RepositoryAccess {
    confirmed: Arc<BTreeSet<PathBuf>>,
    /// The search of the last time.
    searched: Arc<Mutex<Option<SearchedDirectories>>>,
}

/// The repository of a project, whose places are all in the project or confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRepository {
    places: RepositoryPlaces,
    /// Where the project is below the top of the work tree.
    prefix: PathBuf,
}

/// Returns the places outside of a project that its repository uses, with all links resolved; none where it is in no
/// repository. They are what a person confirms.
///
/// # Errors
/// `EGIT` for a file of git's that cannot be read.
pub fn outside_places(project: &Path) -> Result<BTreeSet<PathBuf>, ToolError> {
    Ok(RepositoryPlaces::find(project)
        .map_err(explain_obstacle)?
        .map(|places| places.outside)
        .unwrap_or_default())
}

/// Checks the repository at the top of a directory, whole or not, before the kernel writes it: nothing of it may be outside.
///
/// # Errors
/// `ESECURITY` when something is, and `EGIT` when that cannot be known.
pub fn check_own_repository(directory: &Path) -> Result<(), ToolError> {
    let Some(places) = RepositoryPlaces::at(directory).map_err(explain_obstacle)? else { return Ok(()) };
    if let Some(place) = places.outside.first() {
        let message = format!(
            "the repository in `{}` uses `{}`, which is outside of it",
            directory.display(),
            place.display()
        );
        return Err(ToolError::new(Code::Security, message).help(
            "a person looks where it comes from; the tool repository has its own files in its own `.git` directory",
        ));
    }
    RepositoryAccess::default().search(&places)
}

impl PartialEq for RepositoryAccess {
    fn eq(&self, other: &Self) -> bool {
        self.confirmed == other.confirmed
    }
}

impl std::fmt::Debug for RepositoryAccess {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("RepositoryAccess").field(&self.confirmed).finish()
    }
}

impl RepositoryAccess {
    /// Lets a repository use exactly these places outside of its project, as [`outside_places`] gives them.
    #[must_use]
    pub fn confirmed(places: BTreeSet<PathBuf>) -> Self {
        Self { confirmed: Arc::new(places), searched: Arc::default() }
    }

    /// The places outside of the project.
    #[must_use]
    pub fn places(&self) -> &BTreeSet<PathBuf> {
        &self.confirmed
    }

    /// Returns the repository that a project is in; none where it is in no repository.
    ///
    /// # Errors
    /// `ECONFIG` when it uses a place outside of the project that no person has confirmed, `EGIT` when that cannot be known.
    pub fn locate(&self, project: &Path) -> Result<Option<CheckedRepository>, ToolError> {
        let Some(places) = RepositoryPlaces::find(project).map_err(explain_obstacle)? else {
            return Ok(None);
        };
        let unconfirmed: Vec<&PathBuf> = places.outside.difference(&self.confirmed).collect();
        if let Some(first) = unconfirmed.first() {
            return Err(unconfirmed_error(first, &unconfirmed));
        }
        let project = crate::places::real_place(project);
        let prefix = project.strip_prefix(&places.top).map(Path::to_owned).unwrap_or_default();
        Ok(Some(CheckedRepository { places, prefix }))
    }

    /// Opens the repository that a project is in; none where it is in no repository.
    ///
    /// # Errors
    /// As [`RepositoryAccess::locate`]; `ESECURITY` for a link or a pipe among git's own files, and `EGIT` for a repository that
    /// libgit2 cannot open.
    pub fn open(&self, project: &Path) -> Result<Option<(CheckedRepository, Repository)>, ToolError> {
        let Some(checked) = self.locate(project)? else { return Ok(None) };
        self.search(&checked.places)?;
        let repository = checked.open().map_err(|error| explain(&error))?;
        // Both name other places, and both are read by now.
        repository.config().and_then(|_| repository.odb()).map_err(|error| explain(&error))?;
        let is_same = |path: &Path, place: &Path| path.canonicalize().is_ok_and(|path| path == place);
        let is_checked = is_same(repository.path(), &checked.places.own)
            && is_same(repository.commondir(), &checked.places.shared)
            && self.locate(project)?.as_ref() == Some(&checked);
        if !is_checked {
            return Err(ToolError::new(Code::Conflict, "the repository was exchanged while it was opened")
                .help("repeat the call when no other process changes `.git`"));
        }
        Ok(Some((checked, repository)))
    }

    /// Whether a project still has the repository that was opened for it, and it may still be used.
    #[must_use]
    pub fn is_current(&self, project: &Path, checked: &CheckedRepository) -> bool {
        let found = self.locate(project).is_ok_and(|found| found.as_ref() == Some(checked));
        found && self.search(&checked.places).is_ok()
    }

    fn search(&self, places: &RepositoryPlaces) -> Result<(), ToolError> {
        let mut searched = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        if searched.as_ref().is_some_and(|searched| searched.is_current(places)) {
            return Ok(());
        }
        let is_allowed = |place: &Path| {
            places.holds(place) || self.confirmed.iter().any(|confirmed| place.starts_with(confirmed))
        };
        *searched = None;
        *searched = Some(SearchedDirectories::search(places, &is_allowed).map_err(explain_forbidden_file)?);
        Ok(())
    }
}

impl CheckedRepository {
    /// The top of the work tree.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.places.top
    }

    /// The directory with the files of this work tree.
    #[must_use]
    pub fn own(&self) -> &Path {
        &self.places.own
    }

    /// The directory with the files that all work trees of the repository share.
    #[must_use]
    pub fn shared(&self) -> &Path {
        &self.places.shared
    }

    /// Where the project is below the top of the work tree; empty where they are the same directory.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Whether there is no work tree.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.places.own == self.places.top
    }

    /// Opens it once more, for work that another handle must not see. No variable of the environment counts.
    ///
    /// # Errors
    /// When libgit2 cannot open it.
    pub fn open(&self) -> Result<Repository, git2::Error> {
        let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
        #[expect(clippy::disallowed_methods, reason = "the places were checked")]
        let repository = match Repository::open_ext(self.own(), flags, &[] as &[&Path]) {
            // What may be done in a project of another user is decided when a kernel boots, and nothing of the repository is
            // run. This opening does not ask who owns it.
            Err(error) if error.code() == ErrorCode::Owner => Repository::open_bare(self.own())?,
            opened => opened?,
        };
        if !self.is_bare() {
            // Whatever `core.worktree` says: the files are those of the project.
            repository.set_workdir(self.top(), false)?;
        }
        Ok(repository)
    }
}

fn unconfirmed_error(first: &Path, all: &[&PathBuf]) -> ToolError {
    let more = match all.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let message = format!(
        "the project's repository uses `{}`{more} outside of the project, which is not confirmed",
        first.display()
    );
    let places: Vec<String> = all.iter().map(|place| place.display().to_string()).collect();
    ToolError::new(Code::Config, message)
        .detail("field", "repository")
        .detail("places", json!(places))
        .help("a person runs `tgp trust` in the project, which shows these places and confirms them")
}

fn explain_obstacle(obstacle: PlaceObstacle) -> ToolError {
    match obstacle {
        PlaceObstacle::Unreadable(path) => {
            let message = format!(
                "git's file `{}` cannot be read, so it is not known which places the repository uses",
                path.display()
            );
            ToolError::new(Code::Git, message)
                .help("run `git status` and `git fsck` in the project; in `alternates` write absolute paths without quotes")
        }
        PlaceObstacle::TooMany => ToolError::new(
            Code::Git,
            format!("the repository uses more than {MAX_PLACES} places outside of the project"),
        )
        .help("`git repack -a -d` copies borrowed objects, and then `objects/info/alternates` is not needed"),
    }
}

fn explain_forbidden_file(bad: ForbiddenFile) -> ToolError {
    match bad {
        ForbiddenFile::Link { link, place } => {
            let message = format!(
                "`{}` is a link among git's own files and leads to `{}`, outside of the project",
                link.display(),
                place.display()
            );
            ToolError::new(Code::Security, message).help(
                "git makes no such link: a person looks where it comes from, and clones the repository again",
            )
        }
        ForbiddenFile::Special(path) => {
            let message = format!("`{}` among git's own files is a pipe or a device", path.display());
            ToolError::new(Code::Security, message).help(
                "git makes no such file: a person looks where it comes from, and clones the repository again",
            )
        }
        ForbiddenFile::Unreadable(path) => {
            ToolError::new(Code::Git, format!("git's directory `{}` cannot be read", path.display()))
                .help("check the permissions of the repository's files")
        }
        ForbiddenFile::TooMany => ToolError::new(Code::Git, "the repository has too many directories")
            .help("`git pack-refs --all` and `git gc` make fewer of them"),
    }
}

/// Says what is wrong when libgit2 cannot open a repository.
fn explain(error: &git2::Error) -> ToolError {
    // The library knows no other way to say it.
    if error.message().contains("unknown object format") {
        return ToolError::new(Code::Git, "repositories with SHA-256 ids are not supported")
            .detail("git", error.message())
            .help("`git init --object-format=sha1` makes one that is");
    }
    let help = match error.code() {
        ErrorCode::Owner => {
            "the repository belongs to another user of this machine; run as that user or change its owner"
        }
        _ => "run `git fsck` and `git status` in the project to see what is wrong",
    };
    ToolError::new(Code::Git, format!("cannot open the repository: {}", error.message())).help(help)
}
