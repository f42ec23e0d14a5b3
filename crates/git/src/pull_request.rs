//! Gatekeeper mode: every tool goes to its own branch, and a person merges it.
//!
//! The branch is `feat/<tool>` (see [`crate::branch_names::slug`]). It leaves the derived file out, so that requests for
//! different tools never conflict; after a merge the next hydration computes it again. The local branch does not move
//! until the remote's does.

use std::path::Path;
use std::time::Instant;

use git2::Oid;
use tgp_contract::{RelativePath, ToolError};

use crate::branch_names::{PENDING, request_branch};
use crate::failure::{Doing, after_commit};
use crate::fsync::{secure, sync_each};
use crate::inner::{Inner, RemoteLock};
use crate::local::LockedRepo;
use crate::network::{Missing, Network, Unreachable};
use crate::provider::Draft;
use crate::push::{Pushed, Replace};
use crate::rebase::{self, Settled, local_commits};
use crate::remote_push::{LockedRemote, RemoteAccess};
use crate::report::{NO_REMOTE, id_text};
use crate::worktree::{Executable, Standing};
use crate::{ChangeSet, CommitKind, Conflict, PersistFile, Persisted, RequestLink, Synced};
use tgp_fs::jittered;

/// A branch of one tool has few rivals.
const MAX_ATTEMPTS: u32 = 20;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
/// Requests that one synchronisation delivers; the rest go next time.
const MAX_DELIVERIES: usize = 200;
/// A request's text names this many commits.
const MAX_SUBJECTS: usize = 50;

/// What is on a request's branch, ready to be pushed.
enum Plan {
    Push {
        tip: Oid,
        replace: Replace,
        draft: Draft,
    },
    /// The remote's branch has it all.
    Merged(Option<Oid>),
    Lost(Conflict),
}

/// The result of one request.
#[derive(Debug, Default)]
struct Requested {
    tip: Option<Oid>,
    is_pushed: bool,
    /// The remote's branch is not where it was before.
    has_moved: bool,
    /// There is nothing left to ask for.
    is_merged: bool,
    why: Option<String>,
    link: Option<RequestLink>,
    lost: Option<Conflict>,
}

impl Inner {
    pub(crate) async fn persist_as_request(&self, work: ChangeSet) -> Result<Persisted, ToolError> {
        let branch = work.files.first().map(|file| request_branch(&file.path)).unwrap_or_default();
        let own = branch.clone();
        let tip = self.local(move |local| local.commit_to_request(&own, &work.files, work.verb)).await?;
        self.deliver_to_request(branch, tip).await
    }

    /// Delivers the request's branch, which is at `tip`.
    pub(crate) async fn deliver_to_request(
        &self,
        branch: String,
        tip: Option<Oid>,
    ) -> Result<Persisted, ToolError> {
        let Some(network) = &self.network else {
            let why = Some(NO_REMOTE.to_owned());
            return Ok(Persisted { commit: id_text(tip), branch, pushed: false, why, request: None });
        };
        let deadline = self.deadline();
        // The commit is in place. What fails from here on is a reason why it was not delivered, and no error.
        let requested = match self.quiet_lane(network, deadline).await {
            Ok(RemoteAccess::Talk(lane)) => self.deliver_request(network, &lane, &branch, deadline).await,
            Ok(RemoteAccess::Offline(why)) => Ok(Requested { why: Some(why), ..Requested::default() }),
            Err(error) => Err(error),
        };
        let requested =
            requested.unwrap_or_else(|error| Requested { why: Some(error.message), ..Requested::default() });
        if let Some(conflict) = requested.lost {
            return Err(conflict.into_error());
        }
        Ok(Persisted {
            commit: id_text(requested.tip.or(tip)),
            branch,
            pushed: requested.is_pushed,
            why: network.with_dispute(requested.why),
            request: requested.link,
        })
    }

