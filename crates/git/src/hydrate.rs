//! Taking in what the remote has.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use git2::Oid;
use tgp_contract::{Code, RelativePath, ToolError};

use crate::bounds::{self, Stop};
use crate::branch_names::CONFLICT;
use crate::checkout::Uncommitted;
use crate::failure::At;
use crate::fetch::Depth;
use crate::inner::{Inner, RemoteLock};
use crate::local::LockedRepo;
use crate::network::{Missing, Network, Unreachable};
use crate::rebase::{self, Settled, local_commits};
use crate::{Conflict, HydrateOutcome, Hydrated};

/// Commits are counted for people; beyond this the number says nothing more.
const MAX_COUNTED: usize = 100_000;
/// A start waits this long for another process that talks to the remote; then it continues with what is here.
const BOOT_LANE_WAIT: Duration = Duration::from_secs(2);

/// What taking in the remote's branch did.
#[derive(Debug)]
pub(crate) struct Integrated {
    pub(crate) from: Option<Oid>,
    pub(crate) to: Option<Oid>,
    /// Commits of the remote that are new here.
    pub(crate) pulled: usize,
    pub(crate) conflicts: Vec<Conflict>,
    /// Of the conflicts, those with content that was not committed.
    pub(crate) set_aside: Vec<(RelativePath, Oid, Conflict)>,
}

/// The result of contacting the remote.
#[derive(Debug)]
pub(crate) enum Pull {
    Done(Integrated),
    /// The remote has no such branch yet.
    Unborn,
    Offline(Unreachable),
}

impl Inner {
    pub(crate) async fn hydrate(&self) -> Result<Hydrated, ToolError> {
        let Some(network) = &self.network else {
            return Ok(Hydrated {
                outcome: HydrateOutcome::Local,
                conflicts: Vec::new(),
                repaired: self.take_notes(),
            });
        };
        let (outcome, conflicts) = match self.boot(network).await? {
            None => (HydrateOutcome::Unchanged, Vec::new()),
            Some(Pull::Unborn) => (HydrateOutcome::Local, Vec::new()),
            // A start continues with what is here, also where that is nothing.
            Some(Pull::Offline(Unreachable { why, missing: Missing::Room })) => {
                (HydrateOutcome::Refused { why }, Vec::new())
            }
            Some(Pull::Offline(Unreachable { why, missing })) => {
                if self.local(|local| is_empty(local)).await? {
                    let from = network.sieve.clean(&network.endpoint.url);
                    let message = format!("the tools cannot be fetched from {from}: {why}");
                    return Err(ToolError::new(Code::Git, message).help(match missing {
                        Missing::Remote | Missing::Room => {
                            "correct what the message names (`git.url` is the remote); `tgp init` starts without it"
                        }
                        Missing::Git => {
                            "install git and run the command again; `tgp init` starts without the remote"
                        }
                    }));
                }
                (HydrateOutcome::Offline { why }, Vec::new())
            }
            Some(Pull::Done(done)) => {
                let outcome = match (done.from, done.to) {
                    (None, Some(to)) => HydrateOutcome::Cloned { to: to.to_string() },
                    (Some(from), Some(to)) if from != to => {
                        HydrateOutcome::Updated { from: from.to_string(), to: to.to_string() }
                    }
                    _ => HydrateOutcome::Unchanged,
                };
                (outcome, done.conflicts)
            }
        };
        Ok(Hydrated { outcome, conflicts, repaired: self.take_notes() })
    }

    /// Contacts the remote without delaying the start of a program. Only where nothing is here yet, it waits for
    /// the process that fetches it, and asks a remote that was silent just now. `None` when another process talks
    /// to the remote.
    async fn boot(&self, network: &Network) -> Result<Option<Pull>, ToolError> {
        if let Some(why) = network.recently_unreachable()
            && !self.local(|local| is_empty(local)).await?
        {
            return Ok(Some(Pull::Offline(Unreachable::remote(why))));
        }
        let lane = match self.free_lane(Instant::now() + BOOT_LANE_WAIT).await? {
            Some(lane) => lane,
            None if !self.local(|local| is_empty(local)).await? => return Ok(None),
            None => match self.free_lane(self.deadline()).await? {
                Some(lane) => lane,
                None => {
                    let why = "another process has been talking to the remote for too long";
                    return Ok(Some(Pull::Offline(Unreachable::remote(why))));
                }
            },
        };
        let pull = self.pull(network, &lane, self.timeouts.boot_ask).await?;
        if matches!(&pull, Pull::Done(done) if !done.conflicts.is_empty()) {
            self.push_kept(network, &lane).await?;
        }
        Ok(Some(pull))
    }

