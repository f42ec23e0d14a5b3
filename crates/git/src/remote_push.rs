//! Pushing: one push for all who wait, and patience when others push too.

use std::time::{Duration, Instant};

use git2::{Oid, Sort};
use tgp_contract::{RelativePath, ToolError};

use crate::Conflict;
use crate::branch_names::{kept_branch, kept_prefix};
use crate::failure::Doing;
use crate::hydrate::Pull;
use crate::inner::{Inner, RemoteLock};
use crate::local::LockedRepo;
use crate::network::{Network, Unreachable};
use crate::push::{Pushed, Replace};
use crate::rebase;
use tgp_fs::jittered;

/// Enough for dozens of kernels that push to one branch at once; the time limit usually ends it before.
const MAX_ATTEMPTS: u32 = 200;
/// Between fetch and push lie tens of milliseconds in which another writer can win. The pauses grow until about
/// as many of them fit beside each other as there are likely to be rivals.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(600);
/// How long a remote may be locked without its branch moving. A push holds the lock for milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// A commit that was rewritten is near the tip; it is not searched for through years of history.
const MAX_SEARCHED: usize = 20_000;

/// What one caller waits for: the commit it made, and what that did.
#[derive(Clone, Debug)]
pub(crate) struct PendingPush {
    pub(crate) commit: Oid,
    pub(crate) files: Vec<(RelativePath, Option<Oid>)>,
}

/// Where a ticket's commit is by now.
#[derive(Debug)]
enum CommitLocation {
    /// It is on the branch, perhaps under a new id.
    Here(Oid),
    Lost(Vec<Conflict>),
}

/// The result of a delivery.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// The commit under its final id.
    pub(crate) commit: Option<Oid>,
    pub(crate) is_pushed: bool,
    /// Commits of ours that the remote got.
    pub(crate) count: usize,
    pub(crate) why: Option<String>,
    /// All conflicts that were met on the way, also those of other callers.
    pub(crate) conflicts: Vec<Conflict>,
    /// The conflicts of the ticket itself.
    pub(crate) lost: Vec<Conflict>,
}

/// Since when a remote has been locked while its branch did not move.
#[derive(Debug, Default)]
pub(crate) struct LockedRemote(Option<(Instant, Option<Oid>)>);

impl LockedRemote {
    /// Whether waiting is of no use any more. `tip` is where the remote's branch is known to be.
    pub(crate) fn is_stuck(&mut self, tip: Option<Oid>) -> bool {
        match self.0 {
            Some((since, before)) if before == tip => since.elapsed() >= LOCK_PATIENCE,
            _ => {
                self.0 = Some((Instant::now(), tip));
                false
            }
        }
    }
}

/// Whether it is of any use to talk to the remote now.
pub(crate) enum RemoteAccess<'m> {
    Talk(RemoteLock<'m>),
    Offline(String),
}

/// What there is to do next.
enum Step {
    Finished(Option<Oid>),
    Lost(Vec<Conflict>),
    /// Push this tip, which has so many commits that the remote is not known to have.
    Push(Oid, usize),
}

impl Inner {
    /// Delivers the branch. Several callers at once wait for one lane; a caller that finds its commit delivered by
    /// then has nothing left to do.
    pub(crate) async fn deliver(
        &self,
        network: &Network,
        ticket: Option<PendingPush>,
    ) -> Result<Delivered, ToolError> {
        let undelivered = |why: String| Ok(Delivered { why: Some(why), ..Delivered::default() });
        let deadline = self.deadline();
        match self.quiet_lane(network, deadline).await {
            Ok(RemoteAccess::Talk(lane)) => self.deliver_in(network, &lane, ticket, deadline).await,
            Ok(RemoteAccess::Offline(why)) => undelivered(why),
            Err(error) => undelivered(error.message),
        }
    }

