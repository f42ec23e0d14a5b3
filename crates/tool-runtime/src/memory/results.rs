//! What the library answers, as every caller gets it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::RelativePath;
use tgp_git::{Conflict, RequestLink};

/// What a synchronisation of the tool repository did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncResult {
    /// Files that lay uncommitted in the working tree and are committed now.
    pub committed: Vec<RelativePath>,
    /// Files whose removal is committed now.
    pub removed: Vec<RelativePath>,
    /// Commits that came from the remote.
    pub pulled: usize,
    /// Commits that the remote has got.
    pub pushed: usize,
    /// Files that were changed on both sides.
    pub conflicts: Vec<Conflict>,
    pub requests: Vec<RequestLink>,
    pub head: Option<String>,
    pub branch: String,
    pub remote: Option<String>,
    pub warnings: Vec<String>,
    /// Why something was not delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The versions of the tool repository or of one of its files, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolLog {
    pub versions: Vec<ToolVersion>,
    /// False when there are more versions than were asked for.
    pub complete: bool,
}

/// One commit of the tool repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolVersion {
    pub commit: String,
    pub author: String,
    pub email: String,
    /// RFC 3339; nothing where the commit has no valid time.
    pub time: Option<String>,
    pub subject: String,
    pub paths: Vec<String>,
    /// Whether the remote has it; nothing without a remote.
    pub pushed: Option<bool>,
}

/// A file of the tool repository that was written and committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolWriteResult {
    pub path: RelativePath,
    /// Of the whole file.
    pub bytes: usize,
    pub created: bool,
    /// The commit that has it; nothing where the embedding program keeps the tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether the remote has it.
    pub pushed: bool,
    /// Why the remote does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The pull request that was opened for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestLink>,
    /// Tools that may do the same as a new one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<SimilarTool>,
    /// Errors that the checker finds in the tool as it was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// A tool that may do the same as one that was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimilarTool {
    pub path: RelativePath,
    /// From 0 to 1.
    pub score: f64,
    pub why: String,
}
