//! The files a running tool sees: `/lib`, `/tmp`, the directories it may write to or only read, and the rest of its root.

use std::sync::Arc;

use tgp_contract::{
    Access, Code, Entry, FileSystem, FsError, PathError, RelativePath, Root, ToolError, Visibility,
};
use tgp_fs::MemoryFs;

use crate::memory::{META_FILE, TOOLS_DIRECTORY, shown_index};

use tgp_router::Workspace;
use tgp_router::files::{OpenedDirectories, UpwardTraversal, is_listed};

/// Bytes of a file that a running tool reads at once.
const MAX_READ_BYTES: u64 = 16 << 20;

/// Directories that a message about a path outside of them names.
const MAX_SHOWN_DIRECTORIES: usize = 8;

/// One run's view. `/tmp` lives and dies with it.
pub struct Mounts {
    workspace: Workspace,
    scratch: Arc<MemoryFs>,
}

enum Place {
    /// Read-only: the tool root.
    Root(RelativePath),
    /// Read and write, held back until the run succeeds.
    Host(RelativePath),
    /// Read-only: a directory of `fs.readDirs`.
    ReadOnly(RelativePath),
    /// Read and write, gone after the run.
    Scratch(RelativePath),
}

impl Mounts {
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, scratch: Arc::new(MemoryFs::new()) }
    }

    fn place(&self, text: &str) -> Result<Place, ToolError> {
        if let Some(rest) = below(text, "/lib") {
            let tools = RelativePath::new(TOOLS_DIRECTORY)?;
            let path = RelativePath::new(rest)?;
            return Ok(Place::Root(tools.join(path.as_str())?));
        }
        if let Some(rest) = below(text, "/tmp") {
            return Ok(Place::Scratch(RelativePath::new(rest)?));
        }
        let blocked = self.workspace.upward == UpwardTraversal::Blocked;
        if blocked && text.split('/').any(|part| part == "..") {
            return Err(self.violation(text, "upward traversal is blocked"));
        }
        let with_view = |error: PathError| {
            let mut error = ToolError::from(error);
            error.message = format!("{}; {}", error.message, self.view());
            error
        };
        let path = self.workspace.project.join(text).map_err(with_view)?;
        if self.workspace.opened.may_write(&path) {
            return Ok(Place::Host(path));
        }
        if self.workspace.opened.may_read(&path) {
            return Ok(Place::ReadOnly(path));
        }
        Ok(Place::Root(RelativePath::new(text).map_err(with_view)?))
    }

    /// What a tool can see, for a message about what it cannot.
    fn view(&self) -> String {
        let OpenedDirectories { writable, readable } = &self.workspace.opened;
        let mut parts = vec![
            "its own repository, such as tools/".to_owned(),
            "/lib/ (the tools)".to_owned(),
            "/tmp/ (until the run ends)".to_owned(),
        ];
        let shown = |directories: &[RelativePath], note: &str| -> Vec<String> {
            directories
                .iter()
                .map(|directory| format!("{} ({note})", self.name_for_tools(directory)))
                .collect()
        };
        let opened = [shown(writable, "also to write"), shown(readable, "read-only")].concat();
        parts.extend(opened.iter().take(MAX_SHOWN_DIRECTORIES).cloned());
        if let Some(more) = opened.len().checked_sub(MAX_SHOWN_DIRECTORIES).filter(|more| *more > 0) {
            parts.push(format!("{more} more of fs.allowedDirs and fs.readDirs"));
        }
        format!("a tool can read {}", parts.join(", "))
    }

    /// A directory of the host as a tool names it: relative to the project.
    fn name_for_tools(&self, directory: &RelativePath) -> String {
        match self.workspace.name_of(directory) {
            (Root::Project, name) if name.is_root() => "./".to_owned(),
            (Root::Project, name) => format!("{name}/"),
            (_, name) => format!("{}{name}/", "../".repeat(self.workspace.project.parts().count())),
        }
    }

    fn violation(&self, text: &str, reason: &str) -> ToolError {
        let message = format!("security violation: {reason}: `{text}`; {}", self.view());
        ToolError::new(Code::Security, message)
            .help("write below a directory of fs.allowedDirs in tgp.config.ts, or to /tmp for scratch")
    }

    /// The same message whether the project has such a file or not: what a tool may not see it does not learn of.
    fn not_visible(&self, text: &str) -> ToolError {
        ToolError::new(Code::NotFound, format!("no such file or directory: `{text}`; {}", self.view()))
            .help("name one of these places, or ask a person to add the directory to fs.readDirs")
    }

    pub fn read(&self, text: &str) -> Result<String, ToolError> {
        String::from_utf8(self.read_bytes(text)?).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            ToolError::new(
                Code::Validation,
                format!(
                    "`{text}` is not UTF-8 text: bad byte at offset {offset}; pass {{ encoding: 'windows-1252' }} or \
                     another encoding that TextDecoder knows, or {{ encoding: 'bytes' }} for a Uint8Array"
                ),
            )
        })
    }

    pub fn read_bytes(&self, text: &str) -> Result<Vec<u8>, ToolError> {
        let read = match self.place(text)? {
            Place::Root(path) => {
                self.must_be_shown(Root::Tools, &path)?;
                match (&self.workspace.filter, path.as_str()) {
                    // The index names every tool; a tool that may not be seen is not in it.
                    (Some(filter), META_FILE) => {
                        let index = self.workspace.tools.read_text(&path)?;
                        return shown_index(index, &Visibility::new(None, Some(Arc::clone(filter))))
                            .map(String::into_bytes);
                    }
                    _ => match self.workspace.tools.read(&path) {
                        Err(FsError::NotFound(_)) => return Err(self.not_visible(text)),
                        read => read,
                    },
                }
            }
            Place::Host(path) | Place::ReadOnly(path) => {
                let (root, name) = self.workspace.name_of(&path);
                self.must_be_shown(root, &name)?;
                self.refuse_large(&path)?;
                self.workspace.host.read(&path)
            }
            Place::Scratch(path) => self.scratch.read(&path),
        };
        Ok(read?)
    }

    /// What the gates do not let the run's caller read, the run does not read either.
    fn must_be_shown(&self, root: Root, path: &RelativePath) -> Result<(), ToolError> {
        match &self.workspace.filter {
            Some(filter) if !filter(root, path, Access::Read) => {
                Err(ToolError::new(Code::Policy, format!("a rule or a token forbids reading `{path}`"))
                    .help("`tgp policy explain fs_read` shows which rule it is"))
            }
            _ => Ok(()),
        }
    }

    /// The host reads larger files than a run could be sent.
    fn refuse_large(&self, path: &RelativePath) -> Result<(), FsError> {
        match self.workspace.host.entry(path)? {
            Some(entry) if entry.size > MAX_READ_BYTES => {
                Err(FsError::TooLarge { path: path.clone(), size: entry.size, limit: MAX_READ_BYTES })
            }
            _ => Ok(()),
        }
    }

    pub fn write(&self, text: &str, content: &[u8]) -> Result<(), ToolError> {
        let reason = match self.place(text)? {
            Place::Host(path) => return self.write_host(&path, content),
            Place::Scratch(path) => return Ok(self.scratch.write(&path, content)?),
            Place::Root(_) => "tools write only below fs.allowedDirs and /tmp",
            Place::ReadOnly(_) => "tools only read the directories of fs.readDirs",
        };
        let allowed: Vec<String> =
            self.workspace.opened.writable.iter().map(|directory| self.name_for_tools(directory)).collect();
        let mut places = allowed.iter().take(MAX_SHOWN_DIRECTORIES).cloned().collect::<Vec<_>>();
        places.push("/tmp/ (until the run ends)".to_owned());
        let message =
            format!("security violation: {reason}: `{text}`; a tool can write {}", places.join(", "));
        let help = match allowed.first() {
            Some(first) => format!("write below {first}, or to /tmp for scratch"),
            None => {
                "write to /tmp for scratch, or return the content; only a person can open a directory with \
                     fs.allowedDirs in tgp.config.ts"
                    .to_owned()
            }
        };
        Err(ToolError::new(Code::Security, message).help(help).detail("allowedDirs", allowed))
    }

    /// Whether a place is the beginning of what a tool sees, and not a directory in it.
    fn is_given(&self, place: &Place) -> bool {
        let OpenedDirectories { writable, readable } = &self.workspace.opened;
        match place {
            Place::Root(path) => path.as_str() == TOOLS_DIRECTORY,
            Place::Host(path) | Place::ReadOnly(path) => writable.contains(path) || readable.contains(path),
            Place::Scratch(path) => path.is_root(),
        }
    }

    /// The one place where a running tool's bytes go to a file of the host. They wait in its run's overlay.
    fn write_host(&self, path: &RelativePath, content: &[u8]) -> Result<(), ToolError> {
        Ok(self.workspace.host.write(path, content)?)
    }

    /// The files below a directory, named as the tool would name them.
    pub fn list(&self, text: &str) -> Result<Vec<String>, ToolError> {
        let place = self.place(text)?;
        let is_shown = |entry: &Entry| match (&place, &self.workspace.filter) {
            (Place::Root(_), Some(filter)) => filter(Root::Tools, &entry.path, Access::Read),
            (Place::Host(_) | Place::ReadOnly(_), _) => self.workspace.shows(&entry.path),
            (Place::Root(_) | Place::Scratch(_), _) => true,
        };
        let (entries, directory) = match &place {
            Place::Root(path) => (self.workspace.tools.list(path), path.clone()),
            Place::Host(path) | Place::ReadOnly(path) => (self.workspace.host.list(path), path.clone()),
            Place::Scratch(path) => (self.scratch.list(path), path.clone()),
        };
        // What may not be seen is as if it were not there, whatever it is.
        let filter = self.workspace.filter.as_ref();
        let is_hidden = !directory.is_root()
            && match &place {
                Place::Root(path) => filter.is_some_and(|filter| !filter(Root::Tools, path, Access::Read)),
                Place::Host(path) | Place::ReadOnly(path) => !self.workspace.shows(path),
                Place::Scratch(_) => false,
            };
        let entries = if is_hidden { Err(FsError::NotFound(directory.clone())) } else { entries };
        let is_of_tools = directory.is_inside(&RelativePath::new(TOOLS_DIRECTORY)?);
        let entries = match entries {
            Err(FsError::NotFound(_)) if matches!(place, Place::Root(_)) && !is_of_tools => {
                return Err(self.not_visible(text));
            }
            // A directory of the configuration, or that of the tools, may be made by the first file in it.
            Err(FsError::NotFound(missing)) if missing == directory && self.is_given(&place) => Vec::new(),
            Err(FsError::NotFound(missing)) if missing == directory => return Err(self.not_visible(text)),
            other => other?,
        };
        let prefix = text.trim_start_matches("./").trim_end_matches('/');
        let skip = if directory.is_root() { 0 } else { directory.as_str().len() + 1 };
        Ok(entries
            .into_iter()
            .filter(|entry| is_listed(entry) && is_shown(entry))
            .map(|entry| {
                let rest = entry.path.as_str().get(skip..).unwrap_or_default().to_owned();
                if prefix.is_empty() || prefix == "." { rest } else { format!("{prefix}/{rest}") }
            })
            .collect())
    }
}

/// What follows `mount` in `text`, when `text` is that mount or below it.
fn below<'a>(text: &'a str, mount: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(mount)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}
