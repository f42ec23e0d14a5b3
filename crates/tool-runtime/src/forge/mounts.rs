//! The files a running tool sees: `/lib`, `/tmp`, the directories it may write to, and the rest of its root to read.

use std::sync::Arc;

use tgp_contract::{Access, Code, Entry, FileSystem, FsError, RelativePath, Root, ToolError, Visibility};
use tgp_fs::MemoryFs;

use crate::memory::{META_FILE, TOOLS_DIRECTORY, shown_index};

use tgp_router::Workspace;
use tgp_router::files::{UpwardTraversal, is_listed};

/// Bytes of a file that a running tool reads at once.
const MAX_READ_BYTES: u64 = 16 << 20;

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
            return Err(violation(text, "upward traversal is blocked"));
        }
        let path = self.workspace.project.join(text)?;
        if self.workspace.allowed.iter().any(|directory| path.is_inside(directory)) {
            return Ok(Place::Host(path));
        }
        Ok(Place::Root(RelativePath::new(text)?))
    }

    pub fn read(&self, text: &str) -> Result<String, ToolError> {
        let read = match self.place(text)? {
            Place::Root(path) => {
                self.must_be_shown(Root::Tools, &path)?;
                let text = self.workspace.tools.read_text(&path);
                match (&self.workspace.filter, path.as_str()) {
                    // The index names every tool; a tool that may not be seen is not in it.
                    (Some(filter), META_FILE) => {
                        return shown_index(text?, &Visibility::new(None, Some(Arc::clone(filter))));
                    }
                    _ => text,
                }
            }
            Place::Host(path) => {
                let (root, name) = self.workspace.name_of(&path);
                self.must_be_shown(root, &name)?;
                self.refuse_large(&path)?;
                self.workspace.host.read_text(&path)
            }
            Place::Scratch(path) => self.scratch.read_text(&path),
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

    pub fn write(&self, text: &str, content: &str) -> Result<(), ToolError> {
        match self.place(text)? {
            Place::Host(path) => self.write_host(&path, content.as_bytes()),
            Place::Scratch(path) => Ok(self.scratch.write(&path, content.as_bytes())?),
            Place::Root(_) => {
                let allowed: Vec<String> = self.workspace.allowed.iter().map(ToString::to_string).collect();
                Err(violation(text, "tools write only below fs.allowedDirs and /tmp")
                    .detail("allowedDirs", allowed))
            }
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
            (Place::Host(_), _) => self.workspace.shows(&entry.path),
            (Place::Root(_) | Place::Scratch(_), _) => true,
        };
        let (entries, directory) = match &place {
            Place::Root(path) => (self.workspace.tools.list(path), path.clone()),
            Place::Host(path) => (self.workspace.host.list(path), path.clone()),
            Place::Scratch(path) => (self.scratch.list(path), path.clone()),
        };
        // What may not be seen is as if it were not there, whatever it is.
        let filter = self.workspace.filter.as_ref();
        let is_hidden = !directory.is_root()
            && match &place {
                Place::Root(path) => filter.is_some_and(|filter| !filter(Root::Tools, path, Access::Read)),
                Place::Host(path) => !self.workspace.shows(path),
                Place::Scratch(_) => false,
            };
        let entries = if is_hidden { Err(FsError::NotFound(directory.clone())) } else { entries };
        let entries = match entries {
            // A directory that a tool may write to but that does not exist yet is empty.
            Err(FsError::NotFound(missing)) if missing == directory => Vec::new(),
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

fn violation(path: &str, reason: &str) -> ToolError {
    ToolError::new(Code::Security, format!("security violation: {reason}: `{path}`"))
        .help("write below a directory of fs.allowedDirs in tgp.config.ts, or to /tmp for scratch")
}
