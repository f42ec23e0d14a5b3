//! The commits of a branch, newest first.

use git2::{Commit, Sort};
use tgp_contract::{RelativePath, ToolError};
use tgp_text::truncate;

use super::{ProjectRepo, Reading, WorkFiles};
use crate::bounds;

/// Commits that one call looks at; a search for a file that ends here says that it is not complete.
const MAX_WALKED: usize = 50_000;
/// Characters of a message that are shown.
const MAX_MESSAGE_CHARS: usize = 4_000;
/// Characters of a name or an address.
const MAX_NAME_CHARS: usize = 200;
/// Bytes of a commit that is read.
const MAX_COMMIT_BYTES: usize = 1 << 20;
const READING: &str = "read the history";

/// Which commits are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// Where to begin; `HEAD` where nothing is said.
    pub revision: Option<String>,
    /// Only commits that changed this file or something in this directory.
    pub path: Option<RelativePath>,
    /// Commits to leave out at the beginning.
    pub skip: usize,
    /// Commits at most.
    pub limit: usize,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCommit {
    pub id: String,
    pub parents: Vec<String>,
    pub author: String,
    pub email: String,
    /// Milliseconds since the epoch at which it was committed.
    pub committed_ms: u64,
    pub message: String,
    /// Whether the message is longer.
    pub is_cut: bool,
}

/// Some commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    pub commits: Vec<LoggedCommit>,
    /// Whether there are more.
    pub has_more: bool,
    /// False when a bound was reached, so that there may be more.
    pub complete: bool,
}

impl ProjectRepo {
    /// Lists commits, newest first.
    ///
    /// # Errors
    /// `ENOTFOUND` for a revision that does not exist; `EGIT` when the history cannot be read.
    pub fn log(&self, request: &LogRequest, files: &dyn WorkFiles) -> Result<LogPage, ToolError> {
        let mut page = LogPage { complete: !self.repo.is_shallow(), ..LogPage::default() };
        let start = match &request.revision {
            Some(revision) => Some(self.commit_of(revision)?),
            None => self.head_commit()?,
        };
        let Some(start) = start else { return Ok(page) };
        let mut walk = self.repo.revwalk().reading(READING)?;
        walk.set_sorting(Sort::TIME).and_then(|()| walk.push(start)).reading(READING)?;
        let mut skip = request.skip;
        for (walked, id) in walk.enumerate() {
            if walked >= MAX_WALKED || files.is_due() {
                page.complete = false;
                break;
            }
            let id = id.reading(READING)?;
            let odb = self.repo.odb().reading(READING)?;
            if odb.read_header(id).reading(READING)?.0 > MAX_COMMIT_BYTES {
                page.complete = false;
                continue;
            }
            let commit = self.repo.find_commit(id).reading(READING)?;
            if !self.has_changed(&commit, request.path.as_ref(), files)? {
                continue;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            if page.commits.len() >= request.limit {
                page.has_more = true;
                break;
            }
            page.commits.push(logged(&commit));
        }
        Ok(page)
    }

    /// Whether a commit changed what the caller may see at a path, compared with each of its parents.
    fn has_changed(
        &self,
        commit: &Commit<'_>,
        path: Option<&RelativePath>,
        files: &dyn WorkFiles,
    ) -> Result<bool, ToolError> {
        let Some(path) = path else { return Ok(true) };
        let place = self.in_repository(path);
        let scope = std::slice::from_ref(path);
        let own = bounds::entry_at(&self.repo, commit.tree_id(), &place)?;
        for parent in commit.parents() {
            let is_same = bounds::entry_at(&self.repo, parent.tree_id(), &place)? == own
                || self.compare_commits(Some(parent.id()), commit.id(), scope, files)?.is_empty();
            if is_same {
                return Ok(false);
            }
        }
        if commit.parent_count() > 0 {
            return Ok(true);
        }
        Ok(own.is_some() && !self.compare_commits(None, commit.id(), scope, files)?.is_empty())
    }
}

fn logged(commit: &Commit<'_>) -> LoggedCommit {
    let text = |bytes: &[u8], most: usize| truncate(&String::from_utf8_lossy(bytes), most).to_string();
    let author = commit.author();
    let message = String::from_utf8_lossy(commit.message_bytes()).trim_end().to_owned();
    let shown = truncate(&message, MAX_MESSAGE_CHARS).to_string();
    LoggedCommit {
        id: commit.id().to_string(),
        parents: commit.parent_ids().map(|id| id.to_string()).collect(),
        author: text(author.name_bytes(), MAX_NAME_CHARS),
        email: text(author.email_bytes(), MAX_NAME_CHARS),
        committed_ms: u64::try_from(commit.time().seconds()).unwrap_or_default().saturating_mul(1000),
        is_cut: shown != message,
        message: shown,
    }
}