    /// Asks where the remote's branch is, for as long as `limit`, fetches only when it moved, and takes it in.
    pub(crate) async fn pull(
        &self,
        network: &Network,
        lane: &RemoteLock<'_>,
        limit: Duration,
    ) -> Result<Pull, ToolError> {
        let branch = self.context.branch.clone();
        let tip = match network.ask(&[&branch], limit).await {
            Err(why) => return Ok(Pull::Offline(why)),
            Ok(tips) => tips.into_iter().next().flatten(),
        };
        let Some(tip) = tip else { return Ok(Pull::Unborn) };
        let is_here = self.local(move |local| local.has_object(tip)).await?;
        if is_here {
            return self.take_in(network, tip, None).await;
        }
        self.fetch_and_take_in(network, lane).await
    }

    /// Fetches the branch as it is now and takes it in.
    pub(crate) async fn fetch_and_take_in(
        &self,
        network: &Network,
        _lane: &RemoteLock<'_>,
    ) -> Result<Pull, ToolError> {
        let branch = self.context.branch.clone();
        let (haves, depth) = self.haves(Vec::new()).await?;
        match network.fetch(&[&branch], &haves, depth).await {
            Err(why) => Ok(Pull::Offline(why)),
            Ok(fetched) => match fetched.tips.first() {
                Some(tip) => self.take_in(network, *tip, fetched.shallow).await,
                None => Ok(Pull::Unborn),
            },
        }
    }

    /// What we have of the remote already; a repository without any history wants the newest commit only.
    pub(crate) async fn haves(&self, branches: Vec<String>) -> Result<(Vec<Oid>, Depth), ToolError> {
        self.local(move |local| {
            let mut haves: Vec<Oid> = local.head()?.into_iter().collect();
            haves.extend(local.tracking(&local.context.branch)?);
            for branch in branches {
                haves.extend(local.tracking(&branch)?);
                haves.extend(local.reference(&local.context.local(&branch))?);
            }
            haves.sort();
            haves.dedup();
            let depth = if haves.is_empty() { Depth::Newest } else { Depth::Missing };
            Ok((haves, depth))
        })
        .await
    }

    async fn take_in(
        &self,
        network: &Network,
        tip: Oid,
        shallow: Option<Vec<u8>>,
    ) -> Result<Pull, ToolError> {
        let done = self
            .local(move |local| {
                // Also of what is refused: its objects are here, and git has to know that they have no parents.
                local.note_shallow(shallow.as_deref())?;
                match local.check_incoming(tip)? {
                    Some(why) => Ok(Err(why)),
                    None => local.integrate(tip).map(Ok),
                }
            })
            .await?;
        Ok(match done {
            Ok(done) => {
                self.remember_set_aside(done.set_aside.clone());
                Pull::Done(done)
            }
            Err(why) => Pull::Offline(Unreachable { why: network.shown(&why), missing: Missing::Room }),
        })
    }
}

impl LockedRepo {
    /// Writes down which commits have no parents here, before anything leads to them.
    pub(crate) fn note_shallow(&mut self, shallow: Option<&[u8]>) -> Result<(), ToolError> {
        let Some(shallow) = shallow else { return Ok(()) };
        let path = self.context.git().join("shallow");
        let fresh = self.context.state().join("git-shallow");
        fs::write(&fresh, shallow)
            .and_then(|()| fs::File::open(&fresh)?.sync_data())
            .at("cannot write", &fresh)?;
        fs::rename(&fresh, &path).at("cannot write", &path)?;
        // The open repository has read the old list.
        self.repo = crate::local::open_repository(&self.context).map_err(|source| {
            crate::failure::Failure::Git { doing: "cannot open the tool repository", source }
        })?;
        Ok(())
    }

