//! Setting a branch of the remote.

use std::ffi::OsString;
use std::sync::atomic::Ordering;

use git2::Oid;

use crate::anchor::Anchored;
use crate::anchor_push::refspec;
use crate::command::{Finished, words};
use crate::network::Network;
use crate::push_report::{has_taken, lines_of};
use crate::scratch::ScratchRepo;

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Done,
    /// The remote's branch is not where it was.
    Moved,
    /// Another process writes the remote's branch, or was killed while it did.
    Locked(String),
    /// The remote does not want it, and will not in a minute.
    Refused(String),
    Unreachable(String),
}

/// Whether a push may replace what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replace {
    Never,
    /// Only exactly this commit.
    Only(Oid),
}

impl Network {
    /// Sets the remote's branch to `commit`.
    pub(crate) async fn push(&self, commit: Oid, branch: &str, replace: Replace) -> Pushed {
        let pushed = self.send(commit, branch, replace).await;
        // A refusal is an answer too.
        self.remember(match &pushed {
            Pushed::Unreachable(why) => Some(why),
            Pushed::Done | Pushed::Moved | Pushed::Locked(_) | Pushed::Refused(_) => None,
        });
        pushed
    }

    async fn send(&self, commit: Oid, branch: &str, replace: Replace) -> Pushed {
        let scratch = match self.scratch(Vec::new()).await {
            Ok(scratch) => scratch,
            Err(unreachable) => return Pushed::Unreachable(unreachable.why),
        };
        let mut options =
            words(&["push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"]);
        if let Replace::Only(old) = replace {
            options.push(format!("--force-with-lease=refs/heads/{branch}:{old}").into());
        }
        let target = format!("refs/heads/{branch}");
        let what = words(&["--", &self.endpoint.url, &format!("{commit}:{target}")]);
        if !self.refuses_anchors.load(Ordering::Relaxed)
            && let Some(anchored) = self.anchor_for(&scratch).await
            && let Some(lease) = self.announce(&anchored).await
        {
            let own = [lease.option(&anchored)];
            let with_anchor = [&*options, &own, &what, &[refspec(&anchored)]].concat();
            let pushed = self.push_words(&scratch, with_anchor, &target, Some(&anchored)).await;
            if !matches!(pushed, Pushed::Refused(_)) {
                return pushed;
            }
            // A hook may refuse everything for the sake of one reference that it does not know.
            let pushed = self.push_words(&scratch, [options, what].concat(), &target, None).await;
            self.refuses_anchors.store(pushed == Pushed::Done, Ordering::Relaxed);
            return pushed;
        }
        self.push_words(&scratch, [options, what].concat(), &target, None).await
    }

    async fn push_words(
        &self,
        scratch: &ScratchRepo,
        arguments: Vec<OsString>,
        target: &str,
        anchored: Option<&Anchored>,
    ) -> Pushed {
        match self.git(scratch, arguments, self.timeouts.transfer).await {
            Err(unreachable) => Pushed::Unreachable(unreachable.why),
            Ok(answer) => {
                if let Some(anchored) = anchored {
                    self.heard(scratch, &answer, anchored).await;
                }
                // Git calls it a failure when one of two references was refused; only the branch matters here.
                if answer.is_success || has_taken(&answer, target) {
                    Pushed::Done
                } else {
                    self.judge(&answer, target).await
                }
            }
        }
    }

    async fn judge(&self, answer: &Finished, target: &str) -> Pushed {
        let Some(line) = lines_of(answer, target).find(|line| line.starts_with('!')) else {
            return Pushed::Unreachable(self.why(&answer.stderr).await);
        };
        let summary = line.rsplit('\t').next().unwrap_or_default();
        if let Some(lock) = answer.stderr.lines().find(|line| is_about_a_lock(line)) {
            let lock = lock.trim_start_matches("remote:").trim().trim_start_matches("error:").trim();
            let why = format!("the remote is locked by another process, or by one that was killed: {lock}");
            let why = self.shown(&why);
            return Pushed::Locked(format!(
                "{why}; run `tgp sync` again, and if it stays, have that file removed at the remote"
            ));
        }
        // The messages of two pushes that arrive at once: the loser has to try again.
        let races = [
            "fetch first",
            "non-fast-forward",
            "stale info",
            "cannot lock ref",
            "failed to update ref",
            "reference already exists",
            "incorrect old value",
            "remote ref updated since checkout",
            "needs force",
        ];
        if races.iter().any(|race| summary.contains(race) || answer.stderr.contains(&format!("({race})"))) {
            return Pushed::Moved;
        }
        let reason = summary.trim_start_matches("[remote rejected]").trim_start_matches("[rejected]").trim();
        let reason = reason.trim_start_matches('(').trim_end_matches(')');
        let said: Vec<&str> = answer
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("remote:").map(str::trim))
            .filter(|line| !line.is_empty())
            .collect();
        let why = match said.last() {
            Some(said) => format!("the remote refused the push: {reason}: {said}"),
            None => format!("the remote refused the push: {reason}"),
        };
        let why = self.shown(&why);
        let next =
            "the rules of the remote decide that: have them changed there, or set another `git.branch`";
        Pushed::Refused(format!("{why}; {next}"))
    }
}

/// Whether git says that a lock file of the remote is in the way.
fn is_about_a_lock(line: &str) -> bool {
    line.contains("Unable to create") && line.contains(".lock'") && line.contains("File exists")
}
