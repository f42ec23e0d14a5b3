//! The packages that an installation puts in place, as a person is shown them.

use std::sync::Arc;

use tgp_contract::{Access, RelativePath, Root, Target};
use tgp_router::FileDiff;
use tgp_router::files::difference_with_mode;

use super::apply::CommandChange;

/// What an installation puts in place beside the changes of files: a person sees it, whatever was agreed to beforehand.
#[derive(Clone)]
pub(super) struct Installed {
    /// The file that a rule names to allow it.
    pub(super) manifest: RelativePath,
    /// The list of installed packages, before and after.
    pub(super) list: RelativePath,
    pub(super) before: Option<Vec<u8>>,
    pub(super) after: Option<Vec<u8>>,
}

impl Installed {
    pub(super) fn target(path: &RelativePath) -> Target {
        Target::File { root: Root::Project, path: path.clone(), access: Access::Write }
    }

    pub(super) fn shown(&self) -> FileDiff {
        FileDiff {
            root: Root::Project,
            path: self.list.clone(),
            before: self.before.as_deref().map(Arc::from),
            after: self.after.as_deref().map(Arc::from),
            executable: None,
        }
    }

    /// The exact difference of the lists, for a dry run.
    pub(super) fn preview(&self) -> CommandChange {
        let path = self.list.as_str();
        let shown = difference_with_mode(path, self.before.as_deref(), self.after.as_deref(), None);
        CommandChange {
            path: self.list.clone(),
            diff: Some(shown.text),
            truncated: Some(!shown.complete),
            ..CommandChange::default()
        }
    }
}