    /// Why a version of the remote is not taken over: it exceeds a limit. One that is here already was checked.
    pub(crate) fn check_incoming(&self, tip: Oid) -> Result<Option<String>, ToolError> {
        let (head, known) = (self.head()?, self.tracking(&self.context.branch)?);
        if head == Some(tip) || known == Some(tip) {
            return Ok(None);
        }
        let known: Vec<Oid> = head.into_iter().chain(known).collect();
        match bounds::check_version(&self.repo, tip, &known) {
            Ok(()) => Ok(bounds::default_database(&self.repo, tip)?.map(|name| {
                format!(
                    "the remote's version {} was not taken over: it has `{name}`, which is a name of the default \
                     database of each clone; rename that on the remote's branch, the tools here stay as they are",
                    crate::report::short(&tip.to_string()),
                )
            })),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Limit(exceeded)) => Ok(Some(format!(
                "the remote's version {} was not taken over: {exceeded}; remove that from the remote's branch, the \
                 tools here stay as they are",
                crate::report::short(&tip.to_string()),
            ))),
        }
    }

    /// Brings the branch to `theirs` with our own commits on top.
    pub(crate) fn integrate(&mut self, theirs: Oid) -> Result<Integrated, ToolError> {
        let branch = self.context.branch.clone();
        let (from, known) = (self.head()?, self.tracking(&branch)?);
        let mut done = Integrated { from, to: from, pulled: 0, conflicts: Vec::new(), set_aside: Vec::new() };
        let base = known.filter(|known| self.repo.find_commit(*known).is_ok());
        let to = match from {
            None => theirs,
            Some(head) if self.has(head, theirs)? => head,
            Some(head) if self.has(theirs, head)? => theirs,
            Some(head) => {
                let commits = local_commits(&self.repo, head, theirs, base)?;
                let derived = self.context.derived.clone();
                let none = Settled::default();
                let rebased =
                    rebase::rebase(&self.repo, &commits, theirs, Some(&*derived), derived.path(), &none)?;
                done.conflicts = self.keep(rebased.conflicts, theirs)?;
                if let Some(known) = base
                    && !self.has(theirs, known)?
                {
                    // The remote's history was rewritten. What it dropped is not ours to drop.
                    let name = format!("{CONFLICT}{branch}-{}", crate::report::short(&head.to_string()));
                    self.set(&self.context.local(&name), head, "keep what the remote dropped")?;
                    self.notes
                        .push(format!("the remote's history was rewritten; the old one is kept on `{name}`"));
                }
                rebased.tip
            }
        };
        if from != Some(to) {
            done.pulled = self.count(theirs, from)?;
            let why = if from.is_none() { "hydrate" } else { "hydrate: rebase onto the remote" };
            let conflicts = self.advance(from, to, Uncommitted::Keep, why)?;
            for conflict in conflicts {
                let ours = Oid::from_str(&conflict.ours).ok();
                let entry = rebase::entry(&self.tree(ours)?, Path::new(conflict.path.as_str()))?;
                if let Some(entry) = entry {
                    done.set_aside.push((conflict.path.clone(), entry.id, conflict.clone()));
                }
                done.conflicts.push(conflict);
            }
            done.to = Some(to);
        }
        self.set(&self.context.tracking(&branch), theirs, "fetch")?;
        Ok(done)
    }

    /// How many commits `tip` has that `base` has not.
    pub(crate) fn count(&self, tip: Oid, base: Option<Oid>) -> Result<usize, ToolError> {
        match base {
            Some(base) if base == tip => Ok(0),
            Some(base) => {
                let counted = self.repo.graph_ahead_behind(tip, base).map(|(ahead, _)| ahead);
                Ok(counted.unwrap_or_default())
            }
            None => {
                let walk = self.repo.revwalk().and_then(|mut walk| walk.push(tip).map(|()| walk));
                Ok(walk.map_or(0, |walk| walk.take(MAX_COUNTED).count()))
            }
        }
    }
}

/// No history, and nothing that a person or an agent made.
fn is_empty(local: &LockedRepo) -> Result<bool, ToolError> {
    Ok(local.head()?.is_none() && local.worktree.files(&|_| false)?.files.is_empty())
}