    /// Delivers every request that is not where it should be.
    pub(crate) async fn deliver_requests(
        &self,
        network: &Network,
        lane: &RemoteLock<'_>,
        deadline: Instant,
        synced: &mut Synced,
    ) -> Result<(), ToolError> {
        let open = self
            .local(|local| {
                let mut open = Vec::new();
                for (branch, tip) in local.branches("feat/")? {
                    let is_pending = local.context.opens_requests
                        && local.reference(&format!("{PENDING}{branch}"))?.is_some();
                    if is_pending || local.tracking(&branch)? != Some(tip) {
                        open.push(branch);
                    }
                }
                open.truncate(MAX_DELIVERIES);
                Ok(open)
            })
            .await?;
        for branch in open {
            let requested = self.deliver_request(network, lane, &branch, deadline).await?;
            synced.pushed += usize::from(requested.has_moved);
            // A branch that is where it should be is not new, unless its request could not be opened.
            let is_news = requested.has_moved || !requested.is_pushed || self.context.opens_requests;
            if is_news && !requested.is_merged {
                synced.why = requested.why.or(synced.why.take());
            }
            synced.requests.extend(requested.link);
            synced.conflicts.extend(requested.lost);
        }
        Ok(())
    }

    async fn deliver_request(
        &self,
        network: &Network,
        _lane: &RemoteLock<'_>,
        branch: &str,
        deadline: Instant,
    ) -> Result<Requested, ToolError> {
        let failed = |why: String| Requested { why: Some(why), ..Requested::default() };
        let mut locked = LockedRemote::default();
        for _ in 0..MAX_ATTEMPTS {
            let theirs = match self.look_at_request(network, branch).await? {
                Ok(found) => found,
                Err(unreachable) => return Ok(failed(unreachable.why)),
            };
            let own = branch.to_owned();
            let plan = self.local(move |local| local.plan_request(&own, theirs)).await?;
            let (tip, replace, draft) = match plan {
                Plan::Lost(conflict) => {
                    return Ok(Requested { lost: Some(conflict), ..Requested::default() });
                }
                Plan::Merged(tip) => {
                    let own = branch.to_owned();
                    self.local(move |local| local.remove_reference(&format!("{PENDING}{own}"))).await?;
                    let why = format!("branch `{}` has it already", self.context.branch);
                    return Ok(Requested {
                        tip,
                        is_pushed: true,
                        is_merged: true,
                        why: Some(why),
                        ..Requested::default()
                    });
                }
                Plan::Push { tip, replace, draft } => (tip, replace, draft),
            };
            let has_moved = theirs.request != Some(tip);
            let pushed = if has_moved { network.push(tip, branch, replace).await } else { Pushed::Done };
            match pushed {
                Pushed::Done => {
                    let own = branch.to_owned();
                    self.local(move |local| local.set(&local.context.tracking(&own), tip, "push")).await?;
                    let requested = self.open_request(branch, tip, draft).await?;
                    return Ok(Requested { has_moved, ..requested });
                }
                Pushed::Moved if Instant::now() + PAUSE < deadline => {
                    tokio::time::sleep(jittered(PAUSE)).await
                }
                Pushed::Moved => break,
                Pushed::Locked(_)
                    if Instant::now() + PAUSE < deadline && !locked.is_stuck(theirs.request) =>
                {
                    tokio::time::sleep(jittered(PAUSE)).await
                }
                Pushed::Locked(why) | Pushed::Refused(why) | Pushed::Unreachable(why) => {
                    return Ok(Requested { tip: Some(tip), ..failed(why) });
                }
            }
        }
        Ok(failed(format!("others pushed to `{branch}` faster than we could; `tgp sync` tries again")))
    }

    /// Where the remote has the branch and the request's branch, with the objects of both here.
    async fn look_at_request(
        &self,
        network: &Network,
        branch: &str,
    ) -> Result<Result<RemoteHeads, Unreachable>, ToolError> {
        let names = [self.context.branch.as_str(), branch];
        let tips = match network.ask(&names, self.timeouts.ask).await {
            Ok(tips) => tips,
            Err(why) => return Ok(Err(why)),
        };
        let wanted: Vec<(String, Oid)> = names
            .iter()
            .zip(&tips)
            .filter_map(|(name, tip)| tip.map(|tip| ((*name).to_owned(), tip)))
            .collect();
        let missing = self
            .local(move |local| {
                let mut missing = Vec::new();
                for (name, tip) in wanted {
                    if !local.has_object(tip)? {
                        missing.push(name);
                    }
                }
                Ok(missing)
            })
            .await?;
        let mut theirs =
            RemoteHeads { main: tips.first().copied().flatten(), request: tips.get(1).copied().flatten() };
        if missing.is_empty() {
            return self.checked_request(network, theirs, None).await;
        }
        let (haves, depth) = self.haves(vec![branch.to_owned()]).await?;
        let asked: Vec<&str> = missing.iter().map(String::as_str).collect();
        let fetched = match network.fetch(&asked, &haves, depth).await {
            Ok(fetched) => fetched,
            Err(why) => return Ok(Err(why)),
        };
        // Between asking and fetching a branch can move again; what was fetched is what we have.
        for (name, tip) in missing.iter().zip(&fetched.tips) {
            let place = if name == branch { &mut theirs.request } else { &mut theirs.main };
            *place = Some(*tip);
        }
        self.checked_request(network, theirs, fetched.shallow).await
    }

