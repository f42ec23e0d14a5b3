//! Committing what lies about, and exchanging everything with the remote.

use std::path::Path;

use tgp_contract::ToolError;

use crate::bounds;
use crate::hydrate::Pull;
use crate::inner::Inner;
use crate::local::{LockedRepo, MAX_NOTES};
use crate::network::Unreachable;
use crate::rebase;
use crate::report::NO_REMOTE;
use crate::uncommitted::{Leftovers, leftovers};
use crate::worktree::Executable;
use crate::{CommitKind, Strategy, Synced};

impl Inner {
    pub(crate) async fn sync(&self) -> Result<Synced, ToolError> {
        let mut synced = Synced::default();
        let strategy = self.strategy;
        (synced.committed, synced.removed, synced.warnings) = self
            .local(move |local| {
                let (mut committed, mut removed) = (Vec::new(), Vec::new());
                let Leftovers { work, vanished, mut warnings } = leftovers(local)?;
                local.put_back(&vanished, &mut warnings)?;
                for work in work {
                    let named = if work.verb == CommitKind::Remove { &mut removed } else { &mut committed };
                    match strategy {
                        Strategy::Direct => {
                            local.commit_to_branch(&work)?;
                            named.extend(work.files.into_iter().map(|file| file.path));
                        }
                        Strategy::Request => named.extend(local.commit_to_requests(work)?),
                    }
                }
                reset_derived(local)?;
                if warnings.len() > MAX_NOTES {
                    warnings.truncate(MAX_NOTES);
                    warnings.push("there is more that was not committed".to_owned());
                }
                Ok((committed, removed, warnings))
            })
            .await?;
        let Some(network) = &self.network else {
            synced.why = Some(NO_REMOTE.to_owned());
            return Ok(synced);
        };
        let deadline = self.deadline();
        let lane = match self.lane(deadline).await {
            Ok(lane) => lane,
            Err(error) => {
                synced.why = Some(format!("{}; run `tgp sync` when it is done", error.message));
                return Ok(synced);
            }
        };
        match self.pull(network, &lane, self.timeouts.ask).await? {
            Pull::Done(done) => {
                synced.pulled = done.pulled;
                synced.conflicts = done.conflicts;
            }
            Pull::Unborn => {}
            Pull::Offline(Unreachable { why, .. }) => {
                synced.why = Some(why);
                return Ok(synced);
            }
        }
        match strategy {
            Strategy::Direct => {
                let delivered = self.deliver_in(network, &lane, None, deadline).await?;
                synced.pushed = delivered.count;
                synced.conflicts.extend(delivered.conflicts);
                synced.why = delivered.why;
            }
            Strategy::Request => self.deliver_requests(network, &lane, deadline, &mut synced).await?,
        }
        self.push_kept(network, &lane).await?;
        // Usually it went along with the tools.
        network.settle_anchor().await;
        synced.warnings.extend(network.dispute());
        Ok(synced)
    }
}

/// The derived file has no author: where only it differs, it becomes what the branch has.
fn reset_derived(local: &mut LockedRepo) -> Result<(), ToolError> {
    let path = local.context.derived.path().clone();
    let tree = local.tree(local.head()?)?;
    let Some(entry) = rebase::entry(&tree, Path::new(path.as_str()))? else {
        return Ok(());
    };
    if local.worktree.look(&path)?.blob() == Some(entry.id) || !leftovers(local)?.work.is_empty() {
        return Ok(());
    }
    let blob = bounds::blob(&local.repo, entry.id, Path::new(path.as_str()))?;
    local.worktree.write(&path, blob.content(), Executable::No)
}
