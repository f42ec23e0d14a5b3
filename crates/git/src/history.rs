//! Versions and the state of the repository. Nothing here writes.

use std::collections::HashSet;
use std::path::Path;

use git2::{Commit, Oid, Repository, Revwalk, Sort};
use tgp_contract::{RelativePath, ToolError};

use crate::bounds::{self, Stop};
use crate::branch_names::{CONFLICTS, PENDING, request_branch, writable};
use crate::failure::Doing;
use crate::local::{Context, open_repository};
use crate::rebase;
use crate::{History, RepositoryStatus, Strategy, Version};

/// Commits that are searched for one file; a search that ends here says that it is not complete.
const MAX_WALKED: usize = 50_000;
/// More files of one commit are not listed.
const MAX_PATHS: usize = 100;
const READING: &str = "cannot read the history";

/// Whose versions are looked for, and where.
pub(crate) struct Question {
    pub(crate) path: Option<RelativePath>,
    pub(crate) limit: usize,
    pub(crate) strategy: Strategy,
    pub(crate) has_remote: bool,
}

pub(crate) fn history(context: &Context, question: &Question) -> Result<History, ToolError> {
    let repo = open_repository(context).doing("cannot open the tool repository")?;
    let head = reference(&repo, &context.local(&context.branch))?;
    let mut history = History { versions: Vec::new(), complete: true };
    if let (Strategy::Request, Some(path)) = (question.strategy, &question.path) {
        requested_versions(&repo, context, head, path, question, &mut history)?;
    }
    let Some(head) = head else { return Ok(history) };
    let unpushed: HashSet<Oid> = unpushed(&repo, context, &context.branch, head)?.into_iter().collect();
    let walk = first_parents(&repo, head)?;
    history.complete &= !repo.is_shallow();
    for (walked, id) in walk.enumerate() {
        if history.versions.len() >= question.limit || walked >= MAX_WALKED {
            history.complete = false;
            break;
        }
        let commit = repo.find_commit(id.doing(READING)?).doing(READING)?;
        let pushed = question.has_remote.then(|| !unpushed.contains(&commit.id()));
        history.versions.extend(version(&repo, &commit, question.path.as_ref(), pushed)?);
    }
    Ok(history)
}

/// What the branch of the file's request has and `head` has not yet, however it was merged: from the version of the
/// file that `head` has, all that is older is merged.
fn requested_versions(
    repo: &Repository,
    context: &Context,
    head: Option<Oid>,
    path: &RelativePath,
    question: &Question,
    history: &mut History,
) -> Result<(), ToolError> {
    let branch = request_branch(path);
    let Some(tip) = reference(repo, &context.local(&branch))? else { return Ok(()) };
    let unpushed: HashSet<Oid> = unpushed(repo, context, &branch, tip)?.into_iter().collect();
    let mut walk = first_parents(repo, tip)?;
    let place = Path::new(path.as_str());
    let mut merged = None;
    for known in [head, reference(repo, &context.tracking(&context.branch))?].into_iter().flatten() {
        walk.hide(known).doing(READING)?;
    }
    if let Some(head) = head {
        let tree = repo.find_commit(head).and_then(|commit| commit.tree()).doing(READING)?;
        merged = rebase::entry(&tree, place)?;
    }
    for (walked, id) in walk.enumerate() {
        if history.versions.len() >= question.limit || walked >= MAX_WALKED {
            history.complete = false;
            break;
        }
        let commit = repo.find_commit(id.doing(READING)?).doing(READING)?;
        let own = bounds::entry_at(repo, commit.tree_id(), place)?;
        if own.is_some() && own == merged {
            break;
        }
        let pushed = question.has_remote.then(|| !unpushed.contains(&commit.id()));
        history.versions.extend(version(repo, &commit, Some(path), pushed)?);
    }
    Ok(())
}

fn first_parents(repo: &Repository, tip: Oid) -> Result<Revwalk<'_>, ToolError> {
    let mut walk = repo.revwalk().doing(READING)?;
    walk.set_sorting(Sort::TOPOLOGICAL).and_then(|()| walk.simplify_first_parent()).doing(READING)?;
    walk.push(tip).doing(READING)?;
    Ok(walk)
}

