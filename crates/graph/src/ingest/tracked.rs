//! The files that git knows, held for the next question: to list those of a large repository takes longer than to judge a
//! change of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use git2::Oid;
use tgp_fs::Stamp;

use super::repository::Repo;
use crate::tables::failure::GraphError;

/// What the list depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrackedKey {
    /// The directory of the repository, and where the project is in it.
    pub(crate) repository: PathBuf,
    pub(crate) prefix: String,
    pub(crate) head: Option<Oid>,
    /// `None` without an index.
    pub(crate) index: Option<Stamp>,
}

/// The list of the last time, and what it depended on.
#[derive(Debug, Default)]
pub(crate) struct TrackedFiles(Mutex<Option<(TrackedKey, Arc<BTreeSet<String>>)>>);

impl TrackedFiles {
    /// All files of the project that git knows; empty without a repository.
    pub(crate) fn of(&self, repo: Option<&Repo>) -> Result<Arc<BTreeSet<String>>, GraphError> {
        let Some(repo) = repo else { return Ok(Arc::default()) };
        // Before the list is read: what changes while it is read makes the next one.
        let key = repo.tracked_key()?;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, files)) = held.as_ref()
            && *of == key
        {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(repo.tracked()?);
        // A change so soon after the last one might not show.
        let is_settled = key.index.as_ref().is_none_or(|index| index.is_settled(SystemTime::now()));
        *held = is_settled.then(|| (key, Arc::clone(&files)));
        Ok(files)
    }
}
