//! Tools for the repository that the project is in: its state, its differences, its commits, and a new commit.

mod git_commit;
mod git_diff;
mod git_log;
mod git_status;
mod shown;
mod work_files;

use std::sync::Arc;

use tgp_contract::{Access, RelativePath, Root, Target, ToolError};
use tgp_git::ProjectRepo;
use tgp_router::{DynTool, Invocation, typed};

use super::{BlockingPool, Stop};
use work_files::VisibleWorkFiles;

pub use git_commit::{CommitFile, CommitResult, LeftOutFile};
pub use git_diff::{DiffFile, DiffPage};
pub use git_log::{CommitInfo, CommitList};
pub use git_status::{ChangedFile, RepositoryState};

/// How long a tool compares files before it stops.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// The tools for the project's repository.
///
/// # Errors
/// Never in practice: the names are constants.
pub(super) fn git_tools(desk: &Arc<BlockingPool>) -> Result<Vec<Arc<dyn DynTool>>, ToolError> {
    Ok(vec![
        typed(git_status::GitStatus(Arc::clone(desk)))?,
        typed(git_diff::GitDiff(Arc::clone(desk)))?,
        typed(git_log::GitLog(Arc::clone(desk)))?,
        typed(git_commit::GitCommit(Arc::clone(desk)))?,
    ])
}

/// Reads the repository, with the files as the caller may see them.
async fn read_repository<T: Send + 'static>(
    desk: &BlockingPool,
    invocation: Invocation<'_>,
    work: impl FnOnce(&ProjectRepo, &VisibleWorkFiles<'_>) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let workspace = invocation.filtered_workspace().await;
    let visible = invocation.visibility().await;
    let (place, access) = (workspace.project_place().to_owned(), workspace.repository().clone());
    let read = move |stop: &Stop| {
        let files = VisibleWorkFiles { files: workspace.project_files(), visible, stop };
        work(&ProjectRepo::open(&place, &access)?, &files)
    };
    desk.search(PATIENCE, read).await
}

/// The paths that arguments name.
fn paths_of(paths: &[String]) -> Result<Vec<RelativePath>, ToolError> {
    let paths: Result<Vec<RelativePath>, _> = paths.iter().map(|path| RelativePath::new(path)).collect();
    let mut paths = paths?;
    // The project itself is everything in it.
    if paths.iter().any(RelativePath::is_root) {
        paths.clear();
    }
    Ok(paths)
}

/// Files that are read.
fn reads(paths: impl IntoIterator<Item = RelativePath>) -> Vec<Target> {
    let target = |path| Target::File { root: Root::Project, path, access: Access::Read };
    paths.into_iter().map(target).collect()
}
