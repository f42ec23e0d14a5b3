//! What the operations answer.

use git2::Oid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Code, RelativePath, ToolError};

/// What hydration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hydrated {
    pub outcome: HydrateOutcome,
    pub conflicts: Vec<Conflict>,
    /// What was repaired or left out on the way, a sentence each.
    pub repaired: Vec<String>,
}

/// Where the tools came from when the kernel started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HydrateOutcome {
    /// There was no history here; now there is the remote's.
    Cloned {
        to: String,
    },
    Unchanged,
    Updated {
        from: String,
        to: String,
    },
    /// No remote is configured, or it has no such branch yet.
    Local,
    /// The remote could not be asked; the local repository is used as it is.
    Offline {
        why: String,
    },
    /// What the remote has exceeds a limit; the local repository is used as it is.
    Refused {
        /// One sentence with the limit, the path and the next step.
        why: String,
    },
}

/// A path that was changed here and at the remote, in different ways. The remote's version is in the branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    pub path: RelativePath,
    /// The branch that keeps our version.
    pub branch: String,
    /// The commit with our version: the tip of that branch.
    pub ours: String,
    /// The remote's commit whose version is kept.
    pub theirs: String,
}

impl Conflict {
    /// The error for a caller that wanted to persist that path.
    pub(crate) fn into_error(self) -> ToolError {
        let message = format!(
            "`{}` was changed at the remote too; the remote's version ({}) stands, ours ({}) is kept on branch `{}`",
            self.path,
            short(&self.theirs),
            short(&self.ours),
            self.branch,
        );
        ToolError::new(Code::Conflict, message)
            .help("read the file again, apply the change to what it is now and write it once more")
            .detail("path", self.path.as_str())
            .detail("branch", self.branch)
            .detail("ours", self.ours)
            .detail("theirs", self.theirs)
    }
}

/// The result of one change set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persisted {
    pub commit: String,
    pub branch: String,
    pub pushed: bool,
    /// Why it was not pushed, or what is left to do by hand; also that the remote's audit is not the one here.
    pub why: Option<String>,
    pub request: Option<RequestLink>,
}

/// What an edit made of a file, and the result of its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub persisted: Persisted,
    /// The previous content; `None` when there was none.
    pub before: Option<Vec<u8>>,
    pub after: Vec<u8>,
}

/// A pull or merge request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestLink {
    pub url: String,
    pub number: u64,
    /// False when it was there before and was updated.
    pub created: bool,
}

/// What a synchronisation did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// Files that lay uncommitted in the working tree and are committed now.
    pub committed: Vec<RelativePath>,
    /// Files that were gone from the working tree and whose removal is committed now.
    pub removed: Vec<RelativePath>,
    /// Commits that came from the remote.
    pub pulled: usize,
    /// Commits of ours that the remote did not have before.
    pub pushed: usize,
    pub conflicts: Vec<Conflict>,
    pub requests: Vec<RequestLink>,
    /// Why something could not be delivered, or what is left to do by hand.
    pub why: Option<String>,
    /// What was found in the working tree and not committed, a sentence each; also that the remote has another head of
    /// this machine's audit.
    pub warnings: Vec<String>,
}

/// The newest versions, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub versions: Vec<Version>,
    /// False when older ones exist that are not on this machine or were beyond the limit of the search.
    pub complete: bool,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Version {
    pub commit: String,
    pub author: String,
    pub email: String,
    /// Milliseconds since 1970.
    pub time_ms: i64,
    pub subject: String,
    /// The files it changed, at most 100.
    pub paths: Vec<String>,
    /// Whether the remote is known to have it; `None` when there is no remote.
    pub pushed: Option<bool>,
}

/// The state of the repository, for `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryStatus {
    pub head: Option<String>,
    pub branch: String,
    /// The remote without credentials.
    pub remote: Option<String>,
    /// Commits that the remote is not known to have.
    pub unpushed: usize,
    pub shallow: bool,
    /// Branches that keep what lost a conflict.
    pub kept: Vec<String>,
    /// Branches whose request could not be opened yet.
    pub pending: Vec<String>,
}

/// Why a change is nowhere else.
pub(crate) const NO_REMOTE: &str = "no remote is configured; the tools are kept on this machine";

/// The id as a report has it: empty where there is no commit.
pub(crate) fn id_text(id: Option<Oid>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

pub(crate) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
