//! A file system in memory, a project on disk, and the loop the kernel runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tgp_compiler::{GraphBuilder, GraphHost, ModuleGraph, ModuleGraphError, compile};
use tgp_contract::{Change, CommitVote, Entry, EntryKind, FileSystem, FsError, RelativePath, ToolError};

/// Files by path. A content that starts with `@link` is listed as a link.
pub struct Files(pub BTreeMap<String, Vec<u8>>);

impl Files {
    fn kind(&self, path: &RelativePath) -> Option<EntryKind> {
        if let Some(content) = self.0.get(path.as_str()) {
            return Some(if content.starts_with(b"@link") { EntryKind::Other } else { EntryKind::File });
        }
        let inside = format!("{path}/");
        (path.is_root() || self.0.keys().any(|name| name.starts_with(&inside)))
            .then_some(EntryKind::Directory)
    }
}

impl FileSystem for Files {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        self.0.get(path.as_str()).cloned().ok_or_else(|| FsError::NotFound(path.clone()))
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        let size = self.0.get(path.as_str()).map_or(0, |content| content.len() as u64);
        Ok(self.kind(path).map(|kind| Entry { path: path.clone(), kind, size }))
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        let all =
            self.0.iter().map(|(name, content)| (RelativePath::new(name).unwrap(), content.len() as u64));
        let below = all.filter(|(path, _)| path.is_inside(directory));
        Ok(below.map(|(path, size)| Entry { path, kind: EntryKind::File, size }).collect())
    }

    fn apply_if(&self, _changes: &[Change], _last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        unreachable!("a graph never writes")
    }
}

/// A project: tools in memory, packages on disk.
pub struct Project {
    pub directory: TempDir,
    files: BTreeMap<String, Vec<u8>>,
    allowed: Vec<String>,
}

impl Project {
    pub fn new(tools: &[(&str, &str)]) -> Self {
        let files =
            tools.iter().map(|(path, source)| ((*path).to_owned(), source.as_bytes().to_vec())).collect();
        Self { directory: tempfile::tempdir().unwrap(), files, allowed: Vec::new() }
    }

    pub fn allow(mut self, names: &[&str]) -> Self {
        self.allowed = names.iter().map(ToString::to_string).collect();
        self
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file below the project's directory.
    pub fn file(self, path: &str, content: &str) -> Self {
        write(&self.path().join(path), content);
        self
    }

    /// Makes a symbolic link; `target` is relative to the link.
    pub fn link(self, path: &str, target: &str) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    pub fn host(&self) -> GraphHost {
        self.host_in(self.path().to_owned())
    }

    pub fn host_in(&self, project: PathBuf) -> GraphHost {
        GraphHost {
            tools: Arc::new(Files(self.files.clone())),
            project,
            allowed_imports: self.allowed.clone(),
            foreign: None,
        }
    }

    pub fn graph(&self, entry: &str) -> Result<ModuleGraph, ToolError> {
        build(GraphBuilder::new(self.host(), &RelativePath::new(entry).unwrap()))
    }

    /// The error of a graph that must not be built, as `CODE line:column message (help)`.
    pub fn refusal(&self, entry: &str) -> String {
        shown(&self.graph(entry).expect_err("the graph was built"))
    }
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub fn shown(error: &ToolError) -> String {
    let place = error.place_of().map_or(String::new(), |place| format!(" {}:{}", place.line, place.column));
    format!("{}{place} {} ({})", error.code, error.message, error.help_of().unwrap_or("no help"))
}

/// Compiles what the builder asks for until it is content.
pub fn build(builder: Result<GraphBuilder, ModuleGraphError>) -> Result<ModuleGraph, ToolError> {
    let mut builder = builder.map_err(|error| error.0)?;
    loop {
        let pending = builder.pending();
        if pending.is_empty() {
            return builder.finish().map_err(|error| error.0);
        }
        for unit in pending {
            builder.supply(compile(&unit)?).map_err(|error| error.0)?;
        }
    }
}

/// The links of a module as `specifier -> id` lines.
pub fn links(graph: &ModuleGraph, id: &str) -> Vec<String> {
    graph.links[id].iter().map(|(specifier, target)| format!("{specifier} -> {target}")).collect()
}

impl Project {
    pub fn add(&mut self, path: &str, content: &[u8]) {
        self.files.insert(path.to_owned(), content.to_vec());
    }
}
