//! From git objects and files to facts.

pub(crate) mod apply_changes;
pub(crate) mod blobs;
pub(crate) mod commits;
mod deltas;
pub(crate) mod history;
pub(crate) mod ignores;
pub(crate) mod language;
pub(crate) mod link;
mod manifest;
mod manifests;
mod parse;
pub(crate) mod past;
mod renames;
pub(crate) mod repository;
pub(crate) mod shallow;
mod source_summary;
pub(crate) mod state;
pub(crate) mod tracked;
mod weight;
pub(crate) mod worktree;

use std::path::Path;

use tgp_contract::{RelativePath, ToolError};
use tgp_fs::RepositoryAccess;

pub use source_summary::SourceSummary;

/// Which of the files git tracks, or the newest commit has; none where there is no repository. No store is opened.
///
/// # Errors
/// `EGIT` for a repository that cannot be read.
pub fn tracked(
    project: &Path,
    access: &RepositoryAccess,
    paths: &[RelativePath],
) -> Result<Vec<bool>, ToolError> {
    let Some(repo) = repository::Repo::open(project, access)? else { return Ok(vec![false; paths.len()]) };
    Ok(paths.iter().map(|path| repo.is_tracked(path.as_str())).collect::<Result<_, _>>()?)
}
