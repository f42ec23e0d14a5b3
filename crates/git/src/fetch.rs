//! Bringing the remote's objects here.

use std::fs;

use git2::Oid;

use crate::command::words;
use crate::failure::blocking;
use crate::network::{Missing, Network, Unreachable};
use crate::received::{exceeded, remove_unfinished, unfinished_packs};
use crate::scratch::shallow;

/// What came with a fetch.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// One for each branch that was asked for.
    pub(crate) tips: Vec<Oid>,
    /// The new list of commits whose parents are not here, when it changed.
    pub(crate) shallow: Option<Vec<u8>>,
}

/// How much history a fetch brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The newest commit only.
    Newest,
    /// All that is missing.
    Missing,
}

impl Network {
    /// Brings the branches' objects here. References are for the caller to move.
    pub(crate) async fn fetch(
        &self,
        branches: &[&str],
        haves: &[Oid],
        depth: Depth,
    ) -> Result<Fetched, Unreachable> {
        let fetched = self.receive(branches, haves, depth).await;
        // A remote that sends too much was reached.
        let away = fetched.as_ref().err().filter(|unreachable| unreachable.missing != Missing::Room);
        self.remember(away.map(|unreachable| unreachable.why.as_str()));
        fetched
    }

    async fn receive(&self, branches: &[&str], haves: &[Oid], depth: Depth) -> Result<Fetched, Unreachable> {
        let scratch = self.scratch(haves.to_vec()).await?;
        let mut arguments = words(&[
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--update-shallow",
            "--no-recurse-submodules",
            "--no-show-forced-updates",
        ]);
        if depth == Depth::Newest {
            arguments.push("--depth=1".into());
        }
        arguments.extend(words(&["--", &self.endpoint.url]));
        for (number, branch) in branches.iter().enumerate() {
            arguments.push(format!("+refs/heads/{branch}:refs/incoming/{number}").into());
        }
        let before = unfinished_packs(&self.git);
        let answer = self.git(&scratch, arguments, self.timeouts.transfer).await;
        let is_success = matches!(&answer, Ok(answer) if answer.is_success);
        let mut received = 0;
        if !is_success {
            let (git, root) = (self.git.clone(), self.state.clone());
            let removed = blocking(move || Ok(remove_unfinished(&git, &root, &before))).await;
            received = removed.unwrap_or_default();
        }
        let answer = answer?;
        if !is_success {
            return Err(match exceeded(&answer.stderr, received, self.limits) {
                Some(why) => Unreachable { why, missing: Missing::Room },
                None => Unreachable::remote(self.why(&answer.stderr).await),
            });
        }
        let tip = |number: usize| {
            let text = fs::read_to_string(scratch.path.join(format!("refs/incoming/{number}"))).ok()?;
            Oid::from_str(text.trim()).ok()
        };
        let tips = (0..branches.len()).map(tip).collect::<Option<Vec<Oid>>>();
        let tips = tips.ok_or_else(|| Unreachable::remote("git fetched nothing although it said so"))?;
        let own = shallow(&scratch.path);
        Ok(Fetched { tips, shallow: if own == shallow(&self.git) { None } else { own } })
    }
}
