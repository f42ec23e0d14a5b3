//! Differences between versions of a file, as text.

use tgp_contract::{RelativePath, ToolError};
use tgp_git::{DeltaKind, FileDelta, FileVersion, ProjectRepo, VersionContent, WorkFiles};
use tgp_router::files::{Difference, difference_with_mode};

/// The difference of one file; a version that is too large or missing is described.
pub(super) fn difference_of(
    repo: &ProjectRepo,
    delta: &FileDelta,
    files: &dyn WorkFiles,
) -> Result<Difference, ToolError> {
    if delta.kind != DeltaKind::File {
        return Ok(Difference { text: String::new(), complete: true });
    }
    let before = version(repo, &delta.path, delta.before, files)?;
    let after = version(repo, &delta.path, delta.after, files)?;
    Ok(between(&delta.path, before.as_ref(), after.as_ref(), delta.executable()))
}

/// The same for contents that are known.
pub(super) fn between(
    path: &RelativePath,
    before: Option<&VersionContent>,
    after: Option<&VersionContent>,
    executable: Option<bool>,
) -> Difference {
    let too_large = |content: Option<&VersionContent>| match content {
        Some(VersionContent::TooLarge(bytes)) => Some(*bytes),
        _ => None,
    };
    if let Some(bytes) = too_large(before).or_else(|| too_large(after)) {
        let text =
            format!("--- a/{path}\n+++ b/{path}\nThe file has {bytes} bytes; its difference is not shown\n");
        return Difference { text, complete: false };
    }
    difference_with_mode(path.as_str(), bytes(before), bytes(after), executable)
}

fn bytes(content: Option<&VersionContent>) -> Option<&[u8]> {
    match content {
        Some(VersionContent::Bytes(bytes)) => Some(bytes),
        _ => None,
    }
}

pub(super) fn version(
    repo: &ProjectRepo,
    path: &RelativePath,
    version: Option<FileVersion>,
    files: &dyn WorkFiles,
) -> Result<Option<VersionContent>, ToolError> {
    version.map(|version| repo.content(path, version, files)).transpose()
}