    /// Refuses versions that exceed a limit, before anything of them is read.
    async fn checked_request(
        &self,
        network: &Network,
        theirs: RemoteHeads,
        shallow: Option<Vec<u8>>,
    ) -> Result<Result<RemoteHeads, Unreachable>, ToolError> {
        let refused = self
            .local(move |local| {
                local.note_shallow(shallow.as_deref())?;
                for tip in [theirs.main, theirs.request].into_iter().flatten() {
                    if let Some(why) = local.check_incoming(tip)? {
                        return Ok(Some(why));
                    }
                }
                Ok(None)
            })
            .await?;
        Ok(match refused {
            Some(why) => Err(Unreachable { why: network.shown(&why), missing: Missing::Room }),
            None => Ok(theirs),
        })
    }

    async fn open_request(&self, branch: &str, tip: Oid, draft: Draft) -> Result<Requested, ToolError> {
        let mut requested = Requested { tip: Some(tip), is_pushed: true, ..Requested::default() };
        let Some(requests) = &self.requests else {
            let base = &self.context.branch;
            requested.why =
                Some(format!("branch `{branch}` is pushed; open the request for `{base}` by hand"));
            return Ok(requested);
        };
        match requests.ensure(&draft).await {
            Ok(link) => {
                requested.link = Some(link);
                let own = branch.to_owned();
                self.local(move |local| local.remove_reference(&format!("{PENDING}{own}"))).await?;
            }
            Err(error) => {
                let by_hand = requests.by_hand(&draft);
                let next = error.next_step();
                requested.why = Some(format!(
                    "branch `{branch}` is pushed; open the request by hand at {by_hand}: {error}; {next}"
                ));
            }
        }
        Ok(requested)
    }
}

/// Where the remote's branches are.
#[derive(Clone, Copy, Debug)]
struct RemoteHeads {
    main: Option<Oid>,
    request: Option<Oid>,
}

impl LockedRepo {
    /// Commits files to the branch of their request. The local branch stays where it is; the files stay in the
    /// working tree, where the agent can run them.
    pub(crate) fn commit_to_request(
        &mut self,
        branch: &str,
        files: &[PersistFile],
        verb: CommitKind,
    ) -> Result<Option<Oid>, ToolError> {
        let name = self.context.local(branch);
        let start = match self.reference(&name)? {
            Some(tip) => Some(tip),
            None => match self.tracking(branch)? {
                Some(tip) => Some(tip),
                None => self.start_of_request(files)?,
            },
        };
        let commit = self.commit(start, files, verb, None)?;
        for file in files {
            if let Some(content) = &file.content
                && self.worktree.look(&file.path)? == Standing::Nothing
            {
                self.worktree.write(&file.path, content, Executable::No)?;
            }
        }
        if let Some(commit) = commit {
            secure(&self.repo, &[commit], start.as_slice(), Vec::new())?;
            // The mark comes first: a branch without a request is found again, a mark without a branch is nothing.
            if self.context.opens_requests {
                self.set(&format!("{PENDING}{branch}"), commit, "request")?;
            }
            self.set(&name, commit, "request")?;
            sync_each(&self.reference_files(branch)).map_err(after_commit)?;
        }
        Ok(commit.or(start))
    }

    /// Where a new request begins: at the remote's branch as we know it, unless that has other versions of the files
    /// than the branch here. Then the work was made from ours, and the delivery has to see that.
    fn start_of_request(&self, files: &[PersistFile]) -> Result<Option<Oid>, ToolError> {
        let (head, known) = (self.head()?, self.tracking(&self.context.branch)?);
        let (Some(own), Some(theirs)) = (head, known) else { return Ok(known.or(head)) };
        let (ours, remote) = (self.tree(Some(own))?, self.tree(Some(theirs))?);
        for file in files {
            let path = Path::new(file.path.as_str());
            if rebase::entry(&ours, path)? != rebase::entry(&remote, path)? {
                return Ok(head);
            }
        }
        Ok(known)
    }

