//! A world with a bare remote, kernels beside it, and a plain git to look with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;
use tgp_contract::{RelativePath, ToolError};
use tgp_git::{
    Author, ChangeSet, CommitKind, GeneratedFile, GitEnv, PersistFile, Persisted, Remote, RepositorySnapshot,
    ToolRepo, ToolRepoOptions,
};

/// A stand-in for `meta.json`: every tool with the id of its content, sorted.
pub struct ToolList(RelativePath);

impl ToolList {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(path("meta.json")))
    }
}

impl GeneratedFile for ToolList {
    fn path(&self) -> &RelativePath {
        &self.0
    }

    fn derive(&self, tree: &dyn RepositorySnapshot) -> Result<Vec<u8>, ToolError> {
        let mut text = String::new();
        for file in tree.files()? {
            if file.path.as_str().starts_with("tools/") {
                // Reading is part of the contract, so it takes part.
                let bytes = tree.read(&file.path)?.len();
                text.push_str(&format!("{} {} {bytes}\n", file.blob, file.path));
            }
        }
        Ok(text.into_bytes())
    }
}

pub struct World {
    pub temporary: TempDir,
}

impl World {
    /// With an empty bare remote.
    pub fn new() -> Self {
        let world = Self { temporary: TempDir::new().unwrap() };
        git(world.temporary.path(), &["init", "--quiet", "--bare", "--initial-branch=main", "remote.git"]);
        world
    }

    /// With a remote that has `files` in one commit of a person.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let world = Self::new();
        world.person("Start", files);
        world
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    pub fn remote(&self) -> PathBuf {
        self.at("remote.git")
    }

    pub fn root(&self, name: &str) -> PathBuf {
        self.at(name).join(".tgp")
    }

    pub fn options(&self, name: &str) -> ToolRepoOptions {
        options(&self.root(name), Some(&self.remote()))
    }

    /// A kernel's memory, hydrated.
    pub async fn kernel(&self, name: &str) -> ToolRepo {
        let memory = ToolRepo::open(self.options(name)).await.unwrap();
        memory.hydrate().await.unwrap();
        memory
    }

    /// A person commits to the remote with plain git; an empty content removes the file. Returns the commit.
    pub fn person(&self, message: &str, files: &[(&str, &str)]) -> String {
        let clone = TempDir::new().unwrap();
        let remote = self.remote();
        git(clone.path(), &["clone", "--quiet", "--", remote.to_str().unwrap(), "."]);
        for (name, content) in files {
            let file = clone.path().join(name);
            if content.is_empty() {
                fs::remove_file(file).unwrap();
                continue;
            }
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        git(clone.path(), &["add", "--all"]);
        git(clone.path(), &["commit", "--quiet", "--message", message]);
        git(clone.path(), &["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
        git(clone.path(), &["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// A hook of the remote.
    pub fn hook(&self, name: &str, script: &str) {
        let hook = self.remote().join("hooks").join(name);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, script).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A `PATH` whose git writes its arguments to the file `log` before it does its work.
    pub fn logged_git(&self, log: &Path) -> std::ffi::OsString {
        let real = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
        let real = String::from_utf8(real.stdout).unwrap();
        let bin = self.at("bin");
        fs::create_dir_all(&bin).unwrap();
        let script =
            format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec '{}' \"$@\"\n", log.display(), real.trim());
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut path = std::ffi::OsString::from(&bin);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        path
    }

    pub fn remote_file(&self, name: &str) -> Option<String> {
        show(&self.remote(), "main", name)
    }

    pub fn remote_log(&self) -> Vec<String> {
        lines(&git(&self.remote(), &["log", "--format=%s", "main"]))
    }

    pub fn remote_tools(&self) -> Vec<String> {
        lines(&git(&self.remote(), &["ls-tree", "-r", "--name-only", "main", "tools"]))
    }

    /// The remote's derived file is what its tools say.
    #[track_caller]
    pub fn assert_consistent(&self) {
        assert_consistent(&self.remote(), "main");
    }
}

#[track_caller]
pub fn assert_consistent(repository: &Path, revision: &str) {
    let rows = git(repository, &["ls-tree", "-r", "-z", "--long", revision, "tools"]);
    let mut expected: Vec<(String, String)> = Vec::new();
    for row in rows.split('\0').filter(|row| !row.is_empty()) {
        let (head, name) = row.split_once('\t').unwrap();
        let words: Vec<&str> = head.split_whitespace().collect();
        if words[0].starts_with("100") {
            expected.push((name.to_owned(), format!("{} {name} {}\n", words[2], words[3])));
        }
    }
    expected.sort();
    let expected: String = expected.into_iter().map(|(_, row)| row).collect();
    assert_eq!(show(repository, revision, "meta.json").unwrap_or_default(), expected);
}

pub fn options(root: &Path, remote: Option<&Path>) -> ToolRepoOptions {
    let author = Author { name: "Agent".to_owned(), email: "agent@example.org".to_owned() };
    let mut options = ToolRepoOptions::new(root, author, ToolList::new());
    options.remote = remote.map(|remote| Remote::Url(remote.to_str().unwrap().to_owned()));
    options.surroundings = GitEnv { path: std::env::var_os("PATH").unwrap(), ..GitEnv::default() };
    options
}

pub fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

pub fn forge(name: &str, content: &str) -> ChangeSet {
    ChangeSet {
        files: vec![PersistFile { path: path(name), content: Some(content.into()) }],
        verb: CommitKind::Forge,
    }
}

pub fn refactor(name: &str, content: &str) -> ChangeSet {
    ChangeSet { verb: CommitKind::Refactor, ..forge(name, content) }
}

pub fn removal(name: &str) -> ChangeSet {
    ChangeSet { files: vec![PersistFile { path: path(name), content: None }], verb: CommitKind::Remove }
}

/// Persists, and it has to arrive.
#[track_caller]
pub fn arrived(persisted: Result<Persisted, ToolError>) -> Persisted {
    let persisted = persisted.unwrap();
    assert!(persisted.pushed, "{persisted:?}");
    assert_eq!(persisted.why, None);
    persisted
}

/// Plain git, with nothing of this machine's configuration.
#[track_caller]
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = git_command(directory, arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?} in {}: {stderr}", directory.display());
    String::from_utf8(output.stdout).unwrap()
}

pub fn git_command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs([("GIT_AUTHOR_NAME", "Person"), ("GIT_AUTHOR_EMAIL", "person@example.org")])
        .envs([("GIT_COMMITTER_NAME", "Person"), ("GIT_COMMITTER_EMAIL", "person@example.org")])
        .stdin(Stdio::null());
    command
}

pub fn show(repository: &Path, revision: &str, name: &str) -> Option<String> {
    let output = git_command(repository, &["show", &format!("{revision}:{name}")]).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

pub fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// What a person sees of the working tree; nothing is clean.
#[track_caller]
pub fn assert_clean(root: &Path) {
    assert_eq!(git(root, &["status", "--porcelain"]), "");
}

pub fn write(root: &Path, name: &str, content: &str) {
    let file = root.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
}

pub fn read(root: &Path, name: &str) -> Option<String> {
    fs::read_to_string(root.join(name)).ok()
}

/// As if so much time had gone by that a remote which was away is asked again.
pub fn time_goes_by(root: &Path) {
    let _ = fs::remove_file(root.join(".state/git-unreachable"));
}

/// This test binary again, for one test of it.
pub fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null());
    command
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
