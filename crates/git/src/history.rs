//! Looking back: versions and where the repository stands. Nothing here writes.

use std::collections::HashSet;
use std::path::Path;

use git2::{Oid, Repository, Sort};
use tgp_contract::{RelativePath, ToolError};

use crate::failure::Doing;
use crate::local::{Context, open_repository};
use crate::rebase;
use crate::request::PENDING;
use crate::{History, Status, Version};

/// Commits that are looked through for one file; a search that ends here says that it is not complete.
const MAX_WALKED: usize = 50_000;
/// More files of one commit are not listed.
const MAX_PATHS: usize = 100;
const READING: &str = "cannot read the history";

pub(crate) fn history(
    context: &Context,
    path: Option<&RelativePath>,
    limit: usize,
) -> Result<History, ToolError> {
    let repo = open_repository(context).doing("cannot open the tool repository")?;
    let Some(head) = reference(&repo, &context.local(&context.branch))? else {
        return Ok(History { versions: Vec::new(), complete: true });
    };
    let unpushed: HashSet<Oid> = unpushed(&repo, context, head)?.into_iter().collect();
    let mut walk = repo.revwalk().doing(READING)?;
    walk.set_sorting(Sort::TOPOLOGICAL).and_then(|()| walk.simplify_first_parent()).doing(READING)?;
    walk.push(head).doing(READING)?;
    let mut history = History { versions: Vec::new(), complete: !repo.is_shallow() };
    for (walked, id) in walk.enumerate() {
        if history.versions.len() >= limit || walked >= MAX_WALKED {
            history.complete = false;
            break;
        }
        let commit = repo.find_commit(id.doing(READING)?).doing(READING)?;
        let tree = commit.tree().doing(READING)?;
        let base = match commit.parent_count() {
            0 => None,
            _ => Some(commit.parent(0).and_then(|parent| parent.tree()).doing(READING)?),
        };
        if let Some(path) = path {
            let path = Path::new(path.as_str());
            let old = base.as_ref().map(|base| rebase::entry(base, path)).transpose()?.flatten();
            if old == rebase::entry(&tree, path)? {
                continue;
            }
        }
        let changes = rebase::changes(&repo, base.as_ref(), Some(&tree))?;
        let author = commit.author();
        history.versions.push(Version {
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
            pushed: !unpushed.contains(&commit.id()),
        });
    }
    Ok(history)
}

pub(crate) fn status(context: &Context, remote: Option<String>) -> Result<Status, ToolError> {
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
    Ok(Status {
        head: head.map(|head| head.to_string()),
        branch: context.branch.clone(),
        remote,
        unpushed: head.map_or(Ok(0), |head| unpushed(&repo, context, head).map(|commits| commits.len()))?,
        shallow: repo.is_shallow(),
        kept: names("refs/heads/kept/*", "refs/heads/")?,
        pending: names(&format!("{PENDING}*"), PENDING)?,
    })
}

/// The commits that the remote is not known to have.
fn unpushed(repo: &Repository, context: &Context, head: Oid) -> Result<Vec<Oid>, ToolError> {
    let mut walk = repo.revwalk().doing(READING)?;
    walk.push(head).doing(READING)?;
    if let Some(tracking) = reference(repo, &context.tracking(&context.branch))? {
        walk.hide(tracking).doing(READING)?;
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
