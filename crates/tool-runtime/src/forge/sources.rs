//! The sources of a program as targets: found before the gates judge a call, and held to that when it runs.

use std::collections::BTreeSet;

use tgp_contract::{Access, Code, RelativePath, Root, Target, ToolError};
use tgp_router::Invocation;

/// What is done about the sources of a program while it is compiled.
pub(super) enum Sources<'a> {
    /// They are noted, for the gates. Nothing that is compiled for this reaches the caller.
    Find(BTreeSet<RelativePath>),
    /// They must be among what the gates have judged.
    Judged(Invocation<'a>),
    /// They are the kernel's own, and no call is about them.
    Own,
}

impl Sources<'_> {
    /// A source that the program consists of.
    pub(super) fn meet(&mut self, path: &RelativePath) -> Result<(), ToolError> {
        match self {
            Self::Find(found) => {
                found.insert(path.clone());
                Ok(())
            }
            Self::Judged(invocation) if invocation.has_judged(Root::Tools, path) => Ok(()),
            Self::Judged(_) => Err(unjudged(path)),
            Self::Own => Ok(()),
        }
    }

    /// The files that an import which failed could have meant. They are judged like sources, so that whether a denied one is
    /// there does not show.
    pub(super) fn miss(&mut self, paths: &[RelativePath]) {
        if let Self::Find(found) = self {
            found.extend(paths.iter().cloned());
        }
    }

    /// The same for a program that was compiled before.
    pub(super) fn meet_all<'p>(
        &mut self,
        mut paths: impl Iterator<Item = &'p RelativePath>,
    ) -> Result<(), ToolError> {
        paths.try_for_each(|path| self.meet(path))
    }

    /// What was found, without the program itself.
    pub(super) fn without(self, path: &RelativePath) -> BTreeSet<RelativePath> {
        match self {
            Self::Find(mut found) => {
                found.remove(path);
                found
            }
            Self::Judged(_) | Self::Own => BTreeSet::new(),
        }
    }
}

/// The sources were changed between the judgement and the run.
fn unjudged(path: &RelativePath) -> ToolError {
    let message = format!("`{path}` became a part of the tool after the rules had judged the call");
    ToolError::new(Code::Conflict, message)
        .detail("path", path.as_str())
        .help("nothing was run; repeat the call")
}

/// Files of the tool repository that a call reads.
pub fn as_targets(paths: impl IntoIterator<Item = RelativePath>) -> Vec<Target> {
    let target = |path| Target::File { root: Root::Tools, path, access: Access::Read };
    paths.into_iter().map(target).collect()
}
