//! The branches `conflict/…`, which keep our version of a file that lost a conflict.

use git2::Oid;
use tgp_contract::{RelativePath, ToolError};

use crate::Conflict;
use crate::branch_names::{CONFLICTS, kept_branch, writable};
use crate::inner::{Inner, RemoteLock};
use crate::local::LockedRepo;
use crate::network::Network;
use crate::push::{Pushed, Replace};

/// Kept branches that are pushed in one go; the rest go next time.
const MAX_KEPT_PUSHES: usize = 20;

impl Inner {
    /// Pushes the branches that keep what lost. They are safe here too, so a failure is not new.
    pub(crate) async fn push_kept(&self, network: &Network, _lane: &RemoteLock<'_>) -> Result<(), ToolError> {
        let unpushed = self
            .local(|local| {
                let mut unpushed = Vec::new();
                for prefix in CONFLICTS {
                    for (branch, tip) in local.branches(prefix)? {
                        if local.tracking(&branch)? != Some(tip) {
                            unpushed.push((branch, tip));
                        }
                    }
                }
                unpushed.truncate(MAX_KEPT_PUSHES);
                Ok(unpushed)
            })
            .await?;
        for (branch, tip) in unpushed {
            if network.push(tip, &branch, Replace::Never).await != Pushed::Done {
                return Ok(());
            }
            self.local(move |local| local.set(&local.context.tracking(&branch), tip, "push")).await?;
        }
        Ok(())
    }
}

impl LockedRepo {
    /// Sets a branch on our version of each file that lost.
    pub(crate) fn keep(
        &self,
        lost: std::collections::BTreeMap<std::path::PathBuf, Oid>,
        theirs: Oid,
    ) -> Result<Vec<Conflict>, ToolError> {
        let mut conflicts = Vec::new();
        for (path, ours) in lost {
            let path = writable(&path)
                .unwrap_or_else(|| RelativePath::new(&path.to_string_lossy()).unwrap_or_default());
            let branch = kept_branch(&path, ours);
            self.set(&self.context.local(&branch), ours, "keep what lost a conflict")?;
            conflicts.push(Conflict { path, branch, ours: ours.to_string(), theirs: theirs.to_string() });
        }
        Ok(conflicts)
    }
}