    /// Leftovers become requests, one for each tool; what a request has already is left alone.
    pub(crate) fn commit_to_requests(&mut self, work: ChangeSet) -> Result<Vec<RelativePath>, ToolError> {
        let mut committed = Vec::new();
        for file in work.files {
            let branch = request_branch(&file.path);
            let before = self.reference(&self.context.local(&branch))?;
            let path = file.path.clone();
            self.commit_to_request(&branch, &[file], work.verb)?;
            if self.reference(&self.context.local(&branch))? != before {
                committed.push(path);
            }
        }
        Ok(committed)
    }

    /// Brings a request's branch to where it can be pushed: on top of what others pushed to it, or starting
    /// again on the remote's branch when the old one was merged or removed.
    fn plan_request(&mut self, branch: &str, theirs: RemoteHeads) -> Result<Plan, ToolError> {
        let name = self.context.local(branch);
        let ours = self.reference(&name)?;
        let known = self.tracking(branch)?;
        if let Some(main) = theirs.main {
            self.set(&self.context.tracking(&self.context.branch), main, "fetch")?;
        }
        let Some(ours) = ours else {
            return Ok(Plan::Merged(theirs.request.or(theirs.main)));
        };
        let finished = match (theirs.request, theirs.main) {
            // No other writer touched it, and all of it is merged: it can start again.
            (Some(request), Some(main)) if known == Some(request) => self.is_contained(request, main)?,
            _ => false,
        };
        let (onto, replace) = match theirs.request {
            Some(request) if finished => (theirs.main, Replace::Only(request)),
            Some(request) => (Some(request), Replace::Never),
            None => (theirs.main, Replace::Never),
        };
        let tip = match onto {
            Some(onto) if !self.has(ours, onto)? => {
                let commits = local_commits(&self.repo, ours, onto, None)?;
                let derived = self.context.derived.clone();
                // A branch that continues where it is has all versions of ours below it.
                let settled = match theirs.request {
                    Some(_) if !finished => Settled::default(),
                    _ => rebase::settled(&self.repo, &commits, onto)?,
                };
                let rebased = rebase::rebase(&self.repo, &commits, onto, None, derived.path(), &settled)?;
                let lost = self.keep(rebased.conflicts, onto)?;
                self.set(&name, rebased.tip, "request: rebase")?;
                if let Some(conflict) = lost.into_iter().next() {
                    return Ok(Plan::Lost(conflict));
                }
                rebased.tip
            }
            _ => ours,
        };
        if let Some(main) = theirs.main
            && self.has(main, tip)?
        {
            return Ok(Plan::Merged(Some(tip)));
        }
        let draft = self.draft(branch, tip, theirs.main)?;
        Ok(Plan::Push { tip, replace, draft })
    }

    /// Whether everything that `request` changed is in `main`, under whatever commits.
    fn is_contained(&self, request: Oid, main: Oid) -> Result<bool, ToolError> {
        let commits = local_commits(&self.repo, request, main, None)?;
        let settled = rebase::settled(&self.repo, &commits, main)?;
        let derived = self.context.derived.path();
        let rebased = rebase::rebase(&self.repo, &commits, main, None, derived, &settled)?;
        Ok(rebased.tip == main && rebased.conflicts.is_empty())
    }

    fn draft(&self, branch: &str, tip: Oid, main: Option<Oid>) -> Result<Draft, ToolError> {
        let commits = match main {
            Some(main) => local_commits(&self.repo, tip, main, None)?,
            None => vec![tip],
        };
        let mut subjects = Vec::new();
        for id in commits.iter().take(MAX_SUBJECTS) {
            let commit = self.repo.find_commit(*id).doing("cannot read a commit")?;
            subjects.push(String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned());
        }
        let title = subjects.first().cloned().unwrap_or_else(|| branch.to_owned());
        let list: String = subjects.iter().map(|subject| format!("- {subject}\n")).collect();
        let derived = self.context.derived.path();
        let body =
            format!("{list}\n`{derived}` is computed from the tools and is not part of this request.\n");
        Ok(Draft { branch: branch.to_owned(), base: self.context.branch.clone(), title, body })
    }
}
