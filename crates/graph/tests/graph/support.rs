//! Repositories that are made on the spot, and the graph as lines of text.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};

use git2::{IndexAddOption, Oid, Repository, RepositoryInitOptions, Signature, Time};
use serde_json::Value;
use tempfile::TempDir;
use tgp_contract::{Graph, GraphQuery, IngestSummary, ToolError};
use tgp_graph::{Export, ExportNode, GraphOptions, GraphStore};

/// More rows than any test has.
pub const ALL: usize = 1_000_000;

pub fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// A project in its own directory, with the store beside it.
pub struct Project {
    pub home: TempDir,
    pub git: Option<Repository>,
    clock: i64,
}

impl Project {
    pub fn without_git() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("project")).unwrap();
        Self { home, git: None, clock: 1_700_000_000 }
    }

    pub fn new() -> Self {
        let mut project = Self::without_git();
        let mut options = RepositoryInitOptions::new();
        options.initial_head("main");
        project.git = Some(Repository::init_opts(project.root(), &options).unwrap());
        project
    }

    pub fn root(&self) -> PathBuf {
        self.home.path().join("project")
    }

    pub fn git(&self) -> &Repository {
        self.git.as_ref().unwrap()
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let place = self.root().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, content).unwrap();
    }

    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.root().join(path)).unwrap();
    }

    pub fn rename(&self, from: &str, to: &str) {
        let place = self.root().join(to);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::rename(self.root().join(from), place).unwrap();
    }

    fn signature(&mut self) -> Signature<'static> {
        self.clock += 60;
        Signature::new("Ada", "ada@example.com", &Time::new(self.clock, 0)).unwrap()
    }

    /// Commits the work tree as it is, on top of the head.
    pub fn commit(&mut self, message: &str) -> String {
        let parents: Vec<Oid> = self.git().head().ok().and_then(|head| head.target()).into_iter().collect();
        self.commit_on(message, &parents)
    }

    pub fn commit_on(&mut self, message: &str, parents: &[Oid]) -> String {
        let signature = self.signature();
        let git = self.git();
        let mut index = git.index().unwrap();
        index.clear().unwrap();
        index.add_all(["*"], IndexAddOption::DEFAULT, None).unwrap();
        index.write().unwrap();
        let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
        let parents: Vec<_> = parents.iter().map(|id| git.find_commit(*id).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        git.commit(Some("HEAD"), &signature, &signature, message, &tree, &parents).unwrap().to_string()
    }

    /// A commit of a tree that no branch leads to.
    pub fn commit_tree(&mut self, message: &str, tree: Oid, parents: &[Oid]) -> String {
        let signature = self.signature();
        let git = self.git();
        let tree = git.find_tree(tree).unwrap();
        let parents: Vec<_> = parents.iter().map(|id| git.find_commit(*id).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        git.commit(None, &signature, &signature, message, &tree, &parents).unwrap().to_string()
    }

    pub fn options(&self) -> GraphOptions {
        self.options_at("graph.sqlite", &self.root())
    }

    pub fn options_at(&self, file: &str, project: &Path) -> GraphOptions {
        GraphOptions::new(self.home.path().join(file), project)
    }

    pub fn open(&self) -> GraphStore {
        run(GraphStore::open(self.options())).unwrap()
    }

    /// A store that has seen nothing yet.
    pub fn fresh(&self, name: &str) -> GraphStore {
        run(GraphStore::open(self.options_at(name, &self.root()))).unwrap()
    }
}

/// A repository with these files in one commit, and a store that has read it.
pub fn committed(files: &[(&str, &str)]) -> (Project, GraphStore) {
    let mut project = Project::new();
    for (path, text) in files {
        project.write(path, text);
    }
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    (project, store)
}

/// The same edges are there where one file after the other is written.
pub fn assert_written_one_by_one(files: &[(&str, &str)], store: &GraphStore) {
    let query =
        "MATCH (f:File)-[:IMPORTS]->(t) RETURN f.path, t.path, t.specifier, t.name ORDER BY f.path, t.path";
    let project = Project::new();
    let other = project.open();
    ingest(&other, "WORKTREE");
    for (path, text) in files.iter().rev() {
        project.write(path, text);
        ingest(&other, "WORKTREE");
    }
    assert_eq!(rows(&other, "WORKTREE", query), rows(store, "HEAD", query), "{files:?}");
}

pub fn ingest(store: &GraphStore, commit: &str) -> IngestSummary {
    run(store.ingest(commit)).unwrap()
}

pub fn export(store: &GraphStore, commit: &str) -> Export {
    run(store.export(Some(commit), ALL)).unwrap()
}

/// Rows of a question about a commit.
pub fn rows(store: &GraphStore, commit: &str, query: &str) -> Vec<Vec<Value>> {
    run(store.query(GraphQuery::new(query).at(commit))).unwrap().rows
}

pub fn refusal(store: &GraphStore, commit: &str) -> ToolError {
    run(store.query(GraphQuery::new("MATCH (f:File) RETURN f.path").at(commit))).unwrap_err()
}

fn text(node: &ExportNode, key: &str) -> String {
    node.properties.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What a node is called in a picture.
pub fn title(node: &ExportNode) -> String {
    match node.labels.first().map(String::as_str) {
        Some("File") => format!("File {}", text(node, "path")),
        Some("Symbol") => {
            format!("Symbol {}#{} {}", text(node, "path"), text(node, "kind"), text(node, "qualifiedName"))
        }
        Some("Package") => format!("Package {}:{}", text(node, "ecosystem"), text(node, "name")),
        Some("Commit") => format!("Commit {}", text(node, "message")),
        Some("Unresolved") => format!("Unresolved {}", text(node, "specifier")),
        Some(label) => format!("{label} {}", text(node, "path")),
        None => "nothing".to_owned(),
    }
}

/// All that is visible at a commit, one line each, sorted.
pub fn picture(store: &GraphStore, commit: &str) -> Vec<String> {
    lines(&export(store, commit))
}

pub fn lines(export: &Export) -> Vec<String> {
    let titles: HashMap<i64, String> = export.nodes.iter().map(|node| (node.id, title(node))).collect();
    let mut lines: Vec<String> = export
        .nodes
        .iter()
        .map(|node| format!("{} {}", title(node), Value::Object(node.properties.clone())))
        .collect();
    lines.extend(export.relationships.iter().map(|edge| {
        let end = |id: &i64| titles.get(id).cloned().unwrap_or_else(|| panic!("no end for {edge:?}"));
        let properties = Value::Object(edge.properties.clone());
        format!("({})-[{} {properties}]->({})", end(&edge.from), edge.kind, end(&edge.to))
    }));
    lines.sort();
    lines
}

/// The lines that do not depend on the history.
pub fn without_history(lines: Vec<String>) -> Vec<String> {
    let history = ["Commit ", "[CHANGED_IN ", "[PARENT ", "[WAS_RENAMED_FROM "];
    let is_history = |line: &String| {
        // A file that is gone is known by its renames alone.
        let is_gone = line.starts_with("File ") && !line.contains("\"blob\":");
        is_gone || history.iter().any(|word| line.contains(word))
    };
    lines.into_iter().filter(|line| !is_history(line)).collect()
}

/// Paths of the files at a commit.
pub fn files(store: &GraphStore, commit: &str) -> Vec<String> {
    let export = export(store, commit);
    // A file that is gone has a path and no blob.
    let files = export.nodes.iter().filter(|node| node.properties.contains_key("blob"));
    let mut paths: Vec<String> = files.map(|node| text(node, "path")).collect();
    paths.sort();
    paths
}

/// What is known of a file at a commit.
pub fn file(store: &GraphStore, commit: &str, path: &str) -> serde_json::Map<String, Value> {
    let nodes = export(store, commit).nodes;
    let is_file = |node: &ExportNode| node.labels == ["File"] && text(node, "path") == path;
    nodes.into_iter().find(is_file).unwrap_or_else(|| panic!("no {path} at {commit}")).properties
}

/// Relationships of one type as `from -> to`.
pub fn arrows(store: &GraphStore, commit: &str, kind: &str) -> Vec<String> {
    let export = export(store, commit);
    let titles: HashMap<i64, String> = export.nodes.iter().map(|node| (node.id, title(node))).collect();
    let mut arrows: Vec<String> = export
        .relationships
        .iter()
        .filter(|edge| edge.kind == kind)
        .map(|edge| format!("{} -> {}", titles[&edge.from], titles[&edge.to]))
        .collect();
    arrows.sort();
    arrows
}
