//! A project to work on, and orders for it; as the user who runs the tests, and once more as an ordinary
//! user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tgp_jail::{CommandExit, CommandSpec, Exit, LayerChange, LayerChangeKind, Template, start};

use crate::harness::{EXECUTABLE, NOBODY, Who, everybody};

const AS_USER: &str = "TGP_JAIL_AS_USER";

/// More changes than any test makes on purpose.
pub const MANY: usize = 10_000;

/// Runs the body, and then this test again as an ordinary user: the jail takes other ways for him, from the process that
/// starts it onwards. `test` is the test's own path.
pub fn for_everybody(test: &str, body: impl Fn()) {
    let support = tgp_jail::process_support();
    if !support.complete() {
        println!("no jail for processes here, skipped: {}", support.missing.join(" "));
        return;
    }
    body();
    if std::env::var_os(AS_USER).is_some() || !everybody().contains(&Who::Nobody) {
        return;
    }
    let output = Command::new(&*EXECUTABLE)
        .args(["--exact", test, "--nocapture"])
        .env(AS_USER, "yes")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "as an ordinary user:\n{text}");
    // Measurements and what was skipped.
    for line in
        text.lines().filter(|line| ["median", "skipped", "were tried"].iter().any(|word| line.contains(word)))
    {
        println!("as an ordinary user: {line}");
    }
}

/// A project, a place for layers, and a directory that has nothing to do with either.
pub struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["project", "scratch", "outside"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    pub fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    /// Writes a file of the project, with its directories.
    pub fn file(&self, path: &str, content: &str) {
        let path = self.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn order(&self, script: &str) -> CommandSpec {
        let mut order = Template::Shell.order("/bin/sh", self.project(), self.scratch());
        order.arguments = vec!["-c".into(), script.into()];
        order
    }

    pub fn run(&self, script: &str) -> CommandExit {
        run(&self.order(script))
    }

    /// Runs a script that must succeed, and returns what it changed, one short line each.
    pub fn changes(&self, script: &str) -> Vec<String> {
        let finished = self.run(script);
        assert_eq!(finished.exit, Exit::Code(0), "`{script}`: {}", told(&finished));
        describe(&finished)
    }
}

pub fn run(order: &CommandSpec) -> CommandExit {
    start(order).unwrap().wait().unwrap()
}

/// Everything a process said, for messages.
pub fn told(finished: &CommandExit) -> String {
    format!("{:?}\n{}{}", finished.exit, finished.stdout.to_text(), finished.stderr.to_text())
}

pub fn describe(finished: &CommandExit) -> Vec<String> {
    finished.layer.changes(MANY).unwrap().iter().map(line).collect()
}

fn line(change: &LayerChange) -> String {
    let path = change.path.to_str().unwrap();
    match &change.kind {
        LayerChangeKind::Remove => format!("remove {path}"),
        LayerChangeKind::RemoveDirectory => format!("rmdir {path}"),
        LayerChangeKind::MakeDirectory => format!("mkdir {path}"),
        LayerChangeKind::Write { content, bytes, executable } => {
            let text = fs::read(content).unwrap();
            assert_eq!(text.len() as u64, *bytes);
            let mark = if *executable { "*" } else { "" };
            let shown =
                if text.len() > 40 { format!("{bytes} bytes") } else { String::from_utf8(text).unwrap() };
            format!("write {path}{mark} = {} (was {:?})", shown.escape_debug(), change.before)
        }
        LayerChangeKind::Link { target } => format!("link {path} -> {}", target.display()),
        LayerChangeKind::Special => format!("special {path}"),
    }
}

/// Every path below a directory with its bytes and mode.
pub type Picture = Vec<(PathBuf, Option<Vec<u8>>, u32)>;

/// To see that nothing has changed. It fails while files are being removed.
pub fn picture(folder: &Path) -> std::io::Result<Picture> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = path.symlink_metadata()?;
        let content = if metadata.is_file() { Some(fs::read(&path)?) } else { None };
        if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        }
        found.push((path, content, metadata.mode()));
    }
    found.sort();
    Ok(found)
}
