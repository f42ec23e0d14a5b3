//! What a command must not see or change, found in the project as it is now.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tgp_contract::{Access, Code, FileFilter, RelativePath, Root, ToolError};

use super::ProcessOptions;

/// Directories whose content is generated or fetched, so that they contain no secret by intention, and which can be
/// so large that searching them would cost more than the command.
const NOT_SEARCHED: [&str; 6] = ["node_modules", "target", ".venv", "venv", "__pycache__", "dist"];

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

/// What becomes of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
    Hidden,
    ReadOnly,
    None,
}

/// Looks for what is protected, and for what the gates do not let the call read. The tool root is hidden as a whole where
/// it is in the project: the kernel's own state is in it.
///
/// INVARIANT: an answer is complete. Whatever could not be read is hidden as a whole, or there is no answer.
///
/// # Errors
/// `ESECURITY` when the project has more entries than may be searched, or a directory cannot be read.
pub(super) fn find(
    options: &ProcessOptions,
    filter: Option<&FileFilter>,
) -> Result<ProtectedPaths, ToolError> {
    let mut found = ProtectedPaths::default();
    let tool_root = options.tool_root.strip_prefix(&options.project).ok();
    found.hidden.extend(tool_root.map(Path::to_owned));
    // The upper levels first: what people hide is rarely deep.
    let mut waiting = VecDeque::from([PathBuf::new()]);
    let mut seen: u64 = 0;
    while let Some(directory) = waiting.pop_front() {
        let entries = match std::fs::read_dir(options.project.join(&directory)) {
            Ok(entries) => entries,
            // It is gone since it was listed, and so is what was in it.
            Err(error) if is_gone(&error) && !directory.as_os_str().is_empty() => continue,
            // A command may be able to open it where the kernel is not, since it can change the modes in its layer.
            Err(error)
                if error.kind() == ErrorKind::PermissionDenied && !directory.as_os_str().is_empty() =>
            {
                found.hidden.push(directory);
                continue;
            }
            Err(error) => return Err(unreadable(&directory, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&directory, &error))?;
            seen += 1;
            if seen > options.entries {
                return Err(too_many(options.entries));
            }
            let name = entry.file_name();
            let path = directory.join(&name);
            // What is below a path that was found is found with it.
            if tool_root.is_some_and(|root| path == root) {
                continue;
            }
            match protection(options, filter, &path) {
                Protection::Hidden => found.hidden.push(path),
                Protection::ReadOnly => found.read_only.push(path),
                Protection::None => {
                    let kind = match entry.file_type() {
                        Ok(kind) => kind,
                        Err(error) if is_gone(&error) => continue,
                        Err(error) => return Err(unreadable(&path, &error)),
                    };
                    if kind.is_dir() && !is_skipped(&name) {
                        waiting.push_back(path);
                    }
                }
            }
        }
    }
    Ok(found)
}

fn protection(options: &ProcessOptions, filter: Option<&FileFilter>, path: &Path) -> Protection {
    // A name that no rule can be asked about is not shown.
    let Some(relative) = name_of(path) else { return Protection::Hidden };
    // What a command does to a chronicle is left out of its changes; a mount over it would keep the command from
    // moving or removing the directory it is in.
    let protection =
        options.protections.of(Root::Project, &relative).filter(|found| found.rule != CHRONICLE_RULE);
    // Git needs its directory to say anything about the project at all, and only writing to it is a way out.
    let is_hidden = protection.is_some_and(|found| found.reads && found.rule != "builtin/git");
    if is_hidden || filter.is_some_and(|filter| !filter(Root::Project, &relative, Access::Read)) {
        Protection::Hidden
    } else if protection.is_some() {
        Protection::ReadOnly
    } else {
        Protection::None
    }
}

/// Whether a directory is not searched for what commands must not see.
pub(super) fn is_skipped(name: &OsStr) -> bool {
    NOT_SEARCHED.iter().any(|skipped| name == OsStr::new(skipped))
}

fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The path as rules see it. One that no tool could name is still held to the rules by what of it can be read.
fn name_of(path: &Path) -> Option<RelativePath> {
    let readable =
        |character: char| if character.is_control() || character == '\\' { '_' } else { character };
    RelativePath::new(&path.to_string_lossy().chars().map(readable).collect::<String>()).ok()
}

fn too_many(limit: u64) -> ToolError {
    let message = format!(
        "the project has more than {limit} files and directories, so the files that commands must not see cannot all be found"
    );
    ToolError::new(Code::Security, message).detail("limit", limit).help(
        "no command was run; remove what is not needed, or let a person raise `jail.projectEntries` in the configuration",
    )
}

fn unreadable(path: &Path, error: &std::io::Error) -> ToolError {
    let message = format!(
        "`{}` cannot be looked through for files that commands must not see: {error}",
        path.display()
    );
    ToolError::new(Code::Security, message)
        .help("no command was run; remove that directory or make it readable")
}
