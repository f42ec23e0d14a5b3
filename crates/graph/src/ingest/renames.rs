//! Files that a commit has renamed.

use git2::{Delta, Diff, DiffFindOptions, Repository};

use super::parse::MAX_BLOB_BYTES;
use super::repository::is_file;
use crate::tables::failure::GraphError;

/// Git compares each added file with each removed one; beyond this many only identical files are taken for renamed.
const RENAME_LIMIT: usize = 300;

/// Renames are only looked for where something is gone and something is new. To compare files git reads them whole, so
/// where one of them is too large only identical files are taken for renamed.
pub(super) fn find_renames(git: &Repository, diff: &mut Diff<'_>) -> Result<(), GraphError> {
    let count =
        |diff: &Diff<'_>, wanted: Delta| diff.deltas().filter(|delta| delta.status() == wanted).count();
    let (added, deleted) = (count(diff, Delta::Added), count(diff, Delta::Deleted));
    if added == 0 || deleted == 0 {
        return Ok(());
    }
    let mut options = DiffFindOptions::new();
    options.renames(true).copies(false).rewrites(false).rename_limit(RENAME_LIMIT);
    if added.saturating_mul(deleted) > RENAME_LIMIT * RENAME_LIMIT || has_large_file(git, diff)? {
        options.exact_match_only(true);
    }
    diff.find_similar(Some(&mut options))?;
    Ok(())
}

/// Whether a file that is gone or new is too large to be compared.
fn has_large_file(git: &Repository, diff: &Diff<'_>) -> Result<bool, GraphError> {
    let odb = git.odb()?;
    for delta in diff.deltas() {
        let file = match delta.status() {
            Delta::Added => delta.new_file(),
            Delta::Deleted => delta.old_file(),
            _ => continue,
        };
        // One that a partial clone does not have is not read either.
        if is_file(file.mode()) && odb.read_header(file.id()).is_ok_and(|(size, _)| size > MAX_BLOB_BYTES) {
            return Ok(true);
        }
    }
    Ok(false)
}
