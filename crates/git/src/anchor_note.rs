//! What this machine knows of the anchor that the remote has.
//!
//! The note lies beside the audit. Who puts back an old copy of one puts back the other too, and then the remote has an
//! anchor that the note does not name. An anchor is noted before it is sent, because the process may be gone before it
//! could note it afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use git2::Oid;
use tgp_contract::ToolError;

use crate::failure::At;
use crate::fsync::sync_each;
use crate::worktree::TEMPORARY_PREFIX;

const NAME: &str = "git-anchor-pushed";
/// Written where the remote is not known to have any.
const NONE: &str = "none";
/// Anchors whose way to the remote was broken off. Few are: a remote that is away is not sent anything.
const MAX_SENT: usize = 16;

/// The first line names the anchor that the remote has, the others those that may have arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) confirmed: Option<Oid>,
    sent: Vec<Oid>,
}

impl Note {
    /// One that is missing or unreadable says nothing.
    pub(crate) fn read(state: &Path) -> Self {
        let text = fs::read_to_string(state.join(NAME)).unwrap_or_default();
        let mut lines = text.lines().map(|line| Oid::from_str(line).ok());
        let confirmed = lines.next().flatten();
        Self { confirmed, sent: lines.flatten().take(MAX_SENT).collect() }
    }

    /// Whether the anchor is one of this machine's, from before now.
    pub(crate) fn names(&self, anchor: Oid) -> bool {
        self.confirmed == Some(anchor) || self.sent.contains(&anchor)
    }

    pub(crate) fn send(&mut self, anchor: Oid) {
        self.sent.retain(|sent| *sent != anchor);
        self.sent.insert(0, anchor);
        self.sent.truncate(MAX_SENT);
    }

    pub(crate) fn refuse(&mut self, anchor: Oid) {
        self.sent.retain(|sent| *sent != anchor);
    }

    /// The remote has this one, so none that was sent before is still on its way.
    pub(crate) fn confirm(&mut self, anchor: Oid) {
        self.confirmed = Some(anchor);
        self.sent.clear();
    }

    /// Replaces the note. Only the holder of the lane writes it.
    pub(crate) fn write(&self, state: &Path) -> Result<(), ToolError> {
        const DOING: &str = "cannot note the anchor of the audit";
        let confirmed = self.confirmed.map_or(NONE.to_owned(), |anchor| anchor.to_string());
        let lines: Vec<String> =
            std::iter::once(confirmed).chain(self.sent.iter().map(Oid::to_string)).collect();
        let fresh: PathBuf = state.join(format!("{TEMPORARY_PREFIX}note-{}", std::process::id()));
        let target = state.join(NAME);
        fs::write(&fresh, lines.join("\n")).at(DOING, &fresh)?;
        sync_each(std::slice::from_ref(&fresh))?;
        fs::rename(&fresh, &target).at(DOING, &target)
    }
}
