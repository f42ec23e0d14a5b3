//! Files of the working tree that no commit has.

use std::collections::BTreeMap;
use std::path::Path;

use tgp_contract::{RelativePath, ToolError};

use crate::local::Local;
use crate::names::writable;
use crate::rebase::{self, Entry};
use crate::worktree::Standing;
use crate::{PersistFile, Verb, Work};

/// What lies in the working tree and differs from the branch, as pieces of work: new files, changed ones, removed
/// ones. The derived file is nobody's work, and what git ignores is not looked at.
pub(crate) fn leftovers(local: &Local) -> Result<Vec<Work>, ToolError> {
    let tree = local.tree(local.head()?)?;
    let mut committed: BTreeMap<RelativePath, Entry> = rebase::files(&tree)?
        .into_iter()
        .filter(|(_, entry)| entry.is_plain())
        .filter_map(|(path, entry)| writable(&path).map(|path| (path, entry)))
        .collect();
    committed.remove(local.context.derived.path());
    let is_ignored = |path: &RelativePath| {
        // A file that was committed in spite of the rules is still followed.
        !committed.contains_key(path) && local.repo.is_path_ignored(Path::new(path.as_str())).unwrap_or(false)
    };
    let skip = |folder: &RelativePath| {
        local.repo.is_path_ignored(Path::new(&format!("{folder}/"))).unwrap_or(false)
            && !committed.keys().any(|path| path.is_inside(folder))
    };
    let (mut forged, mut changed, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    let mut standing = 0_usize;
    for path in local.worktree.files(&skip)? {
        if path == *local.context.derived.path() || is_ignored(&path) {
            continue;
        }
        let look = local.worktree.look(&path)?;
        let blob = look.blob();
        let Standing::File(content) = look else { continue };
        match committed.get(&path) {
            Some(entry) => {
                standing += 1;
                if Some(entry.id) != blob {
                    changed.push(PersistFile { path, content: Some(content) });
                }
            }
            None => forged.push(PersistFile { path, content: Some(content) }),
        }
    }
    // Where every file is gone, nobody removed tools one by one: the folder was emptied, and the branch has them all.
    if standing > 0 || committed.len() == 1 {
        for path in committed.keys() {
            if local.worktree.look(path)? == Standing::Nothing {
                removed.push(PersistFile { path: path.clone(), content: None });
            }
        }
    }
    let pieces = [(forged, Verb::Forge), (changed, Verb::Refactor), (removed, Verb::Remove)];
    Ok(pieces
        .into_iter()
        .filter(|(files, _)| !files.is_empty())
        .map(|(files, verb)| Work { files, verb })
        .collect())
}
