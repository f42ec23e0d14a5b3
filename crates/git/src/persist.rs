//! Committing one piece of work, and handing it on.

use std::collections::BTreeSet;

use git2::{ObjectType, Oid};
use tgp_contract::{Code, RelativePath, ToolError};

use crate::branch_names::{admit, is_tool};
use crate::checkout::Uncommitted;
use crate::inner::Inner;
use crate::local::LockedRepo;
use crate::remote_push::{Delivered, PendingPush};
use crate::report::{NO_REMOTE, id_text};
use crate::uncommitted::leftovers;
use crate::{ChangeSet, CommitKind, PersistFile, Persisted, Strategy};

/// One piece of work is a tool with what belongs to it.
const MAX_FILES: usize = 10_000;

impl Inner {
    pub(crate) async fn persist(&self, work: ChangeSet) -> Result<Persisted, ToolError> {
        check(&work, self.context.derived.path())?;
        let files = blobs(&work.files);
        for (path, blob) in &files {
            if let Some(conflict) = self.take_set_aside(path, *blob) {
                return Err(conflict.into_error());
            }
        }
        match self.strategy {
            Strategy::Direct => self.persist_directly(work, files).await,
            Strategy::Request => self.persist_as_request(work).await,
        }
    }

    async fn persist_directly(
        &self,
        work: ChangeSet,
        files: Vec<(RelativePath, Option<Oid>)>,
    ) -> Result<Persisted, ToolError> {
        let commit = self.local(move |local| local.commit_to_branch(&work)).await?;
        self.deliver_commit(commit, files).await
    }

    /// Delivers what `commit` did to `files`.
    pub(crate) async fn deliver_commit(
        &self,
        commit: Option<Oid>,
        files: Vec<(RelativePath, Option<Oid>)>,
    ) -> Result<Persisted, ToolError> {
        let branch = self.context.branch.clone();
        let Some(network) = &self.network else {
            let why = Some(NO_REMOTE.to_owned());
            return Ok(Persisted { commit: id_text(commit), branch, pushed: false, why, request: None });
        };
        let ticket = commit.map(|commit| PendingPush { commit, files });
        let delivered = match self.deliver(network, ticket.clone()).await {
            Ok(delivered) => delivered,
            // The commit is in place, unless another one took its place: not to be delivered is not an error.
            Err(error) => {
                let found = self.undelivered(Delivered::default(), ticket, error.message).await;
                found.map_err(ToolError::of_unknown_outcome)?
            }
        };
        if let Some(conflict) = delivered.lost.into_iter().next() {
            return Err(conflict.into_error());
        }
        Ok(Persisted {
            commit: id_text(delivered.commit.or(commit)),
            branch,
            pushed: delivered.is_pushed,
            why: network.with_dispute(delivered.why),
            request: None,
        })
    }
}

impl LockedRepo {
    /// Commits `work` and moves the branch. Returns where it is then, also when there was nothing to do.
    pub(crate) fn commit_to_branch(&mut self, work: &ChangeSet) -> Result<Option<Oid>, ToolError> {
        let mut head = self.head()?;
        if head.is_none() && work.verb != CommitKind::Start {
            head = self.start(work)?;
        }
        let derived = self.context.derived.clone();
        let Some(commit) = self.commit(head, &work.files, work.verb, Some(&*derived))? else {
            return Ok(head);
        };
        let subject = work.files.first().map(|file| format!("{}: {}", work.verb, file.path));
        self.advance(head, commit, Uncommitted::Leave, &subject.unwrap_or_default())?;
        Ok(Some(commit))
    }

    /// Commits the files around the tools before the first of them: settings for editors, rules for git.
    fn start(&mut self, work: &ChangeSet) -> Result<Option<Oid>, ToolError> {
        let named = |path: &RelativePath| work.files.iter().any(|file| file.path == *path);
        let files: Vec<PersistFile> = leftovers(self)?
            .work
            .into_iter()
            .flat_map(|work| work.files)
            .filter(|file| !named(&file.path) && !is_tool(&file.path))
            .collect();
        if files.is_empty() {
            return Ok(None);
        }
        self.commit_to_branch(&ChangeSet { files, verb: CommitKind::Start })
    }
}

/// Refuses what no working tree may hold, and what is never written.
pub(crate) fn admit_file(path: &RelativePath, derived: &RelativePath) -> Result<(), ToolError> {
    admit(path)?;
    if path == derived {
        let message = format!("`{path}` is computed from the other files and cannot be persisted");
        return Err(ToolError::new(Code::Validation, message).help("change a tool, and it follows"));
    }
    Ok(())
}

fn check(work: &ChangeSet, derived: &RelativePath) -> Result<(), ToolError> {
    let wrong = |message: String| Err(ToolError::new(Code::Validation, message).help("name each file once"));
    if work.files.is_empty() || work.files.len() > MAX_FILES {
        return wrong(format!("a piece of work has 1 to {MAX_FILES} files, not {}", work.files.len()));
    }
    let mut seen = BTreeSet::new();
    for PersistFile { path, .. } in &work.files {
        admit_file(path, derived)?;
        if !seen.insert(path) {
            return wrong(format!("`{path}` is named twice"));
        }
    }
    Ok(())
}

pub(crate) fn blobs(files: &[PersistFile]) -> Vec<(RelativePath, Option<Oid>)> {
    let blob = |content: &Vec<u8>| Oid::hash_object(ObjectType::Blob, content).ok();
    files.iter().map(|file| (file.path.clone(), file.content.as_ref().and_then(blob))).collect()
}
