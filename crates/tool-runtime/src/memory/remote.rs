//! Where the tools are sent, and what would go there now. Nothing here asks the network.

use serde_json::{Value, json};
use tgp_contract::{Target, ToolError};
use url::Url;

use super::ToolLibrary;

/// Commits that a preview names; the others are counted.
const MAX_COMMITS: usize = 50;
/// Files of one commit, and branches, that a preview names.
const MAX_NAMES: usize = 20;
/// Characters of a commit's subject: longer ones are cut.
const MAX_SUBJECT: usize = 200;

/// The remote as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteName {
    /// Without credentials.
    pub url: String,
    /// In lower case; none for a path on this machine.
    pub host: Option<String>,
}

impl RemoteName {
    pub(super) fn new(url: String) -> Self {
        let host = host(&url).map(|host| host.to_lowercase());
        Self { url, host }
    }
}

/// The host of `scheme://host/path` or `user@host:path`.
fn host(url: &str) -> Option<String> {
    if url.contains("://") {
        return Url::parse(url).ok()?.host_str().map(str::to_owned);
    }
    let before_path = url.split('/').next()?;
    let name = before_path.rsplit('@').next()?;
    // The colons of an address are in brackets.
    let end = name.find(']').map_or_else(|| name.find(':'), |end| Some(end + 1))?;
    name.get(..end).filter(|host| !host.is_empty()).map(str::to_owned)
}

impl ToolLibrary {
    /// The host that every change of a tool is sent to.
    pub fn remote_target(&self) -> Option<Target> {
        let host = self.remote()?.host.clone()?;
        Some(Target::Host { host })
    }

    /// What a synchronisation would send, as far as this machine knows; nothing without a remote.
    pub async fn outgoing(&self) -> Result<Option<Value>, ToolError> {
        let Some(remote) = self.remote() else { return Ok(None) };
        let status = self.status().await?;
        let newest = self.git()?.history(None, MAX_COMMITS).await?.versions.into_iter();
        let commits: Vec<Value> = newest
            .filter(|version| version.pushed == Some(false))
            .map(|version| {
                let subject: String = version.subject.chars().take(MAX_SUBJECT).collect();
                let paths: Vec<&String> = version.paths.iter().take(MAX_NAMES).collect();
                json!({ "commit": version.commit, "subject": subject, "paths": paths })
            })
            .collect();
        let named = |names: Vec<String>| names.into_iter().take(MAX_NAMES).collect::<Vec<_>>();
        Ok(Some(json!({
            "remote": remote.url,
            "branch": status.branch,
            "ahead": status.unpushed,
            "commits": commits,
            "commitsTruncated": commits.len() < status.unpushed,
            "kept": named(status.kept),
            "pending": named(status.pending),
            "note": "what lies uncommitted in the tool repository is committed first, and sent as well",
        })))
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
