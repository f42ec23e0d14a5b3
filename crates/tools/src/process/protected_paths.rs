//! What a command must not see or change, found in the project as it is now.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use tgp_contract::{RelativePath, Root};
use tgp_policy::Protections;

/// Directories whose content is generated or fetched, so that nobody keeps a secret in them by intention, and which
/// can be so large that looking through them would cost more than the command.
const NOT_SEARCHED: [&str; 6] = ["node_modules", "target", ".venv", "venv", "__pycache__", "dist"];

/// Entries that are looked at. A project with more is searched so far; what comes later is still judged when it is
/// written, only not hidden from being read.
const MAX_ENTRIES: usize = 200_000;

/// Paths of the project, relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProtectedPaths {
    /// Must not even be read.
    pub(super) hidden: Vec<PathBuf>,
    /// Can be read.
    pub(super) read_only: Vec<PathBuf>,
}

/// Looks for protected files and directories. `tool_root` is hidden as a whole where it stands in the project: the
/// kernel's own state is in it.
pub(super) fn find(project: &Path, tool_root: &Path, protections: &Protections) -> ProtectedPaths {
    let mut found = ProtectedPaths::default();
    let tool_root = tool_root.strip_prefix(project).ok().map(Path::to_owned);
    found.hidden.extend(tool_root.clone());
    let walk = WalkBuilder::new(project)
        .standard_filters(false)
        .follow_links(false)
        .filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            !NOT_SEARCHED.iter().any(|skipped| name == *skipped)
        })
        .build();
    let mut inside: Option<PathBuf> = tool_root;
    for entry in walk.filter_map(Result::ok).take(MAX_ENTRIES) {
        let Ok(path) = entry.path().strip_prefix(project) else { continue };
        // What is below a path that was found is found with it.
        if path.as_os_str().is_empty() || inside.as_ref().is_some_and(|inside| path.starts_with(inside)) {
            continue;
        }
        let Some(relative) = path.to_str().and_then(|text| RelativePath::new(text).ok()) else { continue };
        let Some(protection) = protections.of(Root::Project, &relative) else { continue };
        inside = Some(path.to_owned());
        // Git needs its directory to say anything about the project at all, and only writing to it is a way out.
        if protection.reads && protection.rule != "builtin/git" {
            found.hidden.push(path.to_owned());
        } else {
            found.read_only.push(path.to_owned());
        }
    }
    found
}
