//! The repository of a project that leads out of it: which places a person has confirmed already, with another project.

use std::path::{Path, PathBuf};

use tgp_fs::{RepositoryAccess, outside_places, repository_owner};

use super::fields::REPOSITORY;
use super::store::{TrustStore, repository_hash};
use crate::config::Config;

/// Finds out which places outside of the project its repository uses. What cannot be read is refused where it is used.
pub(crate) fn find_repository(config: &mut Config, project: &Path) {
    config.repository = RepositoryAccess::confirmed(outside_places(project).unwrap_or_default());
}

/// Whether the project is a work tree or a submodule of a repository that a person has confirmed, as git's own files of both
/// sides say, and uses nothing else.
pub(super) fn is_covered(store: &TrustStore, project: &Path) -> bool {
    let Some(owner) = repository_owner(project) else { return false };
    let (Ok(used), Ok(own), Ok(record)) =
        (outside_places(project), outside_places(&owner), store.fields(&owner))
    else {
        return false;
    };
    let is_confirmed = record.fields.get(REPOSITORY) == Some(&repository_hash(&owner, &own));
    let directories: Vec<PathBuf> = own.into_iter().chain([owner.join(".git")]).collect();
    is_confirmed && used.iter().all(|place| directories.iter().any(|directory| place.starts_with(directory)))
}