    /// Waits for the lane, unless the remote is known to be away. The previous holder may have found that out.
    pub(crate) async fn quiet_lane(
        &self,
        network: &Network,
        deadline: Instant,
    ) -> Result<RemoteAccess<'_>, ToolError> {
        if let Some(why) = network.recently_unreachable() {
            return Ok(RemoteAccess::Offline(why));
        }
        let lane = self.lane(deadline).await?;
        Ok(network.recently_unreachable().map_or(RemoteAccess::Talk(lane), RemoteAccess::Offline))
    }

    pub(crate) async fn deliver_in(
        &self,
        network: &Network,
        lane: &RemoteLock<'_>,
        mut ticket: Option<PendingPush>,
        deadline: Instant,
    ) -> Result<Delivered, ToolError> {
        let mut delivered = Delivered::default();
        let mut pause = FIRST_PAUSE;
        let mut locked = LockedRemote::default();
        for _ in 0..MAX_ATTEMPTS {
            let own = ticket.clone();
            match self.local(move |local| next_step(local, own.as_ref())).await? {
                Step::Finished(commit) => {
                    delivered.commit = commit;
                    delivered.is_pushed = true;
                    if !delivered.conflicts.is_empty() || !delivered.lost.is_empty() {
                        self.push_kept(network, lane).await?;
                    }
                    return Ok(delivered);
                }
                // What else is on the branch is delivered all the same.
                Step::Lost(lost) => {
                    delivered.lost = lost;
                    ticket = None;
                }
                Step::Push(tip, count) => match network.push(tip, &self.context.branch, Replace::Never).await
                {
                    Pushed::Done => {
                        delivered.count += count;
                        self.local(move |local| {
                            local.set(&local.context.tracking(&local.context.branch), tip, "push")
                        })
                        .await?;
                    }
                    Pushed::Refused(why) | Pushed::Unreachable(why) => {
                        return self.undelivered(delivered, ticket, why).await;
                    }
                    waits @ (Pushed::Moved | Pushed::Locked(_)) => {
                        if let Pushed::Locked(why) = waits {
                            let branch = self.context.branch.clone();
                            let tip = self.local(move |local| local.tracking(&branch)).await?;
                            if locked.is_stuck(tip) {
                                return self.undelivered(delivered, ticket, why).await;
                            }
                        }
                        if Instant::now() + pause >= deadline {
                            break;
                        }
                        // Rest before the fetch and not after it: what was fetched grows old quickly.
                        tokio::time::sleep(jittered(pause)).await;
                        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
                        match self.fetch_and_take_in(network, lane).await? {
                            Pull::Done(done) => delivered.conflicts.extend(done.conflicts),
                            Pull::Unborn => {}
                            Pull::Offline(Unreachable { why, .. }) => {
                                return self.undelivered(delivered, ticket, why).await;
                            }
                        }
                    }
                },
            }
        }
        let why = "others pushed to the branch faster than we could; `tgp sync` tries again".to_owned();
        self.undelivered(delivered, ticket, why).await
    }

    /// Says where the commit is that was not delivered.
    pub(crate) async fn undelivered(
        &self,
        mut delivered: Delivered,
        ticket: Option<PendingPush>,
        why: String,
    ) -> Result<Delivered, ToolError> {
        delivered.why = Some(why);
        if let Some(ticket) = ticket {
            match self.local(move |local| locate(local, &ticket)).await? {
                CommitLocation::Here(commit) => delivered.commit = Some(commit),
                CommitLocation::Lost(lost) => delivered.lost = lost,
            }
        }
        Ok(delivered)
    }
}

fn next_step(local: &mut LockedRepo, ticket: Option<&PendingPush>) -> Result<Step, ToolError> {
    let Some(head) = local.head()? else { return Ok(Step::Finished(None)) };
    let tracking = local.tracking(&local.context.branch)?;
    let wanted = match ticket {
        None => head,
        Some(ticket) => match locate(local, ticket)? {
            CommitLocation::Here(commit) => commit,
            CommitLocation::Lost(lost) => return Ok(Step::Lost(lost)),
        },
    };
    if let Some(tracking) = tracking
        && local.has(tracking, wanted)?
    {
        return Ok(Step::Finished(Some(wanted)));
    }
    Ok(Step::Push(head, local.count(head, tracking)?))
}

/// Finds a commit again that another call, or another process, may have rebased since.
fn locate(local: &LockedRepo, ticket: &PendingPush) -> Result<CommitLocation, ToolError> {
    const DOING: &str = "cannot walk the history";
    let head = local.head()?.unwrap_or(ticket.commit);
    if local.has(head, ticket.commit)? {
        return Ok(CommitLocation::Here(ticket.commit));
    }
    let mut lost = Vec::new();
    for (path, _) in &ticket.files {
        for (branch, tip) in local.branches(&kept_prefix(path))? {
            if branch == kept_branch(path, tip) && local.has(tip, ticket.commit)? {
                let theirs = local.tracking(&local.context.branch)?.unwrap_or(head).to_string();
                lost.push(Conflict { path: path.clone(), branch, ours: tip.to_string(), theirs });
            }
        }
    }
    if !lost.is_empty() {
        return Ok(CommitLocation::Lost(lost));
    }
    let original = local.repo.find_commit(ticket.commit).doing(DOING)?;
    let mut walk = local.repo.revwalk().doing(DOING)?;
    walk.set_sorting(Sort::TOPOLOGICAL).and_then(|()| walk.simplify_first_parent()).doing(DOING)?;
    walk.push(head).doing(DOING)?;
    for id in walk.take(MAX_SEARCHED) {
        let commit = local.repo.find_commit(id.doing(DOING)?).doing(DOING)?;
        let is_same = commit.author().when() == original.author().when()
            && commit.author().email_bytes() == original.author().email_bytes()
            && commit.message_raw_bytes() == original.message_raw_bytes();
        if is_same && has_files(local, commit.id(), ticket)? {
            return Ok(CommitLocation::Here(commit.id()));
        }
    }
    // The remote had made the very same change, so the commit became empty and was dropped.
    Ok(CommitLocation::Here(head))
}

fn has_files(local: &LockedRepo, commit: Oid, ticket: &PendingPush) -> Result<bool, ToolError> {
    let tree = local.tree(Some(commit))?;
    for (path, blob) in &ticket.files {
        if rebase::entry(&tree, std::path::Path::new(path.as_str()))?.map(|entry| entry.id) != *blob {
            return Ok(false);
        }
    }
    Ok(true)
}
