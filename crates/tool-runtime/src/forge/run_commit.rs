//! The commit of a run: its files and its statements take effect together, or neither does.
//!
//! INVARIANT: nothing here waits on an executor thread, and no std lock is held while the database answers. The commit
//! lock is asynchronous and the files are written on the blocking pool, so that a run that waits for its COMMIT never
//! keeps the runtime from bringing the answer.

use std::sync::Arc;

use tgp_contract::{ToolError, background};
use tgp_fs::OverlayFs;
use tokio::runtime::Handle;

use tgp_router::PointOfNoReturn;
use tgp_router::database::SqlRun;
use tgp_router::files::ProjectBase;

/// What has to hold while the commit lock is held, right before the files take their places.
pub(super) type PreCommitCheck = Box<dyn FnOnce() -> Result<(), ToolError> + Send>;

/// What a run has held back.
pub(super) struct RunCommit {
    pub(super) overlay: Arc<OverlayFs>,
    pub(super) sql: Option<SqlRun>,
    /// For a run that commits to the disk, where no other call may change a file at the same moment.
    pub(super) base: Option<Arc<ProjectBase>>,
    /// The same: what goes into an outer run has not taken effect.
    pub(super) point: Option<PointOfNoReturn>,
}

impl RunCommit {
    /// Waits until no run inside this one is at its end any more.
    pub(super) async fn settle(&self) {
        if let Some(sql) = &self.sql {
            sql.is_open().await;
        }
    }

    /// The database commits last, when the files are in place and can still be rolled back: a file system can
    /// undo, a database that has committed cannot.
    pub(super) async fn commit(self, check: Option<PreCommitCheck>) -> Result<(), ToolError> {
        let is_open = match &self.sql {
            Some(sql) => sql.is_open().await,
            None => false,
        };
        let sql = self.sql.clone().filter(|_| is_open);
        // No file is changed, so other writers need not wait.
        if self.overlay.changes().is_empty() && check.is_none() {
            return match sql {
                Some(sql) => {
                    self.pass()?;
                    sql.commit().await
                }
                // It has changed nothing, so there is nothing to bear witness of.
                None => self.point.as_ref().map_or(Ok(()), PointOfNoReturn::pass_unseen),
            };
        }
        let lock = match &self.base {
            Some(base) => Some(base.commit_lock().await),
            None => None,
        };
        let runtime = Handle::current();
        // Bounded by the runs that there are at a time.
        background::run_bounded(move || {
            let _lock = lock;
            match sql {
                Some(sql) => self.commit_both(&sql, check, &runtime),
                None => self.commit_files(check),
            }
        })
        .await
    }

    fn commit_both(
        &self,
        sql: &SqlRun,
        check: Option<PreCommitCheck>,
        runtime: &Handle,
    ) -> Result<(), ToolError> {
        let checked = check.map_or(Ok(()), |check| check());
        if let Err(refused) = checked.and_then(|()| self.pass()) {
            self.overlay.discard();
            runtime.block_on(sql.roll_back());
            return Err(refused);
        }
        let mut refused = None;
        let mut vote = || match runtime.block_on(sql.commit()) {
            Ok(()) => true,
            Err(error) => {
                // Where it is unknown whether the rows were committed, the files are kept: then the loss can
                // be seen.
                let unknown = error.is_of_unknown_outcome();
                refused = Some(if unknown { error.detail("files", "kept") } else { error });
                unknown
            }
        };
        if let Err(error) = self.overlay.commit_if(Some(&mut vote)) {
            // The files could not take their places, so the database was not asked.
            runtime.block_on(sql.roll_back());
            return Err(error.into());
        }
        refused.map_or(Ok(()), Err)
    }

    fn commit_files(&self, check: Option<PreCommitCheck>) -> Result<(), ToolError> {
        check.map_or(Ok(()), |check| check())?;
        if self.overlay.changes().is_empty() {
            return self.point.as_ref().map_or(Ok(()), PointOfNoReturn::pass_unseen);
        }
        self.pass()?;
        Ok(self.overlay.commit()?)
    }

    fn pass(&self) -> Result<(), ToolError> {
        self.point.as_ref().map_or(Ok(()), PointOfNoReturn::commit)
    }

    /// Takes everything back, and waits until it is.
    pub(super) async fn undo(self) {
        self.overlay.discard();
        if let Some(sql) = self.sql {
            sql.roll_back().await;
        }
    }
}
