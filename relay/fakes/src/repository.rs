//! What the fake graph reads of a repository, with the program `git`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tgp_contract::{Code, ToolError};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::imports;

/// How long one run of git is waited for; the repositories of a relay have a handful of commits.
const GIT_PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of one answer of git that are read.
const MAX_OUTPUT: u64 = 16 << 20;
/// Commits that one ingest takes.
const MAX_COMMITS: usize = 1_000;
/// Bytes of a source that imports are looked for in.
const MAX_SOURCE: u64 = 1 << 20;

/// What a source says, found line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// The texts of its imports, as they are written.
    pub(crate) imports: BTreeSet<String>,
    /// The names of its exported functions and constants.
    pub(crate) symbols: BTreeSet<String>,
}

impl Source {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            imports: text.lines().flat_map(imports::named).map(str::to_owned).collect(),
            symbols: text.lines().filter_map(imports::defined).map(str::to_owned).collect(),
        }
    }
}

/// The files of one commit, or of the work tree, with what the sources among them say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) files: BTreeSet<String>,
    /// What the sources among them import and define.
    pub(crate) sources: BTreeMap<String, Source>,
    /// From the new path to the old one.
    pub(crate) renames: BTreeSet<(String, String)>,
}

/// A repository on disk.
pub(crate) struct Repository {
    directory: PathBuf,
}

impl Repository {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The full name of a commit.
    pub(crate) async fn resolve(&self, name: &str) -> Result<String, ToolError> {
        let commit = format!("{name}^{{commit}}");
        let found = self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await;
        found.map(|output| output.trim().to_owned()).map_err(|_| {
            ToolError::new(Code::NotFound, format!("`{name}` is not a commit of the repository"))
                .help("name a commit, a branch or a tag")
        })
    }

    /// A commit and its ancestors, the oldest first.
    pub(crate) async fn history(&self, commit: &str) -> Result<Vec<String>, ToolError> {
        let most = format!("--max-count={MAX_COMMITS}");
        let listed = self.git(&["rev-list", "--topo-order", "--reverse", &most, commit]).await?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    pub(crate) async fn parent(&self, commit: &str) -> Result<Option<String>, ToolError> {
        let listed = self.git(&["rev-list", "--parents", "--max-count=1", commit]).await?;
        Ok(listed.split_whitespace().nth(1).map(str::to_owned))
    }

    /// Files and sources of a commit, and the renames that it made itself.
    pub(crate) async fn snapshot(&self, commit: &str, parent: Option<&str>) -> Result<Snapshot, ToolError> {
        let files = names(&self.git(&["ls-tree", "-r", "-z", "--name-only", commit]).await?);
        let mut sources = BTreeMap::new();
        for path in files.iter().filter(|path| imports::is_source(path)) {
            let text = self.git(&["show", &format!("{commit}:{path}")]).await?;
            sources.insert(path.clone(), Source::of(&text));
        }
        let mut renames = BTreeSet::new();
        if let Some(parent) = parent {
            let listed = self
                .git(&["diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--name-status", parent, commit])
                .await?;
            let mut words = listed.split('\0');
            while let (Some(_), Some(old), Some(new)) = (words.next(), words.next(), words.next()) {
                renames.insert((new.to_owned(), old.to_owned()));
            }
        }
        Ok(Snapshot { files, sources, renames })
    }

    /// The files as they are, but for those that git ignores.
    pub(crate) async fn work_tree(&self) -> Result<Snapshot, ToolError> {
        let listed = self.git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).await?;
        let mut snapshot = Snapshot::default();
        for path in names(&listed) {
            let place = self.directory.join(&path);
            let Ok(metadata) = std::fs::symlink_metadata(&place) else { continue };
            if !metadata.is_file() {
                continue;
            }
            if imports::is_source(&path) && metadata.len() <= MAX_SOURCE {
                let text = std::fs::read(&place).unwrap_or_default();
                snapshot.sources.insert(path.clone(), Source::of(&String::from_utf8_lossy(&text)));
            }
            snapshot.files.insert(path);
        }
        Ok(snapshot)
    }

    async fn git(&self, arguments: &[&str]) -> Result<String, ToolError> {
        let failed = |why: String| {
            let shown = arguments.first().copied().unwrap_or_default();
            ToolError::new(Code::Git, format!("`git {shown}` failed: {why}"))
                .help("check that git is there and that the directory is a repository")
        };
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.directory).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        // A process inside a git hook has these set, and they would lead to another repository.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let Some(stdout) = child.stdout.take() else { return Err(failed("it has no output".to_owned())) };
        let work = async {
            let mut bytes = Vec::new();
            stdout.take(MAX_OUTPUT + 1).read_to_end(&mut bytes).await?;
            let status = if bytes.len() as u64 > MAX_OUTPUT { None } else { Some(child.wait().await?) };
            Ok::<_, std::io::Error>((bytes, status))
        };
        let ended = tokio::time::timeout(GIT_PATIENCE, work).await;
        let (bytes, status) = ended
            .map_err(|_| failed(format!("no end within {} s", GIT_PATIENCE.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        match status {
            None => Err(failed(format!("more than {MAX_OUTPUT} bytes"))),
            Some(status) if status.success() => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Some(status) => Err(failed(status.to_string())),
        }
    }
}

fn names(listed: &str) -> BTreeSet<String> {
    listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
