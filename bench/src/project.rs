//! The project that is measured: `tgp init`, the small tool, and a kernel in this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tgp::contract::TddMode;
use tgp::trust::Trust;
use tgp::{BootOptions, Kernel};

pub const TOOL: &str = "tools/math/fib.ts";
pub const ARGUMENTS: &str = r#"{"n":10}"#;
pub const RESULT: i64 = 55;
pub const TYPESCRIPT: &str = include_str!("../fixtures/fib.ts");
pub const JAVASCRIPT: &str = include_str!("../fixtures/fib.js");

/// A fresh project in a temporary folder, with its own bytecode cache.
pub struct Project {
    folder: TempDir,
}

impl Project {
    pub fn new() -> Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("tgp-bench-").tempdir().context("no temporary folder")?;
        let project = Self { folder };
        fs::create_dir(project.directory())?;
        tgp::project::initialise(&project.directory()).context("`tgp init` failed")?;
        project.write(TOOL, TYPESCRIPT)?;
        Ok(project)
    }

    pub fn directory(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// A folder beside the project; it is created by its user.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file of the tool repository.
    pub fn write(&self, path: &str, text: &str) -> Result<()> {
        let file = self.directory().join(".tgp").join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// The shipped binary in this project, with caches and a home of its own.
    pub fn command(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(shipped_binary()?);
        command
            .arg("-C")
            .arg(self.directory())
            .args(words)
            .env("TGP_CACHE_DIR", self.beside("cache"))
            .env("TGP_HOME", self.beside("home"))
            .stdin(Stdio::null());
        Ok(command)
    }

    /// A kernel in this process whose workers are the shipped binary.
    pub async fn boot(&self) -> Result<Kernel> {
        let worker = shipped_binary()?;
        boot(&self.directory(), &self.beside("cache"), Some(worker)).await
    }
}

pub async fn boot(directory: &Path, cache: &Path, worker: Option<PathBuf>) -> Result<Kernel> {
    let options = BootOptions {
        worker,
        cache_directory: Some(cache.to_owned()),
        // What is measured are tools, not the tests they would need.
        tdd_mode: Some(TddMode::Explore),
        // Every configuration is written by the bench itself.
        trust: Trust::Everything,
        ..BootOptions::new(directory)
    };
    Kernel::boot(options).await.context("the kernel does not boot")
}

/// The `tgp` that was built together with this program.
pub fn shipped_binary() -> Result<PathBuf> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let binary = program.with_file_name("tgp");
    if !binary.is_file() {
        bail!(
            "cannot find {}; build it with `cargo build --release`, or run `cargo xtask bench`",
            binary.display()
        );
    }
    Ok(binary)
}

/// One call of the small tool, end to end.
pub struct Run {
    pub time: Duration,
    /// Milliseconds of it between the request to the worker and its answer.
    pub in_worker: f64,
}

pub async fn run_small_tool(kernel: &Kernel) -> Result<Run> {
    let arguments: Value = serde_json::from_str(ARGUMENTS)?;
    let arguments = json!({ "path": TOOL, "args": arguments });
    let started = Instant::now();
    let result = kernel.call("exec_tool", arguments).await;
    let time = started.elapsed();
    let data = result.into_result().context("exec_tool failed")?;
    if data.get("result").and_then(Value::as_i64) != Some(RESULT) {
        bail!("the small tool gave {data} instead of {RESULT}");
    }
    Ok(Run { time, in_worker: data.pointer("/stats/wall_ms").and_then(Value::as_f64).unwrap_or_default() })
}
