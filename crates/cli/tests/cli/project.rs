//! A folder to run the program in, with nothing of the machine's own environment.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The tools that tests copy into a project.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/tools")
}

/// `here` is where commands run; `home`, `cache`, `tmp` and `bin` are beside it.
pub struct Project {
    path: PathBuf,
    /// Removes everything when the project is dropped.
    _root: TempDir,
}

/// What a command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Project {
    /// An empty folder.
    pub fn empty() -> Self {
        let root = TempDir::new().unwrap();
        let path = root.path().canonicalize().unwrap();
        for name in ["here", "home", "cache", "tmp", "bin"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tgp"), path.join("bin/tgp")).unwrap();
        Self { path, _root: root }
    }

    /// A folder after `tgp init`.
    pub fn initialised() -> Self {
        let project = Self::empty();
        project.run(&["init"]).expect_code(0);
        project
    }

    /// The same with all fixture tools.
    pub fn with_fixtures() -> Self {
        let project = Self::initialised();
        copy(&fixtures(), &project.path("here/.tgp/tools"));
        project
    }

    /// A path beside `here`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A path in the folder where commands run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path("here").join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.file(name).parent().unwrap()).unwrap();
        fs::write(self.file(name), content).unwrap();
    }

    /// A program in the clean environment.
    pub fn program(&self, program: &str) -> Command {
        let path = std::env::join_paths(
            [self.path("bin")].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let mut command = Command::new(program);
        command
            .current_dir(self.path("here"))
            .env_clear()
            .env("PATH", path.unwrap())
            .env("HOME", self.path("home"))
            .env("TGP_CACHE_DIR", self.path("cache"))
            // Some tests use the home of the user who runs them; what they confirm stays here all the same.
            .env("TGP_HOME", self.path("home/state"))
            .env("TMPDIR", self.path("tmp"))
            .env("TOOLS", fixtures())
            .stdin(Stdio::null());
        command
    }

    /// `tgp` with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_tgp"));
        command.args(arguments);
        command
    }

    /// Runs `tgp` to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.finish(self.command(arguments))
    }

    /// Confirms what the configuration executes, sends or opens, as the person would who wrote it.
    pub fn trust(&self) {
        self.run(&["trust", "--yes"]).expect_code(0);
    }

    /// Configures that files may be written without a failing test, and confirms it.
    pub fn explore(&self) {
        self.write("tgp.config.ts", "export default { tdd: { mode: 'explore' } };\n");
        self.trust();
    }

    /// Runs `tgp` with something on standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let ran = child.wait_with_output().unwrap().into();
        self.assert_clean();
        ran
    }

    /// Runs a line of shell.
    pub fn shell(&self, line: &str) -> Ran {
        let mut command = self.program("sh");
        command.args(["-c", line]);
        self.finish(command)
    }

    pub fn finish(&self, mut command: Command) -> Ran {
        let ran = command.output().unwrap().into();
        self.assert_clean();
        ran
    }

    /// Nothing temporary and no lock is left, whatever was run.
    pub fn assert_clean(&self) {
        let left: Vec<String> = self
            .all_files()
            .into_iter()
            .filter(|name| {
                name.starts_with("tmp/")
                    || name.contains(".tgp-tmp-")
                    // The kernel's own lock is a file that stays; who holds it is the system's knowledge.
                    || (name.ends_with(".lock") && !name.contains("/.state/") && !name.starts_with("here/target/") && !name.starts_with("cache/tests/") && !name.ends_with("/Cargo.lock"))
                    || name.ends_with(".tmp")
            })
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// Every file and directory below the root, by its path from there.
    pub fn all_files(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut open = vec![self.path.clone()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                names.push(entry.path().strip_prefix(&self.path).unwrap().to_string_lossy().into_owned());
                if entry.file_type().unwrap().is_dir() {
                    open.push(entry.path());
                }
            }
        }
        names.sort();
        names
    }

    /// The content of every file of `here`, to see that nothing changed.
    pub fn contents(&self) -> Vec<(String, Option<Vec<u8>>)> {
        // Every call leaves a record: in the kernel's state, and by its hash in a reference of the repository. The default
        // database is made when a statement is first looked at.
        let records = [
            "here/.tgp/.state/",
            "here/.tgp/data.sqlite",
            "here/.tgp/.git/objects/",
            "here/.tgp/.git/refs/tgp",
        ];
        let is_record = |name: &String| records.iter().any(|record| name.starts_with(record));
        let names = self.all_files().into_iter().filter(|name| name.starts_with("here/") && !is_record(name));
        names.map(|name| (name.clone(), fs::read(self.path(&name)).ok())).collect()
    }

    /// The folder that holds everything.
    pub fn root(&self) -> &Path {
        &self.path
    }
}

impl Ran {
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// The one JSON document on standard output.
    pub fn document(&self) -> serde_json::Value {
        assert!(self.stdout.ends_with('\n'), "{self:#?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