/// The commit as a version, unless it left `path` alone.
fn version(
    repo: &Repository,
    commit: &Commit<'_>,
    path: Option<&RelativePath>,
    pushed: Option<bool>,
) -> Result<Option<Version>, ToolError> {
    let tree = commit.tree_id();
    let base = match commit.parent_count() {
        0 => None,
        _ => Some(commit.parent(0).doing(READING)?.tree_id()),
    };
    if let Some(path) = path {
        let path = Path::new(path.as_str());
        let old = base.map(|base| bounds::entry_at(repo, base, path)).transpose()?.flatten();
        if old == bounds::entry_at(repo, tree, path)? {
            return Ok(None);
        }
    }
    let mut changes = Vec::new();
    match bounds::compare(repo, base, Some(tree), &mut changes) {
        // A commit of any size is listed, with the first of its files.
        Ok(()) | Err(Stop::Limit(_)) => {}
        Err(Stop::Failed(error)) => return Err(error),
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    let author = commit.author();
    Ok(Some(Version {
        commit: commit.id().to_string(),
        author: String::from_utf8_lossy(author.name_bytes()).into_owned(),
        email: String::from_utf8_lossy(author.email_bytes()).into_owned(),
        time_ms: author.when().seconds().saturating_mul(1000),
        subject: String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned(),
        paths: changes
            .iter()
            .take(MAX_PATHS)
            .map(|change| change.path.to_string_lossy().into_owned())
            .collect(),
        pushed,
    }))
}

/// The files that differ between two commits; `None` when that is unknown.
pub(crate) fn changed(
    context: &Context,
    from: &str,
    to: &str,
) -> Result<Option<Vec<RelativePath>>, ToolError> {
    let repo = open_repository(context).doing("cannot open the tool repository")?;
    let tree = |id: &str| {
        let commit = Oid::from_str(id).and_then(|id| repo.find_commit(id));
        commit.map(|commit| commit.tree_id()).ok()
    };
    let (Some(old), Some(new)) = (tree(from), tree(to)) else { return Ok(None) };
    let mut changes = Vec::new();
    match bounds::compare(&repo, Some(old), Some(new), &mut changes) {
        Ok(()) => {}
        Err(Stop::Limit(_)) => return Ok(None),
        Err(Stop::Failed(error)) => return Err(error),
    }
    // A name that no working tree may hold is not a file of ours.
    Ok(Some(changes.iter().filter_map(|change| writable(&change.path)).collect()))
}

pub(crate) fn status(context: &Context, remote: Option<String>) -> Result<RepositoryStatus, ToolError> {
    let repo = open_repository(context).doing("cannot open the tool repository")?;
    let head = reference(&repo, &context.local(&context.branch))?;
    let names = |glob: &str, prefix: &str| -> Result<Vec<String>, ToolError> {
        let found = repo.references_glob(glob).doing("cannot list branches")?;
        let mut names: Vec<String> = found
            .filter_map(Result::ok)
            .filter_map(|found| {
                found.name().ok().and_then(|name| name.strip_prefix(prefix)).map(str::to_owned)
            })
            .collect();
        names.sort();
        Ok(names)
    };
    Ok(RepositoryStatus {
        head: head.map(|head| head.to_string()),
        branch: context.branch.clone(),
        remote,
        unpushed: head.map_or(Ok(0), |head| {
            unpushed(&repo, context, &context.branch, head).map(|commits| commits.len())
        })?,
        shallow: repo.is_shallow(),
        kept: CONFLICTS
            .iter()
            .map(|prefix| names(&format!("refs/heads/{prefix}*"), "refs/heads/"))
            .collect::<Result<Vec<_>, _>>()?
            .concat(),
        // Marks of a time when there was an API do not count now.
        pending: if context.opens_requests { names(&format!("{PENDING}*"), PENDING)? } else { Vec::new() },
    })
}

/// The commits of `branch`, which is at `tip`, that the remote is not known to have.
fn unpushed(repo: &Repository, context: &Context, branch: &str, tip: Oid) -> Result<Vec<Oid>, ToolError> {
    let mut walk = repo.revwalk().doing(READING)?;
    walk.push(tip).doing(READING)?;
    for known in [branch, &context.branch] {
        if let Some(tracking) = reference(repo, &context.tracking(known))? {
            walk.hide(tracking).doing(READING)?;
        }
    }
    walk.take(MAX_WALKED).collect::<Result<_, _>>().doing(READING)
}

fn reference(repo: &Repository, name: &str) -> Result<Option<Oid>, ToolError> {
    match repo.refname_to_id(name) {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error).doing("cannot read a reference"),
    }
}
