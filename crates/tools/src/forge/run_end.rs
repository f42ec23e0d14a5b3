//! The end of a run: its files and its statements stand together, or neither does.

use std::sync::Arc;

use tgp_contract::{Code, ToolError};
use tgp_vfs::OverlayFs;

use crate::database::SqlRun;
use crate::files::Ground;
use crate::router::PointOfNoReturn;

/// What has to hold at the very moment in which the files take their places.
pub(super) type LastLook = Box<dyn FnOnce() -> Result<(), ToolError> + Send>;

/// What a run has held back.
pub(super) struct RunEnd {
    pub(super) overlay: Arc<OverlayFs>,
    pub(super) sql: Option<SqlRun>,
    /// For a run that commits to the disk, where nobody else may change a file at the same moment.
    pub(super) ground: Option<Arc<Ground>>,
    /// The same: what goes into an outer run has not taken effect.
    pub(super) point: Option<PointOfNoReturn>,
}

impl RunEnd {
    /// Waits until no run inside this one is at its end any more.
    pub(super) async fn settle(&self) {
        if let Some(sql) = &self.sql {
            sql.is_open().await;
        }
    }

    /// The database commits last, when the files are in place and can still be taken back: a file system can undo,
    /// a database that has committed cannot.
    pub(super) async fn commit(self, last_look: Option<LastLook>) -> Result<(), ToolError> {
        let Some(sql) = self.sql.clone() else { return self.commit_files(last_look) };
        if !sql.is_open().await {
            return self.commit_files(last_look);
        }
        if self.overlay.changes().is_empty() {
            self.pass()?;
            return sql.commit().await;
        }
        let Self { overlay, ground, point, .. } = self;
        let runtime = tokio::runtime::Handle::current();
        let commit = move || {
            let mut refused = None;
            let mut last_word = || match runtime.block_on(sql.commit()) {
                Ok(()) => true,
                Err(error) => {
                    // Where nobody knows whether the rows stand, the files do: what was lost can then be seen.
                    let unknown = error.is_of_unknown_outcome();
                    refused = Some(if unknown { error.detail("files", "kept") } else { error });
                    unknown
                }
            };
            let _turn = ground.as_deref().map(Ground::turn);
            let looked = last_look.map_or(Ok(()), |look| look());
            let passed = looked.and_then(|()| point.map_or(Ok(()), |point| point.pass()));
            if let Err(refused) = passed {
                overlay.discard();
                runtime.block_on(sql.roll_back());
                return Err(refused);
            }
            overlay.commit_if(Some(&mut last_word))?;
            refused.map_or(Ok(()), Err)
        };
        tokio::task::spawn_blocking(commit)
            .await
            .unwrap_or_else(|_| Err(ToolError::new(Code::Internal, "the commit of the run was broken off")))
    }

    fn commit_files(&self, last_look: Option<LastLook>) -> Result<(), ToolError> {
        let _turn = self.ground.as_deref().map(Ground::turn);
        last_look.map_or(Ok(()), |look| look())?;
        if self.overlay.changes().is_empty() {
            // It has changed nothing, so there is nothing to bear witness of.
            return self.point.as_ref().map_or(Ok(()), PointOfNoReturn::pass_unseen);
        }
        self.pass()?;
        Ok(self.overlay.commit()?)
    }

    fn pass(&self) -> Result<(), ToolError> {
        self.point.as_ref().map_or(Ok(()), PointOfNoReturn::pass)
    }

    /// Takes everything back, and waits until it is.
    pub(super) async fn undo(self) {
        self.overlay.discard();
        if let Some(sql) = self.sql {
            sql.roll_back().await;
        }
    }
}
