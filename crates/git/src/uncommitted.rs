//! Files of the working tree that no commit has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tgp_contract::{Code, RelativePath, ToolError};

use crate::bounds;
use crate::branch_names::{is_tool, request_branch, writable};
use crate::entry::Entry;
use crate::local::LockedRepo;
use crate::worktree::{Executable, Refusal, Standing};
use crate::{ChangeSet, CommitKind, PersistFile};

/// From this many tools on, more than half of them gone at once is an accident and no tidying up.
const MANY_TOOLS: usize = 10;

/// What lies in the working tree and differs from the branch.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// As pieces of work: new files, changed ones, removed ones.
    pub(crate) work: Vec<ChangeSet>,
    /// Files that are gone together with so many others that it cannot be intended.
    pub(crate) vanished: Vec<(RelativePath, Entry)>,
    /// What cannot be committed, a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// The derived file has no author, and what git ignores is not read.
pub(crate) fn leftovers(local: &LockedRepo) -> Result<Leftovers, ToolError> {
    let tree = local.tree(local.head()?)?;
    let (plain, other): (Vec<_>, Vec<_>) =
        bounds::files(&local.repo, tree.id())?.into_iter().partition(|(_, entry)| entry.is_plain());
    let mut committed: BTreeMap<RelativePath, Entry> =
        plain.into_iter().filter_map(|(path, entry)| writable(&path).map(|path| (path, entry))).collect();
    committed.remove(local.context.derived.path());
    let is_ignored = |path: &Path| local.repo.is_path_ignored(path).unwrap_or(false);
    let skip = |folder: &RelativePath| {
        is_ignored(Path::new(&format!("{folder}/"))) && !committed.keys().any(|path| path.is_inside(folder))
    };
    let found = local.worktree.files(&skip)?;
    let mut refused = found.refused;
    let (mut forged, mut changed) = (Vec::new(), Vec::new());
    let mut standing = 0_usize;
    for path in found.files {
        let old = committed.get(&path);
        // A file that was committed in spite of the rules is still followed.
        if path == *local.context.derived.path() || (old.is_none() && is_ignored(Path::new(path.as_str()))) {
            continue;
        }
        let look = local.worktree.look(&path)?;
        let blob = look.blob();
        let Standing::File(content) = look else {
            refused.push((PathBuf::from(path.as_str()), Refusal::Size));
            continue;
        };
        match old {
            Some(entry) => {
                standing += 1;
                if Some(entry.id) != blob {
                    changed.push(PersistFile { path, content: Some(content) });
                }
            }
            None => forged.push(PersistFile { path, content: Some(content) }),
        }
    }
    let mut gone = Vec::new();
    for (path, entry) in &committed {
        if local.worktree.look(path)? == Standing::Nothing {
            gone.push((path.clone(), *entry));
        }
    }
    let (mut removed, mut vanished) = (Vec::new(), Vec::new());
    if is_accident(local, &committed, &gone, standing)? {
        vanished = gone;
    } else {
        removed = gone.into_iter().map(|(path, _)| PersistFile { path, content: None }).collect();
    }
    // A link that a person committed with git is where it should be.
    refused.retain(|(path, _)| !is_ignored(path) && !other.iter().any(|(own, _)| own == path));
    let warnings =
        refused.iter().map(|(path, why)| format!("`{}` was not committed: {why}", shown(path))).collect();
    let pieces =
        [(forged, CommitKind::Forge), (changed, CommitKind::Refactor), (removed, CommitKind::Remove)];
    let work = pieces
        .into_iter()
        .filter(|(files, _)| !files.is_empty())
        .map(|(files, verb)| ChangeSet { files, verb })
        .collect();
    Ok(Leftovers { work, vanished, warnings })
}

/// Whether the files that are gone were lost and not removed: all tools, more than half of many, or everything.
fn is_accident(
    local: &LockedRepo,
    committed: &BTreeMap<RelativePath, Entry>,
    gone: &[(RelativePath, Entry)],
    standing: usize,
) -> Result<bool, ToolError> {
    let had = committed.keys().filter(|path| is_tool(path)).count();
    let mut lost = 0_usize;
    for (path, _) in gone.iter().filter(|(path, _)| is_tool(path)) {
        // A removal that was asked for in a request is intended.
        let branch = local.context.local(&request_branch(path));
        let is_requested = local.reference(&branch)?.is_some() && local.requested(path)?.is_none();
        lost += usize::from(!is_requested);
    }
    let are_tools_lost = lost > 0 && (lost == had || (had >= MANY_TOOLS && lost * 2 > had));
    Ok(are_tools_lost || (standing == 0 && gone.len() > 1))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

impl LockedRepo {
    /// Puts back what vanished, and says so.
    pub(crate) fn put_back(
        &mut self,
        vanished: &[(RelativePath, Entry)],
        warnings: &mut Vec<String>,
    ) -> Result<(), ToolError> {
        let (mut tools, mut others) = (0_usize, 0_usize);
        for (path, entry) in vanished {
            let executable = if entry.is_executable() { Executable::Yes } else { Executable::No };
            let content = bounds::blob(&self.repo, entry.id, Path::new(path.as_str()))?;
            match self.worktree.write(path, content.content(), executable) {
                Ok(()) if is_tool(path) => tools += 1,
                Ok(()) => others += 1,
                // Something in the way of one file must not keep all others from coming back.
                Err(error) if error.code == Code::Security => warnings.push(error.message),
                Err(error) => return Err(error),
            }
        }
        let (count, noun) = if tools > 0 { (tools, "tool") } else { (others, "file") };
        match count {
            0 => {}
            1 => warnings.push(format!(
                "1 {noun} was missing from the working tree and was put back; remove the last {noun} with git"
            )),
            _ => warnings.push(format!(
                "{count} {noun}s were missing from the working tree and were put back; remove {noun}s one by one, \
                 or with git"
            )),
        }
        Ok(())
    }
}
