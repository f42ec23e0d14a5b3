//! What can happen to a file, and what two changes are together.

use serde::{Deserialize, Serialize};
use tgp_contract::RelativePath;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    Created,
    Changed,
    Deleted,
    Renamed,
}

impl FileChangeKind {
    pub const ALL: [Self; 4] = [Self::Created, Self::Changed, Self::Deleted, Self::Renamed];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
        }
    }
}

/// One difference between what was known of a file and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) kind: FileChangeKind,
    pub(crate) path: RelativePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<RelativePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<String>,
}

impl Change {
    /// This change and a later one of the same path as one; nothing when the later one reverts the earlier one.
    /// Renames are never joined: they are reported at once.
    pub(crate) fn then(self, later: Self) -> Option<Self> {
        let before = self.before;
        let kind = match (&before, &later.after) {
            (None, None) => return None,
            (Some(before), Some(after)) if before == after => return None,
            (None, Some(_)) => FileChangeKind::Created,
            (Some(_), Some(_)) => FileChangeKind::Changed,
            (Some(_), None) => FileChangeKind::Deleted,
        };
        Some(Self { kind, path: later.path, from: None, before, after: later.after })
    }
}
