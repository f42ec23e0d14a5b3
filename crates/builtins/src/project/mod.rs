//! Tools that work on the project: its files, and what can be found in them.

mod change;
mod fs_delete;
mod fs_edit;
mod fs_exists;
mod fs_list;
mod fs_read;
mod fs_write;
mod git;
mod glob;
mod grep;
mod page;
mod search_glob;
mod search_grep;
pub mod testing;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tgp_contract::{Access, Code, RelativePath, Root, Target, ToolError, background};
use tokio::sync::Semaphore;

pub use change::FileChangeResult;
pub use fs_exists::ExistsResult;
pub use fs_list::{FileList, ListedFile};
pub use fs_read::{CutLine, FilePage};
pub use git::{
    ChangedFile, CommitFile, CommitInfo, CommitList, CommitResult, DiffFile, DiffPage, LeftOutFile,
    RepositoryState,
};
pub use search_glob::GlobResult;
pub use search_grep::{GrepMatch, GrepResult, SkippedFiles};

use tgp_router::{DynTool, typed};

/// Pieces of file work at a time. Each may hold a whole file in memory and a thread; those beyond wait their turn.
const PARALLEL_WORK: usize = 8;

/// Bytes of text in one answer: what a model can still read, and what a caller can page through.
const MAX_PAGE_BYTES: usize = 256 * 1024;

/// The tools on files and text of the project.
///
/// # Errors
/// Never in practice: the names are constants.
pub fn project_tools() -> Result<Vec<Arc<dyn DynTool>>, ToolError> {
    let desk = Arc::new(BlockingPool { places: Arc::new(Semaphore::new(PARALLEL_WORK)) });
    let mut tools = git::git_tools(&desk)?;
    tools.extend([
        typed(fs_read::FsRead(Arc::clone(&desk)))?,
        typed(fs_write::FsWrite(Arc::clone(&desk)))?,
        typed(fs_edit::FsEdit(Arc::clone(&desk)))?,
        typed(fs_delete::FsDelete(Arc::clone(&desk)))?,
        typed(fs_list::FsList(Arc::clone(&desk)))?,
        typed(fs_exists::FsExists(Arc::clone(&desk)))?,
        typed(search_grep::SearchGrep(Arc::clone(&desk)))?,
        typed(search_glob::SearchGlob(desk))?,
    ]);
    Ok(tools)
}

/// Where file work of the project is done: off the threads that serve others, and only so much at a time.
struct BlockingPool {
    places: Arc<Semaphore>,
}

impl BlockingPool {
    /// Does work on one file, whose size bounds the time it takes.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let closed = |_| ToolError::new(Code::Internal, "this kernel works on no files any more");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        background::run_bounded(move || {
            let _place = place;
            work()
        })
        .await
    }

    /// Does work on many files, which ends soon after its [`Stop`] says so.
    async fn search<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&Stop) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let cancelled = Arc::default();
        // Dropped with the caller's future, so that abandoned work ends.
        let _caller = Caller(Arc::clone(&cancelled));
        self.work(move || work(&Stop { cancelled, deadline: Instant::now() + patience })).await
    }
}

/// When work has to end.
struct Stop {
    cancelled: Arc<AtomicBool>,
    deadline: Instant,
}

impl Stop {
    fn is_due(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The file or directory of the project that an argument names, and what happens to it; the project itself where it is
/// empty.
fn project_file(path: &str, access: Access) -> Result<Vec<Target>, ToolError> {
    Ok(vec![Target::File { root: Root::Project, path: RelativePath::new(path)?, access }])
}
