//! What a command must not see or change, found in the project as it is now.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use tgp_contract::{Access, FileFilter, RelativePath, Root};

use super::ProcessOptions;

/// Directories whose content is generated or fetched, so that nobody keeps a secret in them by intention, and which
/// can be so large that looking through them would cost more than the command.
const NOT_SEARCHED: [&str; 6] = ["node_modules", "target", ".venv", "venv", "__pycache__", "dist"];

/// Entries that are looked at. A project with more is searched so far; what comes later is still judged when it is
/// written, only not hidden from being read.
const MAX_ENTRIES: usize = 200_000;

/// The rule that protects chronicles.
pub(super) const CHRONICLE_RULE: &str = "builtin/chronicle";

/// Paths of the project, relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProtectedPaths {
    /// Must not even be read.
    pub(super) hidden: Vec<PathBuf>,
    /// Can be read.
    pub(super) read_only: Vec<PathBuf>,
}

/// Looks for what is protected, and for what the gates do not let the call read. The tool root is hidden as a whole where
/// it stands in the project: the kernel's own state is in it.
pub(super) fn find(options: &ProcessOptions, filter: Option<&FileFilter>) -> ProtectedPaths {
    let project = options.project.as_path();
    let mut found = ProtectedPaths::default();
    let tool_root = options.tool_root.strip_prefix(project).ok().map(Path::to_owned);
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
        let Some(relative) = name_of(path) else { continue };
        let is_denied = filter.is_some_and(|filter| !filter(Root::Project, &relative, Access::Read));
        // What a command does to a chronicle is left out of its changes; a mount over it would keep the command from
        // moving or removing the directory it stands in.
        let protection =
            options.protections.of(Root::Project, &relative).filter(|found| found.rule != CHRONICLE_RULE);
        // Git needs its directory to say anything about the project at all, and only writing to it is a way out.
        let is_hidden =
            is_denied || protection.is_some_and(|found| found.reads && found.rule != "builtin/git");
        if is_hidden {
            found.hidden.push(path.to_owned());
        } else if protection.is_some() {
            found.read_only.push(path.to_owned());
        } else {
            continue;
        }
        inside = Some(path.to_owned());
    }
    found
}

/// The path as rules see it. One that no tool could name is still held to the rules by what of it can be read.
fn name_of(path: &Path) -> Option<RelativePath> {
    let readable =
        |character: char| if character.is_control() || character == '\\' { '_' } else { character };
    RelativePath::new(&path.to_string_lossy().chars().map(readable).collect::<String>()).ok()
}
