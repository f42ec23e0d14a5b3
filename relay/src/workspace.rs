//! The folder that one case works in: a project under git, created for it and removed afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use crate::fault::{Expecting, Fault};

/// How long one run of git is waited for.
const GIT_PATIENCE: Duration = Duration::from_secs(30);
/// Entries of a picture; a case makes a handful.
const MAX_ENTRIES: usize = 10_000;
/// What parts keep beside the files: no part of a picture.
const STATE: [&str; 2] = [".git", ".tgp"];

/// A project in a temporary directory.
pub(crate) struct Workspace {
    root: TempDir,
    project: PathBuf,
}

impl Workspace {
    /// An empty repository.
    pub(crate) async fn new() -> Result<Self, Fault> {
        let root = tempfile::Builder::new()
            .prefix("tgp-relay-")
            .tempdir()
            .map_err(|error| Fault::unable(format!("no temporary directory: {error}")))?;
        let folder = root.path().canonicalize().expecting("a temporary directory")?;
        let project = folder.join("project");
        std::fs::create_dir(&project).expecting("a folder for the project")?;
        let workspace = Self { root, project };
        workspace.git(&["init", "--quiet", "--initial-branch=main"]).await?;
        Ok(workspace)
    }

    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// A place beside the project, for what a part keeps for itself.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> Result<(), Fault> {
        let path = self.project.join(name);
        let folder = path.parent().unwrap_or(&self.project);
        std::fs::create_dir_all(folder).expecting("a folder of the project")?;
        std::fs::write(path, content).expecting("a file of the project")
    }

    /// Puts a file in its place at once, as editors do: no one sees a part of it.
    pub(crate) fn place(&self, name: &str, content: &str) -> Result<(), Fault> {
        let whole = self.beside("whole");
        std::fs::write(&whole, content).expecting("a file beside the project")?;
        let path = self.project.join(name);
        let folder = path.parent().unwrap_or(&self.project);
        std::fs::create_dir_all(folder).expecting("a folder of the project")?;
        std::fs::rename(whole, path).expecting("a file that can be put in its place")
    }

    /// Makes a symbolic link in the project.
    pub(crate) fn link(&self, name: &str, target: &Path) -> Result<(), Fault> {
        std::os::unix::fs::symlink(target, self.project.join(name)).expecting("a link in the project")
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Fault> {
        std::fs::remove_file(self.project.join(name)).expecting("a file that can be removed")
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        std::fs::rename(self.project.join(from), self.project.join(to))
            .expecting("a file that can be renamed")
    }

    /// The text of a file; none where there is no such file.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.project.join(name)).ok()
    }

    /// Every file with its bytes and every link with its target, but for what parts keep for themselves.
    pub(crate) fn picture(&self) -> Result<BTreeMap<String, Vec<u8>>, Fault> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.project.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expecting("a folder that can be read")? {
                let entry = entry.expecting("an entry that can be read")?;
                if entry.file_name().to_str().is_some_and(|name| STATE.contains(&name)) {
                    continue;
                }
                let kind = entry.file_type().expecting("an entry with a type")?;
                if kind.is_dir() {
                    folders.push(entry.path());
                } else {
                    let path = entry.path();
                    let bytes = if kind.is_symlink() {
                        let target = std::fs::read_link(&path).expecting("a link that can be read")?;
                        target.into_os_string().into_encoded_bytes()
                    } else {
                        match std::fs::read(&path) {
                            // A part that works meanwhile may have removed a file of its own.
                            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                            read => read.expecting("a file that can be read")?,
                        }
                    };
                    let name = path.strip_prefix(&self.project).unwrap_or(&path);
                    files.insert(name.display().to_string(), bytes);
                }
            }
            if files.len() > MAX_ENTRIES {
                return Err(Fault::new("a handful of files", format!("more than {MAX_ENTRIES}")));
            }
        }
        Ok(files)
    }

    /// Commits everything and gives the name of the commit.
    pub(crate) async fn commit(&self, message: &str) -> Result<String, Fault> {
        self.git(&["add", "--all"]).await?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]).await?;
        Ok(self.git(&["rev-parse", "HEAD"]).await?.trim().to_owned())
    }

    /// Enters in the repository who commits, for programs that do not have the environment of the kit.
    pub(crate) async fn name_author(&self) -> Result<(), Fault> {
        for (name, value) in [("user.name", "relay"), ("user.email", "relay@localhost")] {
            self.git(&["config", name, value]).await?;
        }
        Ok(())
    }

    async fn git(&self, arguments: &[&str]) -> Result<String, Fault> {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.project).args(arguments);
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_AUTHOR_NAME", "relay"),
            ("GIT_AUTHOR_EMAIL", "relay@localhost"),
            ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
            ("GIT_COMMITTER_NAME", "relay"),
            ("GIT_COMMITTER_EMAIL", "relay@localhost"),
            ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        // A kit that runs inside a git hook has these set, and they would lead to another repository.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let shown = arguments.first().copied().unwrap_or_default();
        let output = match tokio::time::timeout(GIT_PATIENCE, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => return Err(Fault::unable(format!("git cannot be run: {error}"))),
            Err(_) => return Err(Fault::unable(format!("`git {shown}` does not end"))),
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Fault::unable(format!("`git {shown}` failed: {}", said.trim())))
    }
}
