//! What stays out of reach in every tree, for every caller: the same table that the rules must follow.

use std::sync::LazyLock;

use tgp_contract::{
    Access, FsError, PathProbe, RelativePath, Root, has_chronicle_name, is_chronicle_content,
};
use tgp_policy::{PolicySettings, Protections};

/// The table by names alone. A file that is only named as a chronicle is recognised by its content, see
/// [`check_chronicle`]; the further names that the project's layout reserves are checked by the gates.
static BY_NAME: LazyLock<Protections> = LazyLock::new(|| {
    let probe = Some(PathProbe::new(|_, _| false));
    Protections::new(&PolicySettings { probe, ..PolicySettings::default() })
});

/// Whether a path must not even be seen.
pub fn is_protected(root: Root, path: &RelativePath) -> bool {
    BY_NAME.of(root, path).is_some_and(|protection| protection.reads)
}

/// Whether a path must not be changed.
pub fn is_write_protected(root: Root, path: &RelativePath) -> bool {
    BY_NAME.of(root, path).is_some_and(|protection| protection.forbids(Access::Write))
}

/// Refuses a change that removes or overwrites a chronicle, wherever it is, or makes a file that a later migration would
/// take for one. `before` is asked only for a file with such a name.
pub fn check_chronicle(
    path: &RelativePath,
    before: impl FnOnce() -> Option<Vec<u8>>,
    after: Option<&[u8]>,
) -> Result<(), FsError> {
    if !has_chronicle_name(path) {
        return Ok(());
    }
    let is_chronicle =
        after.is_some_and(is_chronicle_content) || before().is_some_and(|bytes| is_chronicle_content(&bytes));
    if is_chronicle {
        let reason = "chronicles only grow, by events; no file tool, command or forged tool writes one";
        return Err(FsError::Security { path: path.to_string(), reason });
    }
    Ok(())
}
