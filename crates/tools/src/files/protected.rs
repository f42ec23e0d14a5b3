//! What stays out of reach in every tree, whoever asks: the same table that the rules are held to.

use tgp_contract::{Access, RelativePath, Root};

/// Whether a path must not even be seen.
pub(crate) fn is_protected(root: Root, path: &RelativePath) -> bool {
    tgp_policy::protected(root, path).is_some_and(|protection| protection.reads)
}

/// Whether a path must not be changed.
pub(crate) fn is_write_protected(root: Root, path: &RelativePath) -> bool {
    tgp_policy::protected(root, path).is_some_and(|protection| protection.forbids(Access::Write))
}
